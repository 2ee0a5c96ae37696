"""The records that CLIs keep of what they did: one reader a CLI, `READER` in the `usage.py` of its folder.

A CLI keeps its records in one or more formats. Files of JSON lines grow and are followed; a database is
asked again whenever it changed; a document is one JSON object in a file. Each format says by which marks it
is known, how its usage is poured into a Ledger, and how it is told as Entries. The format that agents are
followed by is named like the folder.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fleet.backends import profiles
from fleet.backends.entries import Entry
from fleet.backends.ledger import Ledger, Transcript
from fleet.reading import Feed, Ident


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


class Sweep(Protocol):
    """How far one database has been read."""

    def sweep(self) -> None:
        """Count what changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a file is known to be of this format."""

    name: str
    cli: str  # the folder
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
    open: Callable[[str, Ledger], Sweep]
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


@dataclass(frozen=True, slots=True)
class UsageReader:
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
