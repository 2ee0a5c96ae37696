"""One seed, from the first `up` to the last look: storms first, then peace, then everything must be well.

The supervisor under test is the real one. It is built, killed and built again over the same machine; between
its ticks time jumps to whatever comes first, its own wake-up or somebody else's doing.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from fleet.config import ConfigError, parse
from fleet.core.decide import Judgement
from fleet.core.desired import Hold
from fleet.core.model import Fleet
from fleet.core.views import Row
from fleet.watchdog import Watchdog
from fleet.world.world import World
from tests.sim.agents import CALM, Account
from tests.sim.declared import CONFIG, PROJECT_DIR, Declared, toml
from tests.sim.faults import Fault, schedule, temper
from tests.sim.liveness import Liveness
from tests.sim.machine import Killed, Machine, Member
from tests.sim.nemesis import Nemesis
from tests.sim.oracles import Oracles, Policy, Violation
from tests.sim.verbs import Operator

DAY = 86_400.0
STORM = 0.7  # the share of a run in which faults strike
TICK_COST = 0.004
SPINS = 2_000  # ticks within one simulated second that are no longer work
# Ordinary days, and nights in which an hour is missing or comes twice.
EPOCHS = (
    (1_784_100_000.0, "UTC"),
    (1_774_740_000.0, "Europe/Berlin"),
    (1_792_878_000.0, "Europe/Berlin"),
    (1_772_950_000.0, "America/New_York"),
    (1_798_700_000.0, "Asia/Kolkata"),
)


@dataclass
class Report:
    """How a run went."""

    seed: int
    hours: float
    ticks: int = 0
    failure: str = ""
    rules: Counter[str] = field(default_factory=Counter)
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    moods: Counter[str] = field(default_factory=Counter)


def parsed(text: str, path: str) -> Fleet:
    """Reading the same file again costs nothing here; in production its bytes are compared first."""
    found = _parsed(text, path)
    if isinstance(found, ConfigError):
        raise found
    return found


@lru_cache(maxsize=64)
def _parsed(text: str, path: str) -> Fleet | ConfigError:
    try:
        return parse(text, path, is_file=lambda _path: True)
    except ConfigError as error:
        return error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Nobody gets real randomness while a seed runs: a run must be the same every time."""
    real, drawn = os.urandom, Random(f"{seed}/urandom")
    os.urandom = drawn.randbytes
    try:
        yield
    finally:
        os.urandom = real


class SimLock:
    """The state lock: verbs wait for it, and nobody keeps it over a death."""

    def __init__(self) -> None:
        self.depth = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


class Simulation:
    """Everything of one run."""

    def __init__(
        self,
        seed: int,
        hours: float,
        faults: tuple[Fault, ...] | None = None,
        agents: int = 10,
        declared: list[Declared] | None = None,
    ) -> None:
        self.seed = seed
        self.end = hours * 3600.0
        rng = Random(f"{seed}/world")
        epoch, zone = rng.choice(EPOCHS)
        self.machine = Machine(seed, epoch=epoch + rng.uniform(0, 7200), zone=zone, temper=temper(seed))
        self.oracles = Oracles(self.machine, Policy())
        declared = self._declare(rng, agents) if declared is None else declared
        self._prepare(declared)
        self.nemesis = Nemesis(self.machine, self.oracles, self, declared)
        self.faults = schedule(seed, self.end * STORM) if faults is None else faults
        self.lock = SimLock()
        self.report = Report(seed, hours)
        self.watchdog: Watchdog | None = None
        self.alive = False  # is there a watchdog process?
        self.revive_at = 1.5
        self.touched: list[str] = []
        self.stopped_until = 0.0
        self.fleet = parsed(toml(declared), CONFIG)
        self._draw = Random(f"{seed}/draw")
        self.operator = Operator(self.machine, self.world("operator"), self.fleet, self._later)
        self.liveness = Liveness(self.machine, self.oracles, self.operator)
        self._last_second = (-1, 0)
        self._marked: dict[str, Judgement] = {}
        self._rows: dict[str, Row] = {}

    def _declare(self, rng: Random, agents: int) -> list[Declared]:
        declared = []
        for number in range(agents):
            backend = ("clod", "clod", "opal", "plain")[number % 4]
            one = Declared(
                f"a{number}",
                backend,
                watch=rng.choice(("heal+stall", "heal+stall", "heal", "none")) if number else "heal+stall",
                account=rng.choice(("", "", "team")) if backend != "plain" else "",
                resume=backend == "clod" and rng.random() < 0.5,
                wake=rng.choice((0.0, 0.0, 3600.0)),
            )
            declared.append(one)
        return declared

    def _prepare(self, declared: list[Declared]) -> None:
        """The project on disk, and its members as the operator thinks of them."""
        accounts: dict[str, Account] = {}
        for one in declared:
            shared = accounts.setdefault(one.account or one.name, Account())
            self.machine.members[one.name] = Member(
                one.name, one.backend, shared, watch=one.watch, resume=one.resume
            )
        self.machine.disk.dirs.update(("/", PROJECT_DIR))
        self.machine.disk.put(CONFIG, toml(declared).encode(), 0o644)
        self.machine.disk.put(f"{PROJECT_DIR}/wake.md", b"Have a look whether anything is left to do.\n")

    def world(self, actor: str) -> World:
        """Ports for one supervisor or one verb."""
        tmux, processes = self.machine.ports(self.project, self.oracles.on_act, self.oracles.on_signal)
        return World(
            tmux=tmux,
            processes=processes,
            clock=self.machine.clock,
            disk=self.machine.disk,
            lock=self.lock,
            draw=lambda: f"{self._draw.getrandbits(128):032x}",
            holds=self._holds,
            preflight=lambda _fleet, agent: "bin is not there" if agent.name in self.machine.missing else "",
            environ={"PATH": "/bin", "HOME": "/root"},
            zone=self.machine.zone,
            point=self.machine.before if actor == "watchdog" else lambda _name: None,
        )

    @property
    def project(self) -> str:
        """The stamp of this project."""
        return parsed(toml([Declared("a0")]), CONFIG).project_id

    def _holds(self, hold: Hold) -> bool:
        proc = self.machine.table.by_pid.get(hold.pid)
        return proc is not None and proc.start == hold.start

    # -- the supervisor's own life

    def kill_watchdog(self, down_for: float) -> None:
        """SIGKILL, now; somebody starts it again later."""
        if self.alive:
            self.alive = False
            self.revive_at = self.machine.clock.t + down_for
        if self.machine.in_tick:
            raise Killed

    def stop_watchdog(self, seconds: float) -> None:
        """SIGSTOP: it does not even know."""
        self.stopped_until = self.machine.clock.t + seconds
        if self.machine.in_tick:
            self.machine.in_tick = False
            self._until_continued()
            self.machine.in_tick = True

    def _until_continued(self) -> None:
        """Time passes for everybody else; peace ends the stop."""
        clock = self.machine.clock
        while clock.t < self.stopped_until:
            due = clock.next_event()
            clock.advance_to(self.stopped_until if due is None else min(due, self.stopped_until))

    def verb(self, name: str, agents: list[str], rng: Random) -> None:
        """One of the operator's verbs."""
        self.touched = agents
        self._as_operator(lambda: getattr(self.operator, name)(agents, rng), agents)

    def _later(self, delay: float, step: Callable[[], None]) -> None:
        agents = self.touched
        self.machine.clock.after(delay, lambda: self._as_operator(step, agents))

    def _as_operator(self, step: Callable[[], None], agents: list[str]) -> None:
        """Verbs wait for the state lock, as real ones do."""
        if self.lock.depth:
            self.touched = agents
            self._later(0.2, step)
            return
        actor, self.machine.actor = self.machine.actor, "operator"
        ticking, self.machine.in_tick = self.machine.in_tick, False
        self.touched = agents
        try:
            step()
        finally:
            self.machine.actor, self.machine.in_tick = actor, ticking
        for agent in agents:
            self.oracles.excuses.touched[agent] = self.machine.clock.t
        self.machine.woken = True

    def _open(self) -> None:
        self.machine.actor = "watchdog"
        self.oracles.looked = False
        self.oracles.on_tick_begun()
        self.lock.depth = 0
        self.watchdog = Watchdog(self.world("watchdog"), CONFIG, parsed)
        self.machine.in_tick = True
        try:
            refused = self.watchdog.open()
        except OSError:
            refused = "the disk"
        finally:
            self.machine.in_tick = False
        self.alive = not refused
        if refused:
            self.revive_at = self.machine.clock.t + 5.0

    # -- time

    def run(self) -> Report:
        """Storm, peace, verdict."""
        for fault in self.faults:
            self.machine.clock.after(fault.at, lambda f=fault: self.nemesis.strike(f))
        self.machine.clock.after(self.end * STORM, self._peace)
        try:
            with seeded(self.seed):
                self._all()
        except Violation as broken:
            self.report.failure = str(broken)
        except Exception:
            self.report.failure = (
                f"I35: the supervisor fell over (t={self.machine.clock.t:.2f})\n{traceback.format_exc()}"
            )
        self.report.acts.update(self.oracles.acts)
        self.report.struck.update(self.nemesis.struck)
        self.report.moods.update(self.machine.moods)
        return self.report

    def _all(self) -> None:
        self.verb("up", list(self.machine.members), Random(0))
        while self.machine.clock.t < self.end:
            self._step()
        self.liveness.at_the_end()

    def _peace(self) -> None:
        self.nemesis.peace()
        self.machine.temper.weights = dict(CALM)
        self.machine.temper.boot_death = self.machine.temper.not_found = 0.0
        self.stopped_until = 0.0
        self.verb("make_peace", list(self.machine.members), Random(0))
        self.liveness.begin()

    def _step(self) -> None:
        clock = self.machine.clock
        if not self.alive:
            self._until(max(clock.t, self.revive_at), heedless=True)
            if not self.alive:
                try:
                    self._open()
                except Killed:
                    self.machine.in_tick = False
            return
        delay = self._tick()
        if self.alive:
            self._until(clock.t + delay, heedless=False)
            self._until_continued()

    def _until(self, t: float, *, heedless: bool) -> None:
        """Let time pass to `t`, or to the first thing that wakes the watchdog."""
        clock, machine = self.machine.clock, self.machine
        machine.woken = False
        while (due := clock.next_event()) is not None and due <= t:
            clock.advance_to(due)
            if not heedless and (machine.woken or not self.alive):
                return
        clock.advance_to(t)

    def _tick(self) -> float:
        machine, watchdog = self.machine, self.watchdog
        assert watchdog is not None
        machine.clock.advance_to(machine.clock.t + TICK_COST)
        machine.actor, machine.in_tick = "watchdog", True
        self.oracles.on_tick_begun()
        self.report.ticks += 1
        self._spins()
        try:
            delay = watchdog.tick()
        except Killed:
            return 0.0
        finally:
            machine.in_tick = False
            self.lock.depth = 0
        self._mark(watchdog)
        self.oracles.on_tick_over()
        self.liveness.look()
        return delay

    def _spins(self) -> None:
        second, count = self._last_second
        now = int(self.machine.clock.t)
        self._last_second = (now, count + 1 if now == second else 1)
        if self._last_second[1] > SPINS:
            self.oracles.fail("I50", "the watchdog spins: it looks again and again without waiting")

    def _mark(self, watchdog: Watchdog) -> None:
        for name, verdict in watchdog.mind.judged.items():
            if self._marked.get(name) is not verdict:
                self._marked[name] = verdict
                self.report.rules[verdict.rule] += 1
                row = watchdog.board.rows[name]
                was, self._rows[name] = self._rows.get(name, row), row
                if was.state != row.state:
                    self.report.edges[was.state, row.state] += 1
