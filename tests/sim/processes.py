"""A process table with few pids, so that they are soon used again, and children that outlive parents."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Collection, Iterable
from random import Random

from fleet.core.seen import Proc
from fleet.ports import Allowance, Target
from tests.sim.clock import SimClock

FIRST_PID = 100
STOPPERS = (signals.SIGSTOP, signals.SIGTSTP)


class SimProc:
    """One process as it truly is."""

    __slots__ = (
        "agent",
        "alive",
        "burned",
        "exe",
        "handler",
        "ignores",
        "load",
        "load_since",
        "name",
        "on_exit",
        "owner",
        "pid",
        "ppid",
        "run",
        "sid",
        "start",
        "stopped",
    )

    def __init__(self, pid: int, start: int, name: str) -> None:
        self.pid = pid
        self.start = start
        self.name = name
        self.exe = name
        self.ppid = 1
        self.sid = pid
        self.run = ""
        self.agent = ""
        self.owner = "user"  # "ours" for whatever a launch script became, and its children
        self.alive = True
        self.stopped = False
        self.ignores: frozenset[int] = frozenset()
        self.handler: Callable[[int], bool] | None = None  # True: the signal was dealt with
        self.on_exit: Callable[[int | None, int | None], None] | None = None
        self.load = 0.0
        self.load_since = 0.0
        self.burned = 0.0


class ProcessTable:
    """What is true: every process of the machine, ours and the user's."""

    def __init__(self, clock: SimClock, rng: Random, pid_max: int = 400) -> None:
        self._clock = clock
        self._rng = rng
        self._pid_max = pid_max
        self._last = FIRST_PID + rng.randrange(100)
        self.by_pid: dict[int, SimProc] = {}
        self.changes = 0  # how often somebody came or went
        self.on_end: Callable[[SimProc, int | None, int | None], None] = lambda _proc, _code, _signum: None

    def spawn(self, name: str, parent: SimProc | None = None, *, session_leader: bool = False) -> SimProc:
        """A new process under the next free pid; a child inherits session, run and owner.

        As in the kernel, a number that still names a session is not free.
        """
        pid, sessions = self._last, {proc.sid for proc in self.by_pid.values()}
        while True:
            pid = pid + 1 if pid < self._pid_max else FIRST_PID
            if pid not in self.by_pid and pid not in sessions:
                break
        self._last = pid
        proc = SimProc(pid, int(self._clock.mono() * 100), name)
        proc.load_since = self._clock.t
        if parent is not None:
            proc.ppid, proc.run, proc.agent, proc.owner = parent.pid, parent.run, parent.agent, parent.owner
            if not session_leader:
                proc.sid = parent.sid
        self.by_pid[pid] = proc
        self.changes += 1
        return proc

    def set_load(self, proc: SimProc, load: float) -> None:
        """How much of a processor it uses from now on."""
        proc.burned = self.cpu(proc)
        proc.load, proc.load_since = load, self._clock.t

    def cpu(self, proc: SimProc) -> float:
        """Processor seconds used so far."""
        return proc.burned + (0.0 if proc.stopped else proc.load * (self._clock.t - proc.load_since))

    def end(self, proc: SimProc, code: int | None = None, signum: int | None = None) -> None:
        """The process is gone; its children belong to init now."""
        if not proc.alive:
            return
        proc.alive = False
        self.by_pid.pop(proc.pid, None)
        self.changes += 1
        for child in self.by_pid.values():
            if child.ppid == proc.pid:
                child.ppid = 1
        self.on_end(proc, code, signum)
        if proc.on_exit is not None:
            proc.on_exit(code, signum)

    def kill(self, proc: SimProc, signum: int) -> None:
        """Deliver a signal the way the kernel would."""
        if not proc.alive:
            return
        if signum == signals.SIGKILL:
            self.end(proc, signum=signum)
        elif signum in STOPPERS:
            proc.burned = self.cpu(proc)
            proc.stopped, proc.load_since = True, self._clock.t
        elif signum == signals.SIGCONT:
            if proc.stopped:
                proc.stopped, proc.load_since = False, self._clock.t
                if proc.handler is not None:
                    proc.handler(signum)
        elif proc.stopped or signum in proc.ignores or (proc.handler is not None and proc.handler(signum)):
            return
        else:
            self.end(proc, signum=signum)

    def hang_up(self, leader_pid: int) -> None:
        """A terminal went away: only members of its session that neither ignore nor handle it die."""
        for proc in [p for p in self.by_pid.values() if p.sid == leader_pid]:
            if proc.stopped:
                self.kill(proc, signals.SIGCONT)
            self.kill(proc, signals.SIGHUP)

    def below(self, pid: int) -> list[SimProc]:
        """The process and its descendants, itself first."""
        top = self.by_pid.get(pid)
        if top is None:
            return []
        found, seen = [top], {pid}
        for parent in found:
            for proc in self.by_pid.values():
                if proc.ppid == parent.pid and proc.pid not in seen:
                    seen.add(proc.pid)
                    found.append(proc)
        return found

    def view(self, proc: SimProc) -> Proc:
        """What procfs would tell about it."""
        return Proc(
            pid=proc.pid,
            start=proc.start,
            ppid=proc.ppid,
            sid=proc.sid,
            name=proc.name[:15],
            exe=proc.exe,
            cpu=self.cpu(proc),
            age=self._clock.mono() - proc.start / 100,
        )


class SimProcesses:
    """The Processes port. `before` runs ahead of each call and may crash the caller or let time pass."""

    def __init__(
        self,
        table: ProcessTable,
        before: Callable[[str], None],
        on_signal: Callable[[SimProc, int], None],
        who: Callable[[], SimProc | None] = lambda: None,
        listener: Callable[[], SimProc | None] = lambda: None,
    ) -> None:
        """`who` is the process that asks, `listener` the tmux server."""
        self._who = who
        self._listener = listener
        self._table = table
        self._before = before
        self._on_signal = on_signal

    def begin_look(self) -> None:
        """Every reading of this table is of this very moment."""

    def count(self, pid: int, run: str) -> int:
        """How many members a run has."""
        return len(self.members(pid, run))

    def tree(self, pid: int) -> tuple[Proc, ...]:
        """The process and its descendants, itself first."""
        self._before("processes.tree")
        return tuple(self._table.view(p) for p in self._table.below(pid))

    def members(self, pid: int, run: str) -> tuple[Proc, ...]:
        """Session leader, its session, descendants, and whoever carries the run id.

        As on a real host: a leader of another run has got the number of one that is gone.
        """
        self._before("processes.members")
        known = self._leads(pid, run)
        found = {p.pid: p for p in self._table.below(pid)} if known else {}
        for proc in self._table.by_pid.values():
            if (known and proc.sid == pid) or (run and proc.run == run):
                for one in self._table.below(proc.pid):
                    found[one.pid] = one
        return tuple(self._table.view(p) for p in found.values())

    def _leads(self, pid: int, run: str) -> bool:
        """Does the process of that number lead this run? One without a run may be about to carry it."""
        leader = self._table.by_pid.get(pid)
        if leader is None or (leader.run and run):
            return leader is not None and leader.run == run
        parent = self._table.by_pid.get(leader.ppid)
        return not run or (parent is not None and parent.name.startswith("tmux"))

    def sweep(self, targets: Iterable[Target]) -> dict[Target, tuple[Proc, ...]]:
        """The members of many runs."""
        return {target: self.members(*target) for target in targets}

    def beyond(self, _targets: Iterable[Target]) -> tuple[Proc, ...]:
        """Whatever carries a run here is ours to end."""
        return ()

    def chase(self, _targets: Iterable[Target]) -> tuple[Proc, ...]:
        """A look takes no time here."""
        return ()

    def freeze(self, pid: int, run: str) -> str:
        """Hold a whole run where it is."""
        self.signal(self.members(pid, run), signals.SIGSTOP)
        return ""

    def signal(self, procs: Iterable[Proc], signum: int) -> tuple[Proc, ...]:
        """Send it to those that still are who they were."""
        self._before("processes.signal")
        reached = []
        for proc in procs:
            real = self._table.by_pid.get(proc.pid)
            if real is not None and real.start == proc.start:
                self._on_signal(real, signum)
                self._table.kill(real, signum)
                reached.append(proc)
        return tuple(reached)

    def alive(self, proc: Proc) -> bool:
        """Still there, and still the same one."""
        real = self._table.by_pid.get(proc.pid)
        return real is not None and real.start == proc.start

    def me(self) -> tuple[int, int]:
        """Who asks."""
        proc = self._who()
        assert proc is not None, "a process asks"
        return proc.pid, proc.start

    def start_of(self, pid: int) -> int:
        """When it started; 0 if it is gone."""
        self._before("processes.start_of")
        proc = self._table.by_pid.get(pid)
        return proc.start if proc is not None else 0

    def clients(self, _project_id: str) -> tuple[Proc, ...]:
        """The watchdog speaks to tmux without one here."""
        return ()

    def listener(self, _path: str) -> Proc | None:
        """The tmux server."""
        self._before("processes.listener")
        server = self._listener()
        return self._table.view(server) if server is not None else None

    def guests(self, server: Proc, runs: Collection[str]) -> tuple[Proc, ...]:
        """Panes of others."""
        found = [p for p in self._table.by_pid.values() if p.ppid == server.pid and p.sid == p.pid]
        return tuple(self._table.view(p) for p in found if p.run not in runs)

    def allowance(self, _pid: int) -> Allowance:
        """Open files are no trouble here."""
        return Allowance(1 << 20, 1 << 20)

    def widen(self, pid: int, need: int) -> None:
        """It may have them."""
