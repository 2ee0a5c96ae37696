"""The operator at the keyboard: the real verbs, over simulated ports, while the watchdog goes on around them.

A verb is a process with a fiber. It blocks where the real one does (a wait, a lock, a tmux that hangs), gives
way at some of its port calls, and may be killed at any of them: then no port answers it any more, so that
nothing of what it would have done on its way out happens.
"""

from __future__ import annotations

import io as streams
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from fleet.cli.common import Io
from fleet.cli.desk import Desk
from fleet.cli.main import parse as parse_words
from fleet.cli.main import told
from fleet.config import ConfigError
from fleet.core.seen import Listing, Proc
from fleet.journal.locks import Held
from fleet.world.descriptors import Allowance
from fleet.world.operator import Operator
from tests.sim.declared import CONFIG
from tests.sim.fiber import Fiber
from tests.sim.machine import Killed, Machine
from tests.sim.oracles import Violation
from tests.sim.tmux import SimTmux

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from tests.sim.simulation import Simulation

GIVES_WAY = 0.1  # the share of its port calls at which others get a turn
FAULT = "a bug of agent-fleet"  # what `agents.py` says of an exception that nobody expected


@dataclass
class Sent:
    """A message the operator sent, and to whom."""

    agent: str
    text: str
    delivered: bool = False  # by the word of the verb


@dataclass
class Verb:
    """One command, from its first word to its exit code; none if it was killed."""

    sim: Simulation
    words: tuple[str, ...]
    agents: tuple[str, ...]
    rng: Random
    kill: int = 0  # the port call at which it is killed
    then: Callable[[Verb], None] | None = None
    code: int | None = None
    out: streams.StringIO = field(default_factory=streams.StringIO)
    err: streams.StringIO = field(default_factory=streams.StringIO)
    calls: int = 0
    runs: dict[str, str] = field(default_factory=dict)  # of its agents, as it began
    contested: set[str] = field(default_factory=set)  # agents that another verb was at work on as it began
    held: bool = False  # it holds its agents
    let_go: bool = False  # it did, and does not any more

    def __post_init__(self) -> None:
        self.machine = self.sim.machine
        self.proc = self.machine.table.spawn("agents.py")
        self.proc.on_exit = lambda _code, _signum: self.sim.on_verb_gone(self)
        self.began = self.machine.clock.t
        self.is_watchdog = False  # it holds the watchdog's lock
        self.fiber = Fiber(self._run)

    @property
    def name(self) -> str:
        """Which one."""
        return self.words[0]

    # -- its life

    def resume(self) -> None:
        """It is its turn."""
        if self.fiber.over:
            return
        machine = self.machine
        before = machine.actor, machine.in_tick, machine.current
        machine.actor, machine.in_tick, machine.current = self.actor, False, self
        try:
            self.fiber.resume()
        finally:
            machine.actor, machine.in_tick, machine.current = before
        if self.fiber.over:
            self.sim.on_verb_over(self)
        else:
            self.sim.on_verb_step(self)

    @property
    def actor(self) -> str:
        """A verb that is the watchdog for a while is judged as one."""
        return "watchdog" if self.is_watchdog else "operator"

    def _run(self) -> None:
        io = Io(self.out, self.err, SimDesk(self))
        try:
            module, args = parse_words(self.words)
            self.code = module.run(args, io)
        except Killed:
            return
        except Violation:
            raise
        except Exception as fault:
            self.code = told(fault, io)
            if FAULT in self.err.getvalue():
                self.sim.oracles.fail("I35", f"{' '.join(self.words)} fell over\n{traceback.format_exc()}")
        finally:
            self.machine.table.end(self.proc, code=self.code)

    def end(self) -> None:
        """The simulation is over: unwind."""
        self.machine.table.end(self.proc, signum=9)
        while not self.fiber.over:
            with suppress(Violation):
                self.resume()

    # -- its ports

    def before(self, site: str) -> None:
        """Every port call: the place to be killed at, or to give way."""
        if not self.proc.alive:
            raise Killed
        self.calls += 1
        if self.kill and self.calls >= self.kill:
            self.machine.table.end(self.proc, signum=9)
            raise Killed
        if self.is_watchdog and site == "tmux.listing":
            self.sim.oracles.on_tick_begun()
        if self.rng.random() < GIVES_WAY:
            self.machine.woken = self.machine.woken or self.rng.random() < 0.3
            self.sleep(self.rng.uniform(0.0, 0.05))

    def sleep(self, seconds: float) -> None:
        """Others get their turns."""
        if not self.proc.alive:
            raise Killed
        self.machine.clock.after(max(seconds, 1e-4), self.resume)
        self.fiber.pause()
        if not self.proc.alive:
            raise Killed
        self.machine.actor = self.actor


class SimDesk(Desk):
    """The project of the simulation."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb
        self._sim = verb.sim

    @property
    def environ(self) -> Mapping[str, str]:
        return {}

    def wall(self) -> float:
        return self._sim.machine.clock.wall()

    def declared(self, args: object, io: Io) -> tuple[Fleet, str]:
        self._verb.before("config")
        text = self._sim.machine.disk.text(CONFIG)
        return self._sim.parsed(text), text

    def running(self, args: object, io: Io, *, trust: bool | None) -> Fleet:
        try:
            return self.declared(args, io)[0]
        except ConfigError:
            return self._sim.parsed(self._sim.last_good)

    def require_ground(self, fleet: Fleet, text: str) -> None:
        pass

    def keep(self, fleet: Fleet, text: str) -> None:
        self._sim.last_good = text

    def operator(self, fleet: Fleet) -> Operator:
        return Operator(fleet, self._sim.world(self._verb))


class SimHost:
    """The machine around a verb."""

    def __init__(self, verb: Verb, tmux: SimTmux) -> None:
        self._verb = verb
        self._sim = verb.sim
        self._machine: Machine = verb.machine
        self._tmux = tmux

    def me(self) -> tuple[int, int]:
        return self._verb.proc.pid, self._verb.proc.start

    def start_of(self, pid: int) -> int:
        self._verb.before("host.start_of")
        proc = self._machine.table.by_pid.get(pid)
        return proc.start if proc is not None else 0

    def kill(self, pid: int, signum: int) -> None:
        self._verb.before("host.kill")
        proc = self._machine.table.by_pid.get(pid)
        if proc is not None:
            self._sim.on_host_signal(proc, signum)
            self._machine.table.kill(proc, signum)

    def holder(self) -> Held | None:
        self._verb.before("host.holder")
        return self._sim.holder()

    def lead(self) -> SimLead:
        return SimLead(self._verb)

    def nudge(self) -> None:
        self._verb.before("host.nudge")
        self._machine.woken = True

    def require_tmux(self) -> None:
        pass

    def server(self) -> SimTmux:
        return self._tmux

    def socket(self) -> str:
        return self._tmux.path

    def users_listing(self) -> Listing:
        return Listing(None)

    def clients(self) -> tuple[Proc, ...]:
        return ()

    def server_process(self, path: str) -> Proc | None:
        self._verb.before("host.server_process")
        server = self._machine.tmux.server
        return self._machine.table.view(server.proc) if server is not None else None

    def guests(self, server: Proc, runs: set[str]) -> tuple[Proc, ...]:
        table = self._machine.table
        found = [p for p in table.by_pid.values() if p.ppid == server.pid and p.sid == p.pid]
        return tuple(table.view(p) for p in found if p.run not in runs)

    def limit(self, pid: int) -> Allowance:
        return Allowance(1 << 20, 1 << 20)

    def widen(self, pid: int, need: int) -> None:
        pass


class SimLead:
    """The watchdog's lock, as a verb takes it."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb

    def acquire(self) -> None:
        self._verb.before("lead")
        if (held := self._verb.sim.holder()) is not None:
            raise held
        self._verb.sim.lead(self._verb)

    def release(self) -> None:
        self._verb.sim.drop_lead(self._verb)


def words_for(name: str, agents: Sequence[str], rng: Random, number: int) -> tuple[str, ...]:
    """What the operator types."""
    wait = () if rng.random() < 0.2 else ("--no-wait",)
    match name:
        case "up" | "restart":
            return (name, *agents, *wait)
        case "restart_fresh":
            return ("restart", "--fresh", *agents, *wait)
        case "up_all":
            return ("up", *wait)
        case "down_all":
            return ("down",)
        case "freeze":
            return ("pause", "--freeze", *agents)
        case "thaw":
            return ("unpause", *agents)
        case "pause_until":
            how = rng.choice(((), ("--freeze",)))
            return ("pause", *how, "--until", rng.choice(("5m", "45m")), *agents)
        case "send":
            text = f"note {number} for {agents[0]}: {rng.randrange(10**6)}"
            patience = rng.choice(("5", "5", "60", "60", "2400"))
            return ("send", agents[0], text, "--timeout", patience)
        case "send_patiently":
            return ("send", agents[0], f"note {number} for {agents[0]}", "--timeout", "3000")
        case _:
            return (name, *agents)
