"""The simulated machine: everything that is true, in one place, and the doors through which it is seen.

Each port call passes `before`: there the watchdog may be killed, and there the world may change under its
hands, at the very call the seed has chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from fleet.ports import Hint, Launch, PaneDied, Wake
from tests.sim.agents import PERSONAS, Account, SimAgent, Temper
from tests.sim.clock import SimClock
from tests.sim.declared import LOG_DIR, WATCHDOG_SESSION, programs_of
from tests.sim.disk import SimDisk
from tests.sim.names import phase_in
from tests.sim.processes import ProcessTable, SimProc, SimProcesses
from tests.sim.script import read_script
from tests.sim.sources import Sources
from tests.sim.tmux import Program, SimSession, SimTmux, TmuxMachine

SHELL_S = 0.05  # how long a shell takes to find out that there is no such program


class Killed(BaseException):
    """SIGKILL: the watchdog is gone in the middle of whatever it did."""


@dataclass
class SimMember:
    """One agent as the operator thinks of it, and every life it has had."""

    name: str
    persona: str
    account: Account
    wish: str = "up"
    paused: bool = False
    frozen: bool = False
    until: float = 0.0  # wall: when a pause ends by itself
    watch: str = "heal+stall"
    resume: bool = False
    kind: str = "persistent"
    agent: SimAgent | None = None
    conversation: str = ""  # the one its last life had
    fresh: bool = False  # a person asked for a new conversation
    afresh: bool = False  # its conversation could not go on when it ended: a new one may begin
    bad_boots: int = 0  # resumed lives in a row that never got ready
    heard: list[tuple[str, str]] = field(default_factory=list)  # (run, message) of earlier lives


class Caller(Protocol):
    """Whoever calls a port and is not the watchdog."""

    def before(self, site: str) -> None: ...


class StillLife:
    """A service, the watchdog's own session, or whatever is not an agent: it runs and shows nothing."""

    def __init__(self, wall: float) -> None:
        self._wall = wall

    def screen(self) -> str:
        return ""

    def cursor(self) -> tuple[int, int]:
        return (0, 0)

    def activity(self) -> float:
        return self._wall

    def paste(self, text: str) -> None:
        """Nobody reads it."""

    def key(self, name: str) -> None:
        """Nobody reads it."""


class Machine:
    """Clock, processes, tmux, disk and agents of one seed."""

    def __init__(self, seed: int, *, epoch: float, zone: str, temper: Temper) -> None:
        self.seed = seed
        self.zone = zone
        self.temper = temper
        self.clock = SimClock(epoch)
        self.table = ProcessTable(self.clock, Random(f"{seed}/pids"))
        self.disk = SimDisk(self.clock.wall, Random(f"{seed}/disk"), self.before)
        self.tmux = TmuxMachine(
            self.clock, Random(f"{seed}/tmux"), self.table, self._start, lambda s: self.wake(PaneDied(s))
        )
        self.members: dict[str, SimMember] = {}
        self.runs: dict[str, str] = {}  # run id -> name of the agent or service it was started for
        self.condemned: set[str] = set()  # runs that a verb asked to end
        self.partial = 0  # tmux answers still to be cut short
        self.lives = 0
        self.moods: Counter[str] = Counter()
        self.actor = "watchdog"
        self.calls = 0
        self.in_tick = False
        self.woken = False
        self.keys: set[Wake] = set()  # what woke it
        self.deaf = False  # death notices get lost
        self.current: Caller | None = None  # the verb that has its turn
        self.doomed = False  # somebody has killed the watchdog in the middle of its tick
        self.on_watchdog: Callable[[SimSession], None] = lambda _session: None  # its session was made
        self.on_turn: Callable[[SimAgent], None] | None = None
        self.on_heard: Callable[[SimAgent, str], None] | None = None
        self.sources = Sources(self, Random(f"{seed}/sources"))
        self.ports_given = 20_000
        self.armed: list[tuple[int, Callable[[], None]]] = []  # what happens at a coming port call

    # -- doors

    def ports(
        self,
        project: str,
        on_act: Callable[[str, SimSession | None, str], None],
        on_signal: Callable[[SimProc, int], None],
        wait: Callable[[float], None] | None = None,
        who: Callable[[], SimProc | None] = lambda: None,
    ) -> tuple[SimTmux, SimProcesses]:
        """The tmux and process ports for one watchdog or one verb."""
        return (
            SimTmux(self.tmux, project, self.before, on_act, self._cut_short, wait),
            SimProcesses(self.table, self.before, on_signal, who, self._listener),
        )

    def before(self, site: str) -> None:
        """Every port call comes through here first."""
        if self.current is not None:
            self.current.before(site)
            return
        self.calls += 1
        if self.doomed and self.in_tick:
            raise Killed
        if self.armed and self.in_tick and self.actor == "watchdog":
            due = [happens for left, happens in self.armed if left <= 1]
            self.armed = [(left - 1, happens) for left, happens in self.armed if left > 1]
            for happens in due:
                happens()

    def _listener(self) -> SimProc | None:
        return self.tmux.server.proc if self.tmux.server is not None else None

    def _cut_short(self) -> bool:
        self.partial = max(0, self.partial - 1)
        return self.partial > 0

    def arm(self, calls: int, happens: Callable[[], None]) -> None:
        """Let something happen at that port call of the watchdog's coming ticks."""
        self.armed.append((calls, happens))

    def wake(self, key: Wake = Hint.TMUX) -> None:
        """What would end the watchdog's sleep, and the key it would find."""
        if not self.deaf:
            self.woken = True
            self.keys.add(key)

    # -- programs

    def _start(self, session: SimSession, launch: Launch) -> Program:
        facts = read_script(self.disk.text(launch.script))
        session.proc.agent = facts.agent
        self.runs[launch.run] = facts.agent
        if session.name == WATCHDOG_SESSION:
            self.on_watchdog(session)
        member = self.members.get(facts.agent)
        if member is None or facts.program not in PERSONAS:
            session.proc.name = session.proc.exe = facts.program or "sh"
            if programs_of(facts.agent) in self.disk.without:  # its shell is the first to look for it
                self.clock.after(SHELL_S, lambda: self.table.end(session.proc, code=127))
            return StillLife(self.clock.wall())
        self.lives += 1
        if member.agent is not None:
            member.heard += [(member.agent.proc.run, text) for text in member.agent.received]
        member.agent = SimAgent(
            facts.agent,
            PERSONAS[facts.program],
            session,
            clock=self.clock,
            rng=Random(f"{self.seed}/{facts.agent}/{self.lives}"),
            table=self.table,
            temper=self.temper,
            account=member.account,
            zone=self.zone,
            moods=self.moods,
            kickoff=facts.kickoff,
            conversation=facts.conversation,
            resumed=facts.resumed,
            phase=self._phase(launch.script),
            on_turn=self.on_turn if member.kind != "persistent" else None,
            on_heard=self.on_heard,
            on_hook=self.sources.report,
        )
        if facts.preamble:  # its own last line says that it has ended
            said = f"{launch.run} 0\n".encode()
            path = f"{LOG_DIR}/state/preamble-{launch.session}"
            self.clock.after(member.agent.rng.uniform(0.01, 3.0), lambda: self.disk.put(path, said))
        if facts.port:
            key = self.disk.text(f"{LOG_DIR}/state/key-{launch.session}").strip()
            self.sources.listen(member.agent, facts.port, key)
        return member.agent

    def _phase(self, script: str) -> str:
        """The phase that the words at its start name."""
        return phase_in(self.disk.text(script.replace("/launch-", "/kickoff-").removesuffix(".sh") + ".txt"))

    def port(self) -> int:
        """A free port of the loopback."""
        self.ports_given += 1
        return self.ports_given

    def living(self) -> list[SimAgent]:
        """Agents whose process runs."""
        return [m.agent for m in self.members.values() if m.agent is not None and m.agent.alive]

    def reboot(self) -> None:
        """Power cut: every process is gone, the disk forgets what was not synced."""
        self.tmux.kill_server()
        for proc in list(self.table.by_pid.values()):
            self.table.end(proc, signum=9)
        self.disk.power_cut()
        self.clock.boot()
