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

from fleet.config import ConfigError
from fleet.supervisor.operator import Operator
from fleet.verbs.fleets import Fleets
from fleet.verbs.io import Io
from fleet.verbs.main import parse as parse_words
from fleet.verbs.main import told
from tests.sim.declared import CONFIG
from tests.sim.fiber import Fiber
from tests.sim.machine import Killed
from tests.sim.oracles import Violation

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
        io = Io(self.out, self.err, SimFleets(self), self.sim.clock_for(self))
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


class SimFleets(Fleets):
    """The project of the simulation."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb
        self._sim = verb.sim

    @property
    def environ(self) -> Mapping[str, str]:
        return {}

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

    def keep(self, fleet: Fleet, text: str, now: float) -> None:
        self._sim.last_good = text

    def operator(self, fleet: Fleet) -> Operator:
        return Operator(fleet, self._sim.world(self._verb), self._sim.helpers(self._verb))


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
