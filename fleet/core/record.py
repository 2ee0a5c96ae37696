"""Dataclasses that cost nothing to declare: the same words and the same meaning as the standard ones.

The standard decorator compiles six functions for every class when its module is imported, and brings in
`inspect`; for a hundred small frozen classes that is half of what `status` does. Here a method is compiled
when it is first used, and most never are. Type checkers see the standard library's own decorator; its
`fields`, `asdict` and `is_dataclass` work too: the table they read is made when somebody asks for it.

Only what this house uses is understood: slots, frozen or not, plain defaults, and factories. No inheritance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    def dataclass(*, slots: bool, frozen: bool = False) -> Any:
        """The decorator."""
        if not slots:
            raise TypeError("a record has slots: write @dataclass(slots=True)")
        return lambda cls: _declare(cls, frozen=frozen)

    def field(*, default_factory: Any) -> Any:
        """A default that is made afresh for every instance."""
        return _Factory(default_factory)

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with some fields changed, of any class with slots."""
        cls = type(record)
        return (_COPIERS.get(cls) or _copier(cls))(record, changes)


__all__ = ["dataclass", "field", "replace"]


_SET = object.__setattr__
_COPIERS: dict[type, Any] = {}


def _open(cls: Any) -> type:
    """The same shape without a guard: a frozen record is one of these while it is filled, then itself."""
    return type(cls.__name__, cls.__bases__, {"__slots__": cls.__match_args__})


def _copier(cls: Any) -> Any:
    """Memory is replaced at every look, and a loop over forty fields is most of what that costs."""
    space = {"new": object.__new__, "open": _open(cls), "cls": cls}
    body = "".join(f" copy.{name} = record.{name}\n" for name in cls.__match_args__)
    change = " for name in changes: setattr(copy, name, changes[name])\n"
    close = " copy.__class__ = cls\n return copy"
    exec(f"def copier(record, changes):\n copy = new(open)\n{body}{change}{close}", space)  # noqa: S102  as below
    return _COPIERS.setdefault(cls, space["copier"])


class _Factory:
    __slots__ = ("make",)

    def __init__(self, make: Any) -> None:
        self.make = make


_OMITTED = object()  # a parameter with a factory that was not given


class _Later:
    """A method that is compiled when it is first looked up, and from then on is an ordinary one."""

    __slots__ = ("name", "source")

    def __init__(self, name: str, source: Any) -> None:
        self.name, self.source = name, source

    def __get__(self, instance: Any, cls: Any) -> Any:
        namespace: dict[str, Any] = {"_set": _SET, "_omitted": _OMITTED, "_given": cls._given, "_cls": cls}
        namespace["_open"] = _open(cls) if self.source is _init_frozen else None
        exec(self.source(cls), namespace)  # noqa: S102  field names only, and those are identifiers
        made = namespace[self.name]
        made.__qualname__ = f"{cls.__qualname__}.{self.name}"
        setattr(cls, self.name, made)
        return made.__get__(instance, cls)


def _declare(cls: type, *, frozen: bool) -> type:
    """The same class, with slots for its annotations and methods that wait to be needed."""
    body = {k: v for k, v in cls.__dict__.items() if k not in {"__dict__", "__weakref__"}}
    names = tuple(body.get("__annotations__", ()))
    body["_given"] = {name: body.pop(name) for name in names if name in body}
    ours: dict[str, Any] = {
        "__init__": _Later("__init__", _init_frozen if frozen else _init),
        "__eq__": _Later("__eq__", _eq),
        "__repr__": _repr,
    }
    if frozen:
        ours |= {"__hash__": _Later("__hash__", _hash), "__setattr__": _refuse, "__delattr__": _refuse}
    else:
        ours["__hash__"] = None
    fixed = {
        "__qualname__": cls.__qualname__,
        "__slots__": names,
        "__match_args__": names,
        "__dataclass_fields__": _Fields(),
        "__reduce__": _reduce,
    }
    return type(cls.__name__, cls.__bases__, ours | body | fixed)


def _init(cls: Any) -> str:
    """The source of a constructor."""
    head = body = ""
    for name in cls.__match_args__:
        value = name
        if name not in cls._given:
            head += f", {name}"
        elif isinstance(cls._given[name], _Factory):
            head += f", {name}=_omitted"
            value = f"_given['{name}'].make() if {name} is _omitted else {name}"
        else:
            head += f", {name}=_given['{name}']"
        body += f" self.{name} = {value}\n"
    return f"def __init__(self{head}):\n{body or ' pass'}\n"


def _init_frozen(cls: Any) -> str:
    head, _, body = _init(cls).partition("\n")
    return f"{head}\n _set(self, '__class__', _open)\n{body} self.__class__ = _cls"


def _eq(cls: Any) -> str:
    mine, theirs = (_values(cls, who) for who in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is not self.__class__: return NotImplemented\n"
        f" return {mine} == {theirs}"
    )


def _hash(cls: Any) -> str:
    return f"def __hash__(self): return hash({_values(cls, 'self')})"


def _values(cls: Any, who: str) -> str:
    return "(" + "".join(f"{who}.{name}, " for name in cls.__match_args__) + ")"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({shown})"


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def _refuse(self: Any, name: str, *_: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"{type(self).__name__} is frozen: {name} cannot be changed")


class _Fields:
    """The table that the standard library's helpers read, made when they first look."""

    __slots__ = ()

    def __get__(self, instance: Any, cls: Any) -> dict[str, Any]:
        import dataclasses

        defaults = {
            name: dataclasses.field(default_factory=value.make) if isinstance(value, _Factory) else value
            for name, value in cls._given.items()
        }
        shape: Any = type(cls.__name__, (), {"__annotations__": cls.__annotations__, **defaults})
        table: dict[str, Any] = dataclasses.dataclass(init=False, repr=False, eq=False)(
            shape
        ).__dataclass_fields__
        cls.__dataclass_fields__ = table
        return table
