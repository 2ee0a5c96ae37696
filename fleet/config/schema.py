"""What a key may hold.

The keys themselves are the table in keys.py, and everything else follows from that: validation,
defaults, `validate --explain`, docs/config.md and the JSON schema.

A converter takes a parsed value and gives the normal form (tuples, floats), or raises Wrong with
what was expected. A check looks at a normal form and gives "" or what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple

Check = Callable[[Any], str]

NAME_LENGTH = 48
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{NAME_LENGTH - 1}}}")
FOREVER = 1_000_000_000  # the longest duration we take: thirty years, and no timer overflows
# Most files use few of these: each is compiled when it is first asked, not when `status` starts.
_SOCKET = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_QUIET = r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d"
_BAD_REF = r"^[-/.]|\.\.|//|@\{|[\x00-\x20\x7f~^:?*\[\\]|\.lock$|[/.]$"
_KEY = (
    r"(?i:(?:[CMS]-)*(?:[A-Za-z0-9]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End"
    r"|PageUp|PgUp|PPage|PageDown|PgDn|NPage|Insert|IC|Delete|DC|F1?\d))"
)


class Type(Enum):
    """The closed set of things a key may hold; the value is how it reads in a message."""

    STRING = "a string"
    PATH = "a path (a string)"
    REGEX = "a regular expression (a string)"
    FLAG = "true or false"
    SECONDS = "a number of seconds"
    COUNT = "a whole number"
    AMOUNT = "a number"
    STRINGS = "a list of strings"
    NAMES = "a name or a list of names"
    WORDS = "a table of strings"
    TABLE = "a table"
    TABLES = "a list of tables"


class Default(Enum):
    """What stands for a default that is no value."""

    REQUIRED = "required"
    IN_MODEL = "in model"  # the default of the field in core/model


REQUIRED: Final = Default.REQUIRED
IN_MODEL: Final = Default.IN_MODEL


class Key(NamedTuple):
    """One key: where it stands, what it holds, what it means."""

    section: str
    name: str
    type: Type
    text: str
    example: str = ""
    check: Check | None = None
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()  # see `words`
    derived: str = ""  # in words, where the default is worked out from other keys
    inherited: bool = False  # [defaults] may hold it for every agent
    default: Any = IN_MODEL

    @property
    def words(self) -> tuple[str, ...]:
        """The closed set: of the value, in a list of its items, in a table of its keys. Empty: any."""
        return self.choices() if callable(self.choices) else self.choices


class Wrong(Exception):
    """The value is not of the key's type; in a list or table, the item `at` is not of the type `expected`."""

    def __init__(
        self, said: str = "", at: tuple[str | int, ...] = (), expected: Type | None = None, got: Any = None
    ) -> None:
        super().__init__(said)
        self.at, self.expected, self.got = at, expected, got


def convert(type_: Type, value: Any) -> Any:
    """The normal form of a value of that type, or Wrong."""
    return _CONVERT[type_](value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong
    if "\0" in value:
        raise Wrong("must not contain a NUL character")
    return value


def _path(value: Any) -> str:
    text = _string(value)
    if "\n" in text or "\r" in text:
        raise Wrong("a path must not contain a line break")
    return text


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong
    if not -FOREVER <= value <= FOREVER:  # also refuses nan
        raise Wrong(f"must be a number of at most {FOREVER}")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong
    return int(_number(value))


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Wrong
    return tuple(_item(Type.STRING, index, item) for index, item in enumerate(value))


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and "\0" not in value else _strings(value)


def _words(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise Wrong
    return tuple((_string(key), _item(Type.STRING, key, item)) for key, item in value.items())


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong
    return value


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise Wrong
    return [_item(Type.TABLE, index, item) for index, item in enumerate(value)]


def _item(type_: Type, at: str | int, value: Any) -> Any:
    """One item of a list or table; a fault in it is reported at its own place."""
    try:
        return convert(type_, value)
    except Wrong as wrong:
        raise Wrong(str(wrong), (at,), type_, value) from None


_CONVERT: dict[Type, Callable[[Any], Any]] = {
    Type.STRING: _string, Type.PATH: _path, Type.REGEX: _string, Type.FLAG: _flag, Type.SECONDS: _number,
    Type.COUNT: _count, Type.AMOUNT: _number, Type.STRINGS: _strings, Type.NAMES: _names, Type.WORDS: _words,
    Type.TABLE: _table, Type.TABLES: _tables,
}  # fmt: skip


# The checks.


def positive(value: float) -> str:
    """A duration that a loop may wait."""
    return "" if value > 0 else "must be greater than 0"


def not_negative(value: float) -> str:
    """A slack, a count or a price."""
    return "" if value >= 0 else "must not be negative"


def filled(value: str) -> str:
    """Text that says something."""
    return "" if value.strip() else "must not be empty"


def one_line(value: str) -> str:
    """Text that is compared with one line."""
    return filled(value) or ("must be one line" if len(value.splitlines()) > 1 else "")


def regex(value: str) -> str:
    """An expression that compiles."""
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a valid regular expression: {error}"
    return ""


def landmarks(value: tuple[tuple[str, str], ...]) -> str:
    """Expressions that compile, with the groups that reading a screen takes from them."""
    groups = {"composer": "draft", "margin": "cut"}
    for key, text in value:
        if said := regex(text):
            return f"{key}: {said}"
        group = groups.get(key, "")
        if text and group and f"(?P<{group}>" not in text:
            return f"{key}: needs a group (?P<{group}>...)"
    return ""


def name(value: str) -> str:
    """A word that tmux keeps as it is and that is safe as a file name."""
    if NAME.fullmatch(value):
        return ""
    if "." in value or ":" in value:
        return 'must not contain "." or ":": tmux turns them into "_" and would never find the session again'
    if len(value) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters"
    return "must start with a letter or digit and hold only letters, digits, - and _"


def file_name(value: str) -> str:
    """A file of ours, beside others of ours: no path, no suffix."""
    return "" if NAME.fullmatch(value) else "must be a file name of letters, digits, - and _ (not a path)"


def socket(value: str) -> str:
    """A name that tmux -L takes; a path would be looked for somewhere else."""
    if re.fullmatch(_SOCKET, value):
        return ""
    return 'must be a name of letters, digits, -, _ and . (not a path), or "default" for your own server'


def variable(value: str) -> str:
    """The name of an environment variable, or none."""
    fine = not value or re.fullmatch(_VARIABLE, value)
    return "" if fine else f'"{value}" cannot be the name of an environment variable'


def variables(value: tuple[str, ...]) -> str:
    """Names of environment variables."""
    return next((fault for word in value if (fault := variable(word or " "))), "")


def assignments(value: tuple[tuple[str, str], ...]) -> str:
    """Variables and what they are set to."""
    return next((fault for word, _ in value if (fault := variable(word or " "))), "")


def passed(value: tuple[str, ...]) -> str:
    """Variables by name, or by how the name begins: LC_*."""
    return next((fault for word in value if (fault := variable(word.removesuffix("*") or " "))), "")


def tmux_key(value: str) -> str:
    """A key tmux knows by name, or none."""
    known = not value or re.fullmatch(_KEY, value)
    return "" if known else f'"{value}" is not a tmux key such as Enter, C-m or Escape'


def submit_key(value: str) -> str:
    """A key, and not none."""
    return filled(value) or tmux_key(value)


def tmux_keys(value: tuple[str, ...]) -> str:
    """Such keys in a row."""
    return next((fault for key in value if (fault := submit_key(key))), "")


def branch(value: str) -> str:
    """A branch name by git's rules; none is fine."""
    return "must be a branch name that git accepts" if re.search(_BAD_REF, value) else ""


def quiet_hours(value: str) -> str:
    """A span of hours, or none."""
    return "" if not value or re.fullmatch(_QUIET, value) else "must be a span of hours such as 22:00-07:00"


def label(value: str) -> str:
    """An id that can be shown, compared and used as a file name."""
    if fault := one_line(value):
        return fault
    return "must not contain a slash or start with a dot" if "/" in value or value[0] == "." else ""
