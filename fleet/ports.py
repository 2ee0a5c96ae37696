"""The doors to the world. Real ones live beside this file, simulated ones in tests/sim.

Every port tells apart "no" from "could not find out": the latter is Unavailable, and whoever
catches it must treat what it asked about as unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fleet.core.faults import Fault
from fleet.core.moment import Wall
from fleet.core.result import Result
from fleet.core.seen import Listing, PaneRef, Proc

Target = tuple[int, str]  # the session leader's pid (0: unknown) and the run id ("": none)


class Unavailable(Fault):
    """The world did not answer, or not in whole. Says what was asked and what to do."""


class Torn(OSError):
    """An append that ended early: the first `written` bytes of it are in the file."""

    def __init__(self, error: OSError, written: int) -> None:
        super().__init__(error.errno, error.strerror, error.filename)
        self.written = written


@dataclass(frozen=True, slots=True)
class Launch:
    """One session to create: `sh <script>`, everything else is inside the script."""

    session: str
    script: str  # absolute path of the generated 0600 launch script
    run: str  # run id, stamped on the pane
    log: str  # session log file name, relative to the logs directory
    env: Mapping[str, str]  # joined into the server's environment; the script unsets what is not its own


@dataclass(frozen=True, slots=True)
class Inherited:
    """What is in the environment of a pane before its script runs."""

    names: frozenset[str] = frozenset()  # of variables that the server gives to all of them
    given: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # by session: what its launch gave it


@dataclass(frozen=True, slots=True)
class FileStat:
    """Enough to tell whether a file changed."""

    size: int
    mtime_ns: int
    inode: int
    mode: int
    uid: int = -1  # owner; -1 where it does not matter


class Tmux(Protocol):
    """One tmux server, ours. Targets are exact, acts are guarded inside the server."""

    def listing(self) -> Listing: ...

    def capture(self, refs: Sequence[PaneRef], *, back: int = 0) -> dict[str, str]:
        """Visible text by session name, and `back` lines above it; a pane that is gone is left out."""

    def create(self, launches: Sequence[Launch]) -> dict[str, Result]:
        """What became of each, by session name; EXISTS for a name that is taken."""

    def remove(self, refs: Sequence[PaneRef], *, keeping: bool = False) -> dict[str, str]:
        """Kill the session, if it still is that pane of that run: "" or the reason why not.

        With `keeping`, `inherited` knows what it was given, also when it is gone; in memory, nowhere else.
        """

    def paste(self, ref: PaneRef, text: str) -> str:
        """Bracketed paste, if the pane is alive, not in a mode and still that run: "" or why not."""

    def press(self, ref: PaneRef, keys: Sequence[str]) -> str:
        """Named keys, under the same guard."""

    def log_again(self, sessions: Sequence[str]) -> None:
        """Give each a new writer of its log, in place of the one it may have."""

    def inherited(self, sessions: Sequence[str] = ()) -> Inherited:
        """What panes find in their environment: from the server, and from the launch of these sessions."""

    def reap(self) -> None:
        """Make the server collect exit statuses it has missed."""

    def close(self) -> None: ...


class Server(Tmux, Protocol):
    """A tmux server as verbs need it."""

    @property
    def path(self) -> str:
        """Its socket."""

    @property
    def is_users(self) -> bool:
        """Is it the user's own, with other sessions than ours?"""

    def stranger(self, session: str) -> tuple[int, str]:
        """Of a session that is not ours: its process, 0 if dead, and the log that another fleet gave it."""

    def retire(self) -> None:
        """One of ours that holds nothing any more may end."""


class Processes(Protocol):
    """The process table. Signals go only to a pid whose start time still matches."""

    def begin_look(self) -> None:
        """Trees and counts from here on come from one new reading, however many are asked for."""

    def tree(self, pid: int) -> tuple[Proc, ...]:
        """The process and its descendants, itself first."""

    def count(self, pid: int, run: str) -> int:
        """How many members a run has."""

    def members(self, pid: int, run: str) -> tuple[Proc, ...]:
        """All of a run: session leader, its session, descendants, and whoever carries the run id."""

    def signal(self, procs: Iterable[Proc], signum: int) -> tuple[Proc, ...]:
        """Send it, and return those that were still there."""

    def alive(self, proc: Proc) -> bool: ...

    def sweep(self, targets: Iterable[Target]) -> dict[Target, tuple[Proc, ...]]:
        """The members of many runs that are ours to end, from one new reading."""

    def beyond(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        """The members of these runs that are not ours to end."""

    def chase(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        """Kill whoever hands a run on to a child faster than a look takes; those that were met."""

    def freeze(self, pid: int, run: str) -> str:
        """Hold a whole run where it is: "" or why it runs on. SIGCONT lets it go."""


class Clock(Protocol):
    """Monotonic for durations, wall for instants; both may be jumped in simulation."""

    def wall(self) -> Wall: ...

    def mono(self) -> float: ...

    def sleep(self, seconds: float) -> None:
        """For verbs: the watchdog never waits inside a look."""


class Disk(Protocol):
    """Files, with the durability promises spelled out. Raises OSError as the system does."""

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        """A regular file's bytes, never following a link; OSError when it is larger than the cap."""

    def tail(self, path: str, offset: int, cap: int) -> tuple[FileStat, bytes]:
        """A regular file as it is, and up to `cap` bytes from there on. Links are the user's choice."""

    def write(self, path: str, data: bytes, mode: int = 0o600, *, sync: bool = True) -> None:
        """Durable and atomic: temp file, fsync, rename, fsync of the directory.

        Without `sync` only atomic: for what a crash of the machine makes worthless anyway.
        """

    def append(self, path: str, data: bytes, *, sync: bool) -> None:
        """At the end, in one write where that is possible; Torn when some of it may be there already."""

    def remove(self, path: str) -> None:
        """Gone, durably; no error when it was not there."""

    def rename(self, old: str, new: str) -> None: ...

    def stat(self, path: str) -> FileStat | None: ...

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; empty when it does not exist."""

    def make_dir(self, path: str) -> None:
        """0700, parents too; repairs the mode of a directory of ours."""

    def touch(self, path: str) -> None:
        """Set the modification time to now, without durability: heartbeats."""
