"""Which processes are a run, and how to end all of them and nothing else.

Closing a terminal leaves most kinds of children alive, so a run is gathered from three traces that few
processes lose together: the session its leader opened, its descendants, and the run id in the environment,
which `setsid` and double forks do not shed. A leader must prove itself, because its number may have passed
on to a stranger: by the run id, or, where the agent wiped its environment, by being a child of tmux.

Identity is pid and start time. A signal goes through a pidfd that was opened before the identity was
checked, so it cannot land on another process. Others' processes, ourselves and zombies are never members.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

from fleet.core.seen import Proc
from fleet.host import descriptors, freezer, procfs
from fleet.host.clock import RealClock
from fleet.host.procfs import ProcRow
from fleet.host.tmux.pane_rows import anchor
from fleet.ports import Allowance, Clock, Target

_Trait = TypeVar("_Trait", int, str)

_SETTLED = 2.0  # seconds after which a process has long replaced the image it was forked with
_SAME_LOOK = 0.1  # seconds
_CHASE = 0.03  # seconds
_NEAR = 8  # of the last born: others are born as well
_LISTENS = 0x10000  # SO_ACCEPTCON in /proc/net/unix
_WORDS_CAP = 1 << 14  # of a command line


class ProcTable:
    """The Processes port. Reads each process's environment once in its life."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or RealClock()
        self._runs: dict[tuple[int, int], str] = {}
        self._same: _Reading | None = None
        self._read_at = float("-inf")

    def begin_look(self) -> None:
        """What is counted from here on comes from one new reading; what is to be ended is read afresh."""
        self._same = None

    def tree(self, pid: int) -> tuple[Proc, ...]:
        reading = self._look()
        found = _descend([pid] if pid in reading.rows else [], reading.children)
        rows = (reading.rows[p] for p in found)
        return tuple(_proc(row) for row in rows if not row.zombie)

    def count(self, pid: int, run: str) -> int:
        return sum(map(_may_end, self._look().of(pid, run)))

    def _look(self) -> _Reading:
        if self._same is None or self._clock.mono() - self._read_at > _SAME_LOOK:
            self._same, self._read_at = self._read(), self._clock.mono()
        return self._same

    def _read(self) -> _Reading:
        return _Reading(procfs.table(), self._read_runs)

    def members(self, pid: int, run: str) -> tuple[Proc, ...]:
        return self.sweep([(pid, run)])[pid, run]

    def sweep(self, targets: Iterable[Target]) -> dict[Target, tuple[Proc, ...]]:
        """The members of many runs, from one reading of the table."""
        found = self._rows_of(targets)
        return {target: tuple(_proc(row) for row in rows if _may_end(row)) for target, rows in found.items()}

    def _rows_of(self, targets: Iterable[Target]) -> dict[Target, list[ProcRow]]:
        reading = self._read()
        return {target: reading.of(*target) for target in targets}

    def signal(self, procs: Iterable[Proc], signum: int) -> tuple[Proc, ...]:
        """A frozen process takes no signal: whatever is sent but a stop also thaws."""
        sent = tuple(proc for proc in procs if _send(proc, signum))
        if signum != signal.SIGSTOP:
            freezer.thaw(proc.pid for proc in sent)
        return sent

    def freeze(self, pid: int, run: str) -> str:
        """Hold a whole run where it is: "" or why it runs on. SIGCONT lets it go."""
        return freezer.freeze(run, lambda: self.members(pid, run), self.signal, self._clock.sleep)

    def alive(self, proc: Proc) -> bool:
        return is_alive(proc)

    def me(self) -> tuple[int, int]:
        return os.getpid(), procfs.start_of(os.getpid())

    def start_of(self, pid: int) -> int:
        return procfs.start_of(pid)

    def clients(self, project_id: str) -> tuple[Proc, ...]:
        """Every `tmux -C` of this user that sits in this project's anchor session, or is about to."""
        return tuple(_proc(r) for r in _tmuxes() if is_control_client(_words(r.pid), project_id))

    def listener(self, path: str) -> Proc | None:
        """The server is not asked: one that stands still may have no place left in its queue."""
        try:
            with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
                inodes = listening(file.read(), path)
        except OSError:
            return None
        links = {f"socket:[{inode}]" for inode in inodes}
        found = [row for row in _tmuxes() if links & _open_files(row.pid)] if links else []
        return _proc(found[0]) if len(found) == 1 else None

    def guests(self, server: Proc, runs: Collection[str]) -> tuple[Proc, ...]:
        rows = (r for r in procfs.table().values() if r.ppid == server.pid and r.sid == r.pid)
        return tuple(_proc(r) for r in rows if not r.zombie and procfs.run_of(r.pid) not in runs)

    def allowance(self, pid: int) -> Allowance:
        return (descriptors.of(pid) if pid else None) or descriptors.ours()

    def widen(self, pid: int, need: int) -> None:
        descriptors.widen_other(pid, need)

    def beyond(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        found = {row for rows in self._rows_of(targets).values() for row in rows}
        return tuple(_proc(row) for row in sorted(found) if not row.zombie and not procfs.own(row.pid))

    def chase(self, targets: Iterable[Target]) -> tuple[Proc, ...]:
        """One that hands a run on to a child, faster than a look takes, is met only among the last born."""
        runs = {run for _, run in targets if run}
        caught = []
        deadline = self._clock.mono() + _CHASE
        while (newest := procfs.last_born()) and self._clock.mono() < deadline:
            for pid in range(newest, max(newest - _NEAR, 1), -1):
                if procfs.run_of(pid) in runs and (row := procfs.row(pid)) is not None and _may_end(row):
                    caught.append(_proc(row))
                    self.signal(caught[-1:], signal.SIGKILL)
        return tuple(caught)

    def _read_runs(self, rows: Mapping[int, ProcRow]) -> dict[int, str]:
        """Run id by pid, "" for none; what is gone is forgotten.

        A young process is asked again next time: between fork and exec it still shows its parent's.
        """
        known, self._runs = self._runs, {}
        settled = procfs.ticks_ago(_SETTLED)
        runs = {}
        for row in rows.values():
            identity = (row.pid, row.start)
            run = known.get(identity)
            if run is None:
                run = "" if row.zombie else procfs.run_of(row.pid)
            if run or row.start < settled:
                self._runs[identity] = run
            runs[row.pid] = run
        return runs


class _Reading:
    """The table at one moment, and which processes belong together in it; worked out when it is asked for."""

    def __init__(
        self, rows: dict[int, ProcRow], runs_of: Callable[[Mapping[int, ProcRow]], dict[int, str]]
    ) -> None:
        self.rows = rows
        self._runs_of = runs_of

    @cached_property
    def children(self) -> dict[int, list[int]]:
        return self._by(lambda row: row.ppid)

    @cached_property
    def _sessions(self) -> dict[int, list[int]]:
        return self._by(lambda row: row.sid)

    @cached_property
    def _runs(self) -> dict[int, str]:
        return self._runs_of(self.rows)

    @cached_property
    def _carriers(self) -> dict[str, list[int]]:
        return self._by(lambda row: self._runs[row.pid])

    def of(self, leader: int, run: str) -> list[ProcRow]:
        """All of a run."""
        seeds = list(self._carriers.get(run, ())) if run else []
        if _proves_itself(leader, run, self.rows, self._runs):
            seeds += [leader, *self._sessions.get(leader, ())]
        return [self.rows[pid] for pid in _descend(seeds, self.children)]

    def _by(self, trait: Callable[[ProcRow], _Trait]) -> dict[_Trait, list[int]]:
        found: dict[_Trait, list[int]] = {}
        for row in self.rows.values():
            found.setdefault(trait(row), []).append(row.pid)
        return found


def _proves_itself(leader: int, run: str, rows: Mapping[int, ProcRow], runs: Mapping[int, str]) -> bool:
    row = rows.get(leader)
    if leader <= 1 or row is None:
        return False
    if not run or runs[leader] == run:
        return True
    parent = rows.get(row.ppid)
    return not runs[leader] and parent is not None and parent.name.startswith("tmux")


def _may_end(row: ProcRow) -> bool:
    return not row.zombie and row.pid not in {1, os.getpid()} and procfs.own(row.pid)


def is_alive(proc: Proc) -> bool:
    """Still there, and the same one; a record with start 0 (`procfs.start_of`) is known by its pid alone."""
    row = procfs.row(proc.pid)
    return row is not None and not row.zombie and proc.start in {0, row.start}


def _send(proc: Proc, signum: int) -> bool:
    """True when this very process was there and took the signal."""
    if proc.pid in {0, 1, os.getpid()}:
        return False
    handle = -1
    try:
        if hasattr(os, "pidfd_open"):
            handle = os.pidfd_open(proc.pid)
        if not is_alive(proc):
            return False
        if handle >= 0:
            signal.pidfd_send_signal(handle, signum)
        else:
            os.kill(proc.pid, signum)
    except OSError:
        return False
    else:
        return True
    finally:
        if handle >= 0:
            os.close(handle)


def _descend(seeds: Iterable[int], children: Mapping[int, Sequence[int]]) -> list[int]:
    """The seeds and all their descendants, each once."""
    found = list(dict.fromkeys(seeds))
    seen = set(found)
    for pid in found:  # grows while it is walked
        fresh = [child for child in children.get(pid, ()) if child not in seen]
        seen.update(fresh)
        found.extend(fresh)
    return found


def _proc(row: ProcRow) -> Proc:
    return Proc(
        pid=row.pid,
        start=row.start,
        ppid=row.ppid,
        sid=row.sid,
        name=row.name,
        exe=procfs.exe(row.pid),
        cpu=row.cpu,
        zombie=row.zombie,
        age=procfs.age(row),
    )


def _tmuxes() -> list[ProcRow]:
    """The tmux servers and clients of this user."""
    rows = procfs.table().values()
    return [r for r in rows if r.name.startswith("tmux") and not r.zombie and procfs.own(r.pid)]


def listening(text: str, path: str) -> set[int]:
    """The inodes of the sockets that wait for clients at that path, by the text of /proc/net/unix."""
    cells = (line.split(None, 7) for line in text.splitlines()[1:])
    named = [c for c in cells if len(c) == 8 and c[7] == path]  # noqa: PLR2004 - the last one is the path
    return {int(c[6]) for c in named if int(c[3], 16) & _LISTENS}


def _open_files(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def is_control_client(words: list[str], project_id: str) -> bool:
    """By its command line: control mode, and exactly our anchor. A founder of a server has neither."""
    return "-C" in words and ["-s", anchor(project_id)] in [words[i : i + 2] for i in range(len(words))]


def _words(pid: int) -> list[str]:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read(_WORDS_CAP).decode("utf-8", "replace").split("\0")
    return []
