"""Frozen dataclasses to plain documents and back, without a line of code per field.

Fields at their default are left out, so a document shows what is particular about it; keys we do
not know are ignored, so an older version can read a newer document of the same format.
"""

from __future__ import annotations

import types
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Something that JSON can hold."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: to_plain(item)
            for name, default in _defaults(type(value))
            if (item := getattr(value, name)) is not default and item != default
        }
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    return value


def from_plain(kind: type[T], data: Any) -> T:
    """The dataclass again; ValueError when the document is not one."""
    try:
        return typing.cast("T", _build(kind, data))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, _default(f)) for f in fields(kind))


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build(hint: Any, data: Any) -> Any:
    if data is None or hint is Any:
        return data
    origin = typing.get_origin(hint)
    if origin in {types.UnionType, typing.Union}:
        return _build(next(a for a in typing.get_args(hint) if a is not type(None)), data)
    if origin is tuple:
        arguments = typing.get_args(hint)
        if arguments[1:] == (Ellipsis,):
            return tuple(_build(arguments[0], item) for item in data)
        return tuple(_build(a, item) for a, item in zip(arguments, data, strict=True))
    if isinstance(hint, type) and is_dataclass(hint):
        known = _hints(hint)
        return hint(**{key: _build(known[key], item) for key, item in data.items() if key in known})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(data)
    if hint is float and isinstance(data, int):
        return float(data)
    if isinstance(hint, type) and not isinstance(data, hint):
        raise TypeError(f"expected {hint.__name__}, found {data!r}")
    return data
