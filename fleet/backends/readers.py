"""The records that CLIs keep of what they did: one reader a CLI, `READER` in the `usage.py` of its folder.

A CLI keeps its records in one or more formats. Files of JSON lines grow and are followed; a database is
asked again whenever it changed; a document is one JSON object in a file. Each format says by which marks it
is known, how its usage is poured into a Ledger, and how it is told as Entries, which are the same for all
CLIs. The format that agents are followed by is named like the folder.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from fleet.backends import profiles
from fleet.backends.ledger import UNKNOWN, Counts, Ledger, Transcript
from fleet.reading import Feed, Ident
from fleet.text import as_object
from fleet.times.iso import instant

USAGE = "usage"  # the text of an event that tells tokens and nothing else


@dataclass(frozen=True, slots=True)
class Wanted:
    """One agent whose transcripts are asked for. A kind without a reader is allowed and finds nothing."""

    name: str
    kind: str
    directory: str
    signature: str = ""
    sessions: frozenset[str] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict)  # the environment its CLI is started with

    @property
    def homes(self) -> tuple[str, ...]:
        reader = readers().get(self.kind)
        return reader.homes(self.env) if reader else ()

    @property
    def directories(self) -> tuple[str, ...]:
        """As declared, and as the kernel will say it is called."""
        real = os.path.realpath(self.directory)
        return (self.directory,) if real == self.directory else (self.directory, real)


class Directories(Protocol):
    """Directories, listed again only when they changed."""

    def walk(self, root: str, depth: int) -> Iterator[tuple[str, int]]:
        """Path and inode of the transcripts below a folder."""

    def folders(self, root: str) -> tuple[str, ...]:
        """The folders in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a file is known to be of this format."""

    name: str
    called: str  # in a sentence about what can be read
    marks: int  # how many it is known by: what needs more of them is asked first
    is_line: Callable[[dict[str, Any]], bool] | None = None  # by one line
    is_opening: Callable[[bytes], bool] | None = None  # by its first bytes, where no line is whole
    magic: bytes = b""  # how it begins, if it is no text


# Path and inode of every file that may be this agent's; 0 where the inode was not looked up.
Paths = Callable[[Wanted, Directories], Iterator[tuple[str, int]]]
# The function that counts what is new in a file, and what is to be called when the file is begun anew.
Counter = tuple[Feed, Callable[[], None] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat(Format):
    """JSON lines, a file or more for each conversation."""

    paths: Paths
    head: Callable[[Iterator[dict[str, Any]]], tuple[str, str]]  # session and directory, by the first lines
    count: Callable[[Ledger, int, Ident, bool], Counter]  # ledger, source, file, with the fast decoder?
    entries: Callable[[dict[str, Any]], Iterator[Entry]]
    session_of: Callable[[str], str] | None = None  # the path tells the session
    folder_of: Callable[[str], str] | None = None  # how the folder of a working directory is called
    mixed: bool = False  # all projects lie together: a file is opened once to see whose it is


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFormat(Format):
    """One database a home, for all conversations."""

    path: Callable[[str], str]  # in a home
    open: Callable[
        [str, Ledger], Callable[[], None]
    ]  # gives what counts all that changed since its last call
    entries: Callable[[str], Iterator[Entry]]
    # What came since a mark and the mark after that; nothing while the database cannot be read.
    news: Callable[[str, Any], tuple[list[tuple[Transcript, list[Entry]]], Any] | None]
    opening: Callable[[Transcript], bytes]  # the first words of one conversation
    is_readable: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat(Format):
    """One JSON object in a file."""

    count: Callable[[Ledger, str, dict[str, Any]], None]
    entries: Callable[[dict[str, Any]], Iterator[Entry]] | None = None  # None: it is counted only


class UsageReader(NamedTuple):
    """All that one CLI keeps."""

    homes: Callable[[Mapping[str, str]], tuple[str, ...]]  # where, for a process with that environment
    places: Callable[[str], tuple[str, ...]]  # the files and directories in a home that hold records
    formats: tuple[LineFormat | StoreFormat | DocumentFormat, ...]


@functools.cache
def readers() -> Mapping[str, UsageReader]:
    """By folder."""
    folders = profiles.folders("usage.py")
    return {name: importlib.import_module(f"{__package__}.{name}.usage").READER for name in folders}


@functools.cache
def formats() -> Mapping[str, LineFormat | StoreFormat | DocumentFormat]:
    """By name, in the order in which a file is held against them."""
    found = [one for reader in readers().values() for one in reader.formats]
    return {one.name: one for one in sorted(found, key=lambda one: -one.marks)}


def lines_of(kind: str) -> LineFormat | None:
    """The lines that this CLI's agents write, if they do."""
    found = formats().get(kind)
    return found if isinstance(found, LineFormat) else None


def store_of(kind: str) -> StoreFormat | None:
    """The database that this CLI's agents share, if they do."""
    found = formats().get(kind)
    return found if isinstance(found, StoreFormat) else None


def stores(wanted: Iterable[Wanted]) -> dict[str, StoreFormat]:
    """By path: the databases of some agents."""
    return {
        store.path(home): store for agent in wanted if (store := store_of(agent.kind)) for home in agent.homes
    }


# --------------------------------------------------------------------------------------------------
# What a person reads.


class Role(StrEnum):
    """Whose event it is. The words are what stands in the second column."""

    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL = "tool"  # a call
    RESULT = "result"  # what came back
    ERROR = "error"
    SYSTEM = "system"


class Entry(NamedTuple):
    """One event. `at` is seconds since the epoch, None where the record is not dated."""

    at: float | None
    role: Role
    text: str
    tool: str = ""
    size: int | None = None  # of a result, in characters, before anything is cut
    counts: Counts | None = None  # of the message this event belongs to, on its first event only
    model: str = ""
    message: str = ""
    side: bool = False  # a sub-agent speaks
    failed: bool = False
    call: str = ""  # what a result and the call it answers have in common
    more: str = ""  # of a call: what it was given beside the text, a line each


# --------------------------------------------------------------------------------------------------
# Values of a record: of any type, whatever the CLI should have written.


def object_of(value: Any) -> dict[str, Any]:
    """A JSON object, given as one or as its text; anything else is an empty one."""
    if isinstance(value, str | bytes):
        return as_object(value)
    return value if isinstance(value, dict) else {}


def clock(value: Any) -> float | None:
    """An instant as ISO text, seconds or milliseconds; None when it is none of them."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) / 1000 if value > 1e11 else float(value)  # noqa: PLR2004 - ms since 1973
    return instant(value) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """A word of a record as text that can be written anywhere: JSON may hold halves of characters."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def day_of(value: Any) -> str:
    """The day of an instant in universal time, as its records are compared: by name."""
    if isinstance(value, str) and value.endswith("Z"):
        return text_of(value[:10])
    at = clock(value)
    try:
        return UNKNOWN if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def content_text(content: Any) -> str:
    """The words of a content field: a string, or a list of blocks of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content_text(content.get("text") or content.get("content"))
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            text = content_text(block.get("text") or block.get("content"))
            parts.append(text or f"[{block.get('type', 'block')}]")
    return "\n".join(part for part in parts if part)


# Of a tool's arguments the one that says what it does; anything else is shown as JSON.
_TELLING = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
)


def told_call(arguments: Any) -> tuple[str, str]:
    """A tool call in one line, and the rest of what it was given."""
    if isinstance(arguments, str):
        try:
            return told_call(json.loads(arguments) or "")
        except (ValueError, RecursionError):
            return arguments, ""
    if isinstance(arguments, dict):
        for key in _TELLING:
            value = arguments.get(key)
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                value = " ".join(value)
            if isinstance(value, str) and value:
                rest = {name: given for name, given in arguments.items() if name != key}
                return value, "\n".join(f"{name}: {_plain(given)}" for name, given in rest.items())
    return _plain(arguments) if arguments else "", ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
