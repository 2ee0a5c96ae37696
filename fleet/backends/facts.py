"""The words that adapters and their caller share: what is known of a run, where to look, what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fleet.core.model import Backend
from fleet.core.seen import ReportKind, ScreenState

WORDS = 500  # of a prompt or a message: enough to recognise it

# A failed turn is one of these when the CLI's own words say so, and just a failure otherwise.
KIND_OF_STATE = {
    ScreenState.LIMITED: ReportKind.LIMIT_HIT,
    ScreenState.AUTH: ReportKind.AUTH_FAILED,
    ScreenState.CONTEXT: ReportKind.CONTEXT_FULL,
}


class Reach(StrEnum):
    """How a place is read."""

    SPOOL = "spool"  # a directory of small files, each consumed once
    FILE = "file"  # read whole whenever it changes
    TAIL = "tail"  # followed line by line
    SEARCH = "search"  # a directory in which the tail to follow is still to be found
    PAGE = "page"  # fetched over HTTP from the loopback


@dataclass(frozen=True, slots=True)
class Source:
    """One place to look at."""

    adapter: str
    reach: Reach
    where: str  # a path, or an address
    suffix: str = ""  # in a directory: only names that end so


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one run when its sources are looked up."""

    dir: str
    started: float  # wall
    conversation: str = ""
    signals_dir: str = ""
    processes: tuple[tuple[int, int], ...] = ()  # pid and start of the pane's tree, the agent's own first
    env: Mapping[str, str] = field(default_factory=dict)  # as the CLI was started with
    server: str = ""  # address of its server, if it has one


@dataclass(frozen=True, slots=True)
class Heading:
    """Under what circumstances some bytes were read."""

    backend: Backend
    facts: Facts
    source: Source
    at: float  # wall: the file's own time for files, now for pages
    zone: str = "UTC"  # the host's
