"""The operator at the keyboard: what the verbs do, step by step, while the watchdog goes on around them.

A verb writes its intent and a hold first, works for some seconds, and lets go. It may fail half-way (a disk
that refuses, a tmux that hangs) or be killed; a hold ends with its process.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from fleet.core.desired import Hold, Want
from fleet.core.model import AgentSpec, Fleet, ServiceSpec
from fleet.journal.store import StoreError
from fleet.world.perform import Order, Performer
from fleet.world.ports import Unavailable
from fleet.world.records import Records
from fleet.world.world import House, World
from tests.sim.agents import Mood
from tests.sim.declared import LOG_DIR, SERVICE
from tests.sim.machine import Machine
from tests.sim.processes import SimProc

NEEDS_A_PERSON = frozenset({Mood.ASK, Mood.AUTH, Mood.DIALOG})
REFUSED = (OSError, StoreError, Unavailable)
SOFT_STOP = 5.0


@dataclass
class Sent:
    """A message the operator sent, and to whom."""

    agent: str
    text: str
    at: float


class Operator:
    """A person with a shell in the project. `later` runs a step as the operator, when the state is free."""

    def __init__(
        self, machine: Machine, world: World, fleet: Fleet, later: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self.machine = machine
        self.world = world
        self.fleet = fleet
        self.later = later
        self.house = House(world, LOG_DIR)
        self.records = Records(world, self.house)
        self.performer = Performer(world, self.house, self.records)
        self.sent: dict[str, Sent] = {}

    # -- intent

    def _wish(self, agents: list[str], **changes: object) -> bool:
        """Intent first. On a disk that refuses, a verb fails loudly and nothing is done."""
        try:
            self.world.disk.make_dir(self.house.state_dir)
            self.house.desired.update(lambda d: d.set(agents, **changes))
        except REFUSED:
            return False
        for member in (self.machine.members[n] for n in agents if n in self.machine.members):
            member.wish = str(changes.get("want", member.wish))
            member.paused = bool(changes.get("paused", member.paused))
            member.frozen = bool(changes.get("frozen", member.frozen))
        return True

    def _hold(self, agents: list[str], why: str, want: Want) -> SimProc | None:
        shell = self.machine.table.spawn("agents.py")
        hold = Hold(shell.pid, shell.start, self.machine.clock.wall() + 120, why)
        changes: dict[str, object] = {"hold": hold, "want": want}
        if want is Want.UP:
            changes |= {"paused": False, "frozen": False}
        if self._wish(agents, **changes):
            return shell
        self.machine.table.end(shell, code=1)
        return None

    def _let_go(self, agents: list[str], shell: SimProc) -> None:
        self._wish(agents, hold=None)
        self.machine.table.end(shell, code=0)

    # -- the verbs

    def up(self, agents: list[str], rng: Random) -> None:
        """Start what does not run; what runs is left alone."""
        names = [*agents, SERVICE] if len(agents) > 1 else agents
        shell = self._hold(names, "up", Want.UP)
        if shell is not None:
            self._pardon(agents)
            self._signal(agents, signals.SIGCONT)
            self.later(rng.uniform(0.05, 1.0), lambda: self._start_and_go(names, shell))

    def down(self, agents: list[str], rng: Random) -> None:
        """Stop the process sets, take the sessions away."""
        shell = self._hold(agents, "down", Want.DOWN)
        if shell is not None:
            self._stop(agents, shell, rng, lambda: self._let_go(agents, shell))

    def restart(self, agents: list[str], rng: Random) -> None:
        """Both, one after the other."""
        shell = self._hold(agents, "restart", Want.UP)
        if shell is not None:
            self._pardon(agents)
            self._stop(agents, shell, rng, lambda: self._start_and_go(agents, shell))

    def pause(self, agents: list[str], _rng: Random) -> None:
        """Supervised, but nothing is done to it."""
        self._wish(agents, paused=True)

    def unpause(self, agents: list[str], _rng: Random) -> None:
        """As before."""
        self._wish(agents, paused=False)

    def freeze(self, agents: list[str], _rng: Random) -> None:
        """Stop the process set in place."""
        if self._wish(agents, paused=True, frozen=True):
            self._signal(agents, signals.SIGSTOP)

    def thaw(self, agents: list[str], _rng: Random) -> None:
        """Let it go on."""
        self._signal(agents, signals.SIGCONT)
        self._wish(agents, paused=False, frozen=False)

    def reset(self, agents: list[str], _rng: Random) -> None:
        """Forget every tally and verdict."""
        self._pardon(agents)

    def send(self, agents: list[str], rng: Random) -> None:
        """Say something to an agent; each text is its own."""
        for name in agents:
            text = f"note {len(self.sent)} for {name}: {rng.randrange(10**6)}"
            asked = self._ask("send", name, {"text": text})
            if asked:
                self.sent[asked] = Sent(name, text, self.machine.clock.t)

    def make_peace(self, agents: list[str], rng: Random) -> None:
        """Everything wanted, nothing held back, every open question answered."""
        self.thaw(agents, rng)
        self.up(agents, rng)
        for member in self.machine.members.values():
            agent = member.agent
            if agent is not None and agent.alive and agent.mood in NEEDS_A_PERSON:
                agent.begin("answered by a person")

    # -- steps

    def _start_and_go(self, names: list[str], shell: SimProc) -> None:
        if not shell.alive:
            return
        with suppress(*REFUSED):  # a verb says so loudly; the watchdog sees what is wanted and goes on
            self._start(names)
        self._let_go(names, shell)

    def _start(self, names: list[str]) -> None:
        listed = self.world.tmux.listing().panes
        panes, runs = {p.ref.session: p for p in listed}, {p.ref.run: p for p in listed}
        orders = []
        for spec in self._specs(names):
            run = self.records.run(spec.session)
            pane = panes.get(spec.session) or (runs.get(run.id) if run is not None else None)
            if pane is not None and not pane.dead:
                continue
            for proc in self._lives(spec.name):
                self.machine.table.kill(proc, signals.SIGKILL)
            orders.append(Order(spec, "up", pane.ref if pane else None))
        self.performer.start(self.fleet, orders, lambda _name: True)

    def _stop(self, names: list[str], shell: SimProc, rng: Random, then: Callable[[], None]) -> None:
        self._signal(names, signals.SIGTERM)
        if rng.random() < 0.1:  # the person closes the terminal: the verb is gone, its hold with it
            self.later(1.0, lambda: self.machine.table.end(shell, signum=1))
        self.later(SOFT_STOP, lambda: self._force(names, shell, then))

    def _force(self, names: list[str], shell: SimProc, then: Callable[[], None]) -> None:
        if not shell.alive:
            return
        self._signal(names, signals.SIGKILL)
        sessions = {s.session for s in self._specs(names)}
        with suppress(*REFUSED):
            panes = self.world.tmux.listing().panes
            self.world.tmux.remove([p.ref for p in panes if p.ref.session in sessions])
        then()

    def _specs(self, names: list[str]) -> list[AgentSpec | ServiceSpec]:
        return [s for s in (*self.fleet.agents, *self.fleet.services) if s.name in names]

    def _lives(self, name: str) -> list[SimProc]:
        return [p for p in self.machine.table.by_pid.values() if p.agent == name and p.owner == "ours"]

    def _signal(self, agents: list[str], signum: int) -> None:
        for name in agents:
            for proc in self._lives(name):
                self.machine.table.kill(proc, signum)

    def _pardon(self, agents: list[str]) -> None:
        for name in agents:
            self._ask("reset", name)

    def _ask(self, kind: str, agent: str, args: dict[str, str] | None = None) -> str:
        try:
            return self.house.requests.submit(kind, agent, args)
        except REFUSED:
            return ""
