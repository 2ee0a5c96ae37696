"""The doors to the machine: what may be asked of it, and what it may be told. No logic.

Real ones stand in fleet/host, simulated ones in tests/sim. Every port tells apart "no" from "could not find
out": the latter is Unavailable, or the OSError of the system, and a caller that catches it must treat what it
asked about as unseen. `Host` stands beside the doors: facts of the machine that a run does not see change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

from fleet.core.decision import Fault, Result
from fleet.core.seen import Listing, PaneRef, Proc
from fleet.times.moment import Wall

Target = tuple[int, str]  # the session leader's pid (0: unknown) and the run id ("": none)
Draw = Callable[[], str]  # 32 random hex digits
Key = TypeVar("Key", bound=Hashable)  # what a caller calls its children


class Host(NamedTuple):
    """Facts of the machine and of this process that stay as they are."""

    environ: Mapping[str, str] = MappingProxyType({})  # without one-off overrides
    zone: str = ""  # the time zone, for banners that name none


class Hint(Enum):
    """What may end the watchdog's sleep early, beside the end of a process."""

    NUDGE = auto()  # a verb asks for a look
    TMUX = auto()  # tmux spoke
    CONFIG = auto()  # agents.toml changed
    SIGNALS = auto()  # a CLI reported
    LOOP = auto()  # a file of the loop changed
    INTERRUPT = auto()  # this process got a signal


class PaneDied(NamedTuple):
    """The process of a pane has ended."""

    session: str


class ChildEnded(NamedTuple):
    """A child of the watchdog has ended."""

    pid: int


Wake = Hint | PaneDied | ChildEnded


class Unavailable(Fault):
    """The world did not answer, or not in whole. Says what was asked and what to do."""


class Torn(OSError):
    """An append that ended early: the first `written` bytes of it are in the file."""

    def __init__(self, error: OSError, written: int) -> None:
        super().__init__(error.errno, error.strerror, error.filename)
        self.written = written


class LockError(Fault):
    """A lock could not be had; the text says why and what to do."""


class Held(LockError):
    """Another process holds it. `pid` 0: it did not say who it is."""

    def __init__(self, path: str, pid: int, start: int, since: float) -> None:
        who = f"process {pid}" if pid else "another process"
        when = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(since)) if since else ""
        super().__init__(f"{path} is held by {who}{when}")
        self.pid = pid
        self.start = start
        self.since = since


class Stranger(OSError):
    """Another user listens there, or it cannot be found out who does. Nothing was sent."""


class Reply(NamedTuple):
    """What a server said. Status 0: the connection was refused, so nothing was said at all."""

    status: int
    body: bytes = b""
    json: bool = False


class Allowance(NamedTuple):
    """How many open files a process may have, and up to where it may raise that itself."""

    soft: int
    hard: int


class JobEnd(NamedTuple, Generic[Key]):
    """How a child ended. `code` None: by us, at its time limit or for too much output."""

    key: Key
    code: int | None
    output: bytes
    seconds: float
    log: str = ""
    why: str = ""


class Launch(NamedTuple):
    """One session to create: `sh <script>`, everything else is inside the script."""

    session: str
    script: str  # absolute path of the generated 0600 launch script
    run: str  # run id, stamped on the pane
    log: str  # session log file name, relative to the logs directory
    env: Mapping[str, str]  # joined into the server's environment; the script unsets what is not its own


class Inherited(NamedTuple):
    """What is in the environment of a pane before its script runs."""

    names: frozenset[str] = frozenset()  # of variables that the server gives to all of them
    given: Mapping[str, Mapping[str, str]] = MappingProxyType({})  # by session: what its launch gave it


class FileStat(NamedTuple):
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


class Servers(Protocol):
    """The tmux servers of this machine, as a verb that founds or leaves one asks for them."""

    def require_tmux(self) -> None:
        """Unavailable where there is no tmux that we can work with."""

    def ours(self) -> Server:
        """The fleet's server, where the record says it is."""

    def socket(self) -> str:
        """Where the fleet's server would be founded now."""

    def users_listing(self) -> Listing:
        """What runs on the user's own server; nothing if it does not answer."""


class Processes(Protocol):
    """The process table. Signals go only to a pid whose start time still matches."""

    def begin_look(self) -> None:
        """Trees and counts from here on come from one new reading, however many are asked for."""

    def tree(self, pid: int) -> tuple[Proc, ...]:
        """The process and its descendants, itself first."""

    def count(self, pid: int, run: str) -> int:
        """How many members a run has."""

    def members(self, pid: int, run: str) -> tuple[Proc, ...]:
        """All of a run: leader, its session, descendants, and every process that carries the run id."""

    def signal(self, procs: Iterable[Proc], signum: int) -> tuple[Proc, ...]:
        """Send it, and return those that were still there."""

    def alive(self, proc: Proc) -> bool: ...

    def me(self) -> tuple[int, int]:
        """Pid and start time of this process."""

    def start_of(self, pid: int) -> int:
        """When a process started; 0 if it has ended."""

    def clients(self, project_id: str) -> tuple[Proc, ...]:
        """Control clients of tmux that belong to this project."""

    def listener(self, path: str) -> Proc | None:
        """The tmux server that listens at that socket; None if that cannot be told."""

    def guests(self, server: Proc, runs: Collection[str]) -> tuple[Proc, ...]:
        """What runs in panes of that server without being of one of these runs."""

    def allowance(self, pid: int) -> Allowance:
        """How many open files that process may have; 0: this one."""

    def widen(self, pid: int, need: int) -> None:
        """Let it have so many open files, if we may."""

    def sweep(self, targets: Iterable[Target]) -> dict[Target, tuple[Proc, ...]]:
        """The members of many runs that are ours to end, from one new reading."""

    def beyond(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        """The members of these runs that are not ours to end."""

    def chase(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        """Kill processes that hand a run on to a child faster than a look takes; those that were met."""

    def freeze(self, pid: int, run: str) -> str:
        """Hold a whole run where it is: "" or why it runs on. SIGCONT lets it go."""


class Clock(Protocol):
    """Monotonic for durations, wall for instants; both may be jumped in simulation."""

    def wall(self) -> Wall: ...

    def mono(self) -> float: ...

    def sleep(self, seconds: float) -> None:
        """For verbs: the watchdog never waits inside a look."""


class Lead(Protocol):
    """The right to act as the watchdog."""

    def acquire(self) -> None:
        """Take it, or raise Held."""

    def release(self) -> None: ...


class Locks(Protocol):
    """What only one process of a fleet may have at a time."""

    def state(self) -> AbstractContextManager[object]:
        """Keeps every other writer of the state out; LockError when it cannot be had."""

    def lead(self) -> Lead:
        """The right to act as the watchdog."""

    def holder(self) -> Held | None:
        """The watchdog of this fleet."""

    def nudge(self) -> None:
        """Wake the watchdog, if there is one."""


class LogDisk(Protocol):
    """As much of a disk as a log needs."""

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        """A regular file's bytes, never following a link; OSError when it is larger than the cap."""

    def append(self, path: str, data: bytes, *, sync: bool) -> None:
        """At the end, in one write where that is possible; Torn when some of it may be there already."""


class Disk(LogDisk, Protocol):
    """Files, with the durability promises spelled out. Raises OSError as the system does."""

    def tail(self, path: str, offset: int, cap: int) -> tuple[FileStat, bytes]:
        """A regular file as it is, and up to `cap` bytes from there on. Links are the user's choice."""

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """A file of 0600, durable and atomic: temp file, fsync, rename, fsync of the directory.

        Without `sync` only atomic: for what a crash of the machine makes worthless anyway.
        """

    def remove(self, path: str) -> None:
        """Gone, durably; no error when it was not there."""

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        """Move a name. Without `sync` it is durable with the next synced write in the same directory."""

    def stat(self, path: str) -> FileStat | None: ...

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; empty when it does not exist."""

    def make_dir(self, path: str) -> None:
        """0700, parents too; repairs the mode of a directory of ours."""

    def touch(self, path: str) -> None:
        """Set the modification time to now, without durability: heartbeats."""

    def is_dir(self, path: str) -> bool:
        """A directory, or a link to one."""

    def may_read(self, path: str) -> bool: ...

    def program(self, word: str, path: str) -> str:
        """The executable that a shell with this PATH would run; "" if there is none."""

    def untrusted(self, path: str) -> str:
        """Why another user could change that path, with the fix; "" if none can."""


class Children(Protocol[Key]):
    """Child processes that take their time. No caller waits for them."""

    def start(
        self,
        key: Key,
        argv: Sequence[str],
        *,
        cwd: str,
        timeout: float,
        log: str = "",
        env: Mapping[str, str] = {},
    ) -> str:
        """Start it: "" or why it could not be. A key that is at work already is left alone."""

    def poll(self) -> tuple[JobEnd[Key], ...]:
        """Those that ended since the last time."""

    def keys(self) -> frozenset[Key]:
        """Those at work."""

    def cancel(self, key: Key) -> None:
        """End it; its end is not reported."""


class Http(Protocol):
    """Servers on this machine's loopback: never through a proxy, never another user's."""

    def ask(self, address: str, key: str, data: bytes | None, timeout: float) -> Reply:
        """GET, or POST when there is something to say. OSError: it may have been heard. Stranger: it was not.

        `key` is user and password with a colon between them, or nothing.
        """

    def beside(self, name: str, job: Callable[[], None]) -> None:
        """Run that, under this name, while the caller goes on: a server may take its time."""

    def free_port(self) -> int:
        """A port that no server listens on now; 0 if there is none."""
