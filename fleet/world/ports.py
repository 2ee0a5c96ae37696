"""The doors to the world. Real ones live beside this file, simulated ones in tests/sim.

Every port tells apart "no" from "could not find out": the latter is Unavailable, and whoever
catches it must treat what it asked about as unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from fleet.core.record import dataclass
from fleet.core.seen import Listing, PaneRef, Proc


class Unavailable(Exception):
    """The world did not answer, or not in whole. Says what was asked and what to do."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One session to create: `sh <script>`, everything else is inside the script."""

    session: str
    script: str  # absolute path of the generated 0600 launch script
    run: str  # run id, stamped on the pane
    log: str  # session log file name, relative to the logs directory
    env: Mapping[str, str]  # joined into the server's environment; the script unsets what is not its own


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

    def create(self, launches: Sequence[Launch]) -> dict[str, str]:
        """Session name to "" or the reason it was not created ("exists" for a taken name)."""

    def remove(self, refs: Sequence[PaneRef]) -> dict[str, str]:
        """Kill the session, if it still is that pane of that run: "" or the reason why not."""

    def paste(self, ref: PaneRef, text: str) -> str:
        """Bracketed paste, if the pane is alive, not in a mode and still that run: "" or why not."""

    def press(self, ref: PaneRef, keys: Sequence[str]) -> str:
        """Named keys, under the same guard."""

    def environment_names(self) -> frozenset[str]:
        """Names of variables that the server gives to every pane, whatever its launch says."""

    def reap(self) -> None:
        """Make the server collect exit statuses it has missed."""

    def close(self) -> None: ...


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


class Clock(Protocol):
    """Monotonic for durations, wall for instants; both may be jumped in simulation."""

    def wall(self) -> float: ...

    def mono(self) -> float: ...


class Disk(Protocol):
    """Files, with the durability promises spelled out. Raises OSError as the system does."""

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        """A regular file's bytes, never following a link; OSError when it is larger than the cap."""

    def write(self, path: str, data: bytes, mode: int = 0o600, *, sync: bool = True) -> None:
        """Durable and atomic: temp file, fsync, rename, fsync of the directory.

        Without `sync` only atomic: for what a crash of the machine makes worthless anyway.
        """

    def append(self, path: str, data: bytes, *, sync: bool) -> None: ...

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
