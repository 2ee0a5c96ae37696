"""Records (frozen dataclasses, named tuples) to plain documents and back, without a line of code per field.

Fields at their default are left out, so a document shows what is particular about it; keys we do
not know are ignored, so an older version can read a newer document of the same format.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Builder = Callable[[Any], Any]

_NONE = object()
_BARE = frozenset({str, int, float, bool, type(None)})


def to_plain(value: Any) -> Any:
    """Something that JSON can hold."""
    kind: type = type(value)
    if kind in _BARE:
        return value
    if isinstance(value, Enum):
        return value.value
    if _is_record(kind):
        return {
            name: item if type(item) in _BARE else to_plain(item)
            for name, default in _defaults(kind)
            if (item := getattr(value, name)) is not default and item != default
        }
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return _plain_mapping(value) if isinstance(value, dict) else value


def _is_record(kind: type) -> bool:
    return hasattr(kind, "__match_args__")


def _plain_mapping(mapping: dict[Any, Any]) -> Any:
    """An object; rows of key and value where a key is no string."""
    if all(isinstance(key, str) for key in mapping):
        return {str(key): to_plain(item) for key, item in mapping.items()}
    return [[to_plain(key), to_plain(item)] for key, item in mapping.items()]


def all_fields(value: Any) -> dict[str, Any]:
    """A record with every field, whatever its value: for readers that do not know our defaults."""
    kind: type = type(value)
    return {name: to_plain(getattr(value, name)) for name, _ in _defaults(kind)}


def from_plain(kind: type[T], data: Any) -> T:
    """The record again; ValueError when the document is not one."""
    try:
        return typing.cast("T", _builder(typing.cast("Any", kind))(data))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Each field with its default, which is no value at all where there is none."""
    names = kind.__match_args__
    given = (kind.__new__ if issubclass(kind, tuple) else kind.__init__).__defaults__ or ()
    return tuple(zip(names, (_NONE,) * (len(names) - len(given)) + given, strict=True))


@cache
def _builder(hint: Any) -> Builder:
    """What makes a value of that type from plain data; worked out once a type, not once a value."""
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    if hint is Any:
        return lambda data: data
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {types.UnionType, typing.Union}:
        return _or_none(_builder(next(a for a in arguments if a is not type(None))))
    if origin is tuple:
        return _tuple_of(_builder(arguments[0])) if arguments[1:] == (...,) else _row_of(arguments)
    if origin in {dict, Mapping}:
        return _mapping_of(_builder(arguments[0]), _builder(arguments[1]), rows=arguments[0] is not str)
    if not isinstance(hint, type):
        return lambda data: data
    if _is_record(hint):
        return _record_of(hint)
    if issubclass(hint, Enum):
        return hint
    return _bare(hint)


def _or_none(build: Builder) -> Builder:
    return lambda data: None if data is None else build(data)


def _tuple_of(item: Builder) -> Builder:
    return lambda data: tuple(map(item, data))


def _mapping_of(key: Builder, item: Builder, *, rows: bool) -> Builder:
    """Keys that are no strings were written as rows of key and value."""
    if rows:
        return lambda data: {key(name): item(value) for name, value in data}
    return lambda data: {key(name): item(value) for name, value in data.items()}


def _row_of(hints: tuple[Any, ...]) -> Builder:
    parts = tuple(map(_builder, hints))

    def build(data: Any) -> Any:
        return tuple(p(item) for p, item in zip(parts, data, strict=True))

    return build


def _record_of(kind: type) -> Builder:
    parts = {name: _builder(hint) for name, hint in typing.get_type_hints(kind).items()}

    def build(data: Any) -> Any:
        return kind(**{key: parts[key](item) for key, item in data.items() if key in parts})

    return build


def _bare(kind: type) -> Builder:
    def build(data: Any) -> Any:
        if isinstance(data, kind):
            return data
        if kind is float and isinstance(data, int):
            return float(data)
        raise TypeError(f"expected {kind.__name__}, found {data!r}")

    return build
