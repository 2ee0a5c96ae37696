"""One seed, from the first `up` to the last look: storms first, then peace, then everything must be well.

The supervisor under test is the real one. It is built, killed and built again over the same machine; between
its ticks time jumps to whatever comes first, its own wake-up or somebody else's doing.
"""

from __future__ import annotations

import json
import os
import signal as signals
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from fleet.config import ConfigError, parse
from fleet.core.agent.decide import AgentDecision
from fleet.core.codec import from_plain
from fleet.core.desired import NOTHING, Desired, Want
from fleet.core.model import Fleet
from fleet.core.views import Row
from fleet.ports import Held, Hint, Host
from fleet.store.documents import StoreError
from fleet.store.house import House
from fleet.supervisor.cli_servers import Mail, Pages
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.reload import Reloader
from fleet.supervisor.tick import Supervisor
from fleet.supervisor.world import Helpers, World
from tests.sim.agents import CALM, PERSONAS, Account, Mood, SimAgent
from tests.sim.children import SimChildren
from tests.sim.clock import SimClock
from tests.sim.declared import CONFIG, LOG_DIR, PROJECT_DIR, REPORTING, Declared, toml
from tests.sim.doors import SimHttp, SimLocks, SimServers
from tests.sim.faults import Fault, schedule, temper
from tests.sim.golden import Golden, WorldTrace, golden
from tests.sim.liveness import Liveness
from tests.sim.locks import SimLock
from tests.sim.loop_oracles import INDEX, LoopOracles
from tests.sim.machine import Killed, Machine, SimMember
from tests.sim.names import ADVERSARY, BUILDER, CLOSER, PHASES
from tests.sim.nemesis import Nemesis
from tests.sim.oracles import Oracles, Policy, Violation
from tests.sim.processes import SimProc
from tests.sim.repo import SimRepo
from tests.sim.tmux import SimSession
from tests.sim.verb_oracles import VerbOracles
from tests.sim.verbs import Sent, Verb, words_for
from tests.sim.work import Work

DAY = 86_400.0
NEEDS_A_PERSON = frozenset({Mood.ASK, Mood.AUTH, Mood.DIALOG})
STORM = 0.7  # the share of a run in which faults strike
TICK_COST = 0.004
AGAIN_S = 3_600.0
CRON_S = 60.0  # how often `ensure` looks whether a watchdog is wanted and missing
DESIRED = f"{LOG_DIR}/state/desired.json"
SPINS = 2_000  # ticks within one simulated second that are no longer work
WORKERS = (
    Declared(BUILDER, kind="loop", role=BUILDER, resume=True),
    Declared(ADVERSARY, kind="loop", role=ADVERSARY),
    Declared(CLOSER, kind="task", watch="none", enabled=False),
)
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
    verbs: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)  # on record at the end, by type
    golden: Golden = field(default_factory=Golden)


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


class ClockOf:
    """The clocks, and a way to wait that is the caller's own."""

    def __init__(self, clock: SimClock, sleep: Callable[[float], None]) -> None:
        self.wall, self.mono, self.sleep = clock.wall, clock.mono, sleep


class Simulation:
    """Everything of one run."""

    def __init__(
        self,
        seed: int,
        hours: float,
        faults: tuple[Fault, ...] | None = None,
        agents: int = 10,
        declared: list[Declared] | None = None,
        *,
        loop: bool = False,
    ) -> None:
        """With a loop: phases, gates and handoff over a simulated repository, and agents that report."""
        self.seed = seed
        self.end = hours * 3600.0
        rng = Random(f"{seed}/world")
        epoch, zone = rng.choice(EPOCHS)
        self.machine = Machine(seed, epoch=epoch + rng.uniform(0, 7200), zone=zone, temper=temper(seed))
        self.oracles = Oracles(self.machine, Policy())
        self.oracles.declares = self._declares
        self.trace = WorldTrace()
        self.machine.disk.seen = self.trace.note
        self.machine.disk.written = self._on_written
        self.machine.on_watchdog = self._on_watchdog_session
        self.machine.sources.on_post = self._on_post
        if declared is None:
            declared = self._declare(rng, agents - len(WORKERS) if loop else agents, loop=loop)
            declared += WORKERS if loop else ()
        self._prepare(declared)
        self.work: Work | None = None
        self.loop: LoopOracles | None = None
        if loop:
            repo = SimRepo(self.machine.disk, self.machine.clock.wall, self.machine.wake)
            repo.prepare()
            self.work = Work(repo, Random(f"{seed}/work"))
            self.loop = LoopOracles(self.machine, self.oracles, self.work)
            self.machine.clock.after(self.end * STORM / 3, self.loop.trigger)
            self.machine.clock.after(AGAIN_S, self._begin_again)
        self.children: SimChildren | None = None
        self.nemesis = Nemesis(self.machine, self.oracles, self, declared)
        self.faults = schedule(seed, self.end * STORM, loop=loop) if faults is None else faults
        self.lock = SimLock(self.machine.clock.mono)
        self.verbs: list[Verb] = []
        self.sent: list[Sent] = []
        self.desired = NOTHING
        self.dog: SimProc | None = None  # the watchdog's process
        self.dog_since = 0.0
        self.dog_session: SimSession | None = None
        self.told = False  # it was asked to end
        self.deputy: Verb | None = None  # the verb that is the watchdog for a while
        self.ticking = False
        self.last_good = toml(declared)
        self.said = VerbOracles(self.machine, self.oracles)
        self.report = Report(seed, hours)
        self.watchdog: Supervisor | None = None
        self.alive = False  # is there a watchdog process?
        self.revive_at = 1.5
        self.stopped_until = 0.0
        self.fleet = parsed(toml(declared), CONFIG)
        self._draw = Random(f"{seed}/draw")
        self.house = House(self.world(None), LOG_DIR)
        self.liveness = Liveness(self.machine, self.oracles, self.house, self.sent)
        self._last_second = (-1, 0)
        self._marked: dict[str, AgentDecision] = {}
        self._rows: dict[str, Row] = {}

    def _declare(self, rng: Random, agents: int, *, loop: bool) -> list[Declared]:
        declared = []
        for number in range(agents):
            backend = ("clod", "clod", "opal", "plain")[number % 4]
            if loop and number % 4 in (1, 2):  # each of those with another source than the screen
                backend = REPORTING[(number % 4 - 1) * 2 + number // 4 % 2][0]
            one = Declared(
                f"a{number}",
                backend,
                watch=rng.choice(("heal+stall", "heal+stall", "heal", "none")) if number else "heal+stall",
                account=rng.choice(("", "", "team")) if backend != "plain" else "",
                resume=backend not in {"opal", "plain"} and rng.random() < 0.5,
                wake=rng.choice((0.0, 0.0, 3600.0)),
            )
            declared.append(one)
        return declared

    def _prepare(self, declared: list[Declared]) -> None:
        """The project on disk, and its members as the operator thinks of them."""
        accounts: dict[str, Account] = {}
        for one in declared:
            shared = accounts.setdefault(one.account or one.name, Account())
            self.machine.members[one.name] = SimMember(
                one.name, one.backend, shared, watch=one.watch, resume=one.resume, kind=one.kind
            )
        self.machine.disk.dirs.update(("/", PROJECT_DIR))
        self.machine.disk.put(CONFIG, toml(declared).encode(), 0o644)
        self.machine.disk.put(f"{PROJECT_DIR}/wake.md", b"Have a look whether anything is left to do.\n")
        kickoff = b"You are the {role}. Phase {phase_id}: {plan}.\n"
        self.machine.disk.put(f"{PROJECT_DIR}/prompts/kickoff.md", kickoff)
        for role in (BUILDER, ADVERSARY):
            self.machine.disk.put(f"{PROJECT_DIR}/prompts/{role}.md", f"Do as a {role} does.\n".encode())
        for phase in PHASES:
            self.machine.disk.put(f"{PROJECT_DIR}/plans/{phase}.md", b"Make it work.\n")

    def world(self, verb: Verb | None) -> World:
        """Ports for one verb, or for the supervisor."""
        clock = self.clock_for(verb)
        who = (lambda: verb.proc) if verb is not None else (lambda: self.dog)
        tmux, processes = self.machine.ports(self.project, self._on_act, self._on_signal, clock.sleep, who)
        return World(
            host=Host({"PATH": "/bin", "HOME": "/root"}, self.machine.zone),
            tmux=tmux,
            servers=SimServers(tmux),
            processes=processes,
            clock=clock,
            disk=self.machine.disk,
            locks=SimLocks(self, verb, clock.sleep),
            http=SimHttp(self, verb),
            draw=lambda: f"{self._draw.getrandbits(128):032x}",
            point=self.machine.before,
        )

    def clock_for(self, verb: Verb | None) -> ClockOf:
        """The clocks; who waits lets others have their turns."""
        return ClockOf(self.machine.clock, verb.sleep if verb is not None else self.machine.clock.sleep)

    def helpers(self, verb: Verb | None) -> Helpers:
        """What works beside a watchdog, or a verb that acts for it. Its letters wait for no record."""
        http, clock = SimHttp(self, verb), ClockOf(self.machine.clock, lambda _seconds: None)
        return Helpers(Pages(http, clock), Mail(http, clock))

    def _on_post(self, agent: SimAgent) -> None:
        """A message of ours reaches a server."""
        self.oracles.acts["post"] += 1
        self.trace.note("post", agent.name)
        self.oracles.outside_window("post", self.machine.members[agent.name], agent)

    def _on_act(self, verb: str, session: SimSession | None, detail: str) -> None:
        if verb != "listing":
            self.trace.note(verb, session.name if session is not None else "", detail)
        self.oracles.on_act(verb, session, detail)

    def _on_signal(self, proc: SimProc, signum: int) -> None:
        """A verb may also end the watchdog, a deputy, or our tmux server."""
        self.trace.note("signal", proc.agent or proc.name, signum)
        server, by_verb = self.machine.tmux.server, self.machine.current is not None
        if by_verb and server is not None and proc is server.proc:
            self.oracles.excuses.server_lost = self.machine.clock.t
        elif not by_verb or all(proc is not one for one in (self.dog, *(v.proc for v in self.verbs))):
            self.oracles.on_signal(proc, signum)

    @property
    def project(self) -> str:
        """The stamp of this project."""
        return parsed(toml([Declared("a0")]), CONFIG).project_id

    # -- the supervisor's own life

    def kill_watchdog(self, down_for: float) -> None:
        """SIGKILL, now; somebody starts it again later."""
        if self.alive:
            self._end_dog(signum=signals.SIGKILL)
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

    def verb(self, name: str, agents: list[str], rng: Random, kill: int = 0) -> Verb:
        """One of the operator's verbs, begun now; killed at that port call, if any."""
        words = words_for(name, agents, rng, len(self.sent))
        if words[0] == "send":
            self.sent.append(Sent(agents[0], words[2]))
        if name == "restart_fresh":
            for member in (self.machine.members[n] for n in agents):
                member.fresh = True
        return self.type_words(words, agents, rng, kill=kill)

    def type_words(
        self,
        words: tuple[str, ...],
        agents: list[str],
        rng: Random,
        *,
        kill: int = 0,
        then: Callable[[Verb], None] | None = None,
    ) -> Verb:
        """A command line."""
        verb = Verb(self, words, tuple(agents), Random(rng.random()), kill, then)
        self.verbs.append(verb)
        self.said.begun(verb)
        self._touch(verb)
        verb.resume()
        return verb

    def parsed(self, text: str) -> Fleet:
        """A declaration, as a verb reads it."""
        return parsed(text, CONFIG)

    def _touch(self, verb: Verb) -> None:
        for agent in verb.agents:
            self.oracles.excuses.touched[agent] = self.machine.clock.t

    def on_verb_step(self, verb: Verb) -> None:
        """It has done something, and waits now. What it holds is in its hands."""
        if verb.name != "send" and not verb.let_go:
            self._touch(verb)

    def on_verb_over(self, verb: Verb) -> None:
        """It has ended, one way or another."""
        self.verbs.remove(verb)
        self.on_verb_step(verb)
        self.machine.woken = True
        self.report.verbs[verb.name if verb.code is not None else f"{verb.name} killed"] += 1
        if verb.name == "send":
            sent = next(s for s in self.sent if s.text == verb.words[2])
            sent.delivered = verb.code == 0
        self.said.over(verb)
        if verb.then is not None and verb.code is not None:
            verb.then(verb)

    def on_verb_gone(self, verb: Verb) -> None:
        """Its process is not there any more, and its locks with it."""
        self.lock.drop(verb)
        self.drop_lead(verb)

    def lead(self, verb: Verb) -> None:
        """A verb becomes the watchdog for a while."""
        self.deputy, verb.is_watchdog = verb, True
        self.machine.actor, self.oracles.looked = "watchdog", False
        self.oracles.on_tick_begun()

    def drop_lead(self, verb: Verb) -> None:
        """And is it no more."""
        if self.deputy is verb:
            self.deputy, verb.is_watchdog = None, False

    def holder(self) -> Held | None:
        """Who runs the watchdog."""
        path = f"{LOG_DIR}/state/watchdog.lock"
        proc = self.deputy.proc if self.deputy is not None else self.dog
        return Held(path, proc.pid, proc.start, self.dog_since) if proc is not None and proc.alive else None

    def _on_written(self, path: str) -> None:
        """What a wish is, the disk says."""
        if path == DESIRED:
            self.desired = from_plain(Desired, json.loads(self.machine.disk.text(DESIRED))["data"])
            self._learn_wishes()
        elif path.endswith(".id"):
            member = self.machine.members[path.rpartition("/")[2].removesuffix(".id")]
            if PERSONAS[member.persona].chooses_id:
                member.conversation = self.machine.disk.text(path).strip()
        elif path == INDEX and self.loop is not None:
            self.loop.on_index(by_hand=self.machine.current is not None)

    def _learn_wishes(self) -> None:
        entries = self.desired.entries
        for member in self.machine.members.values():
            if (entry := entries.get(member.name)) is not None:
                member.wish, member.until = str(entry.want), entry.until
                member.paused, member.frozen = entry.paused, entry.frozen
        held = {e.hold.pid for e in entries.values() if e.hold is not None}
        for verb in self.verbs:
            if verb.proc.pid in held:
                verb.held = True
            elif verb.held and not verb.let_go:
                self._touch(verb)
                verb.let_go = True

    def _begin_again(self) -> None:
        """A person looks every hour: a loop that is complete begins again, while the storm lasts."""
        assert self.loop is not None
        if self.machine.clock.t < self.end * STORM - AGAIN_S:
            if self.loop.complete:
                self.set_phase(0, Random(0))
            self.machine.clock.after(AGAIN_S, self._begin_again)

    def set_phase(self, index: int | None, rng: Random, kill: int = 0) -> None:
        """`phase set`, or `phase next` where no index is given."""
        assert self.loop is not None
        here = PHASES.index(self.loop.phase) if self.loop.phase else len(PHASES)
        to = index if index is not None else min(here + 1, len(PHASES))
        words = ("phase", "next") if index is None else ("phase", "set", str(index))
        self.loop.asked_for(to)
        done = self.loop.answered
        self.type_words(words, [w.name for w in WORKERS], rng, kill=kill, then=lambda _verb: done())

    # -- the watchdog's process

    def _declares(self, name: str) -> bool:
        """Does the config in force at the watchdog name that agent? A verb reads its own."""
        fleet = self.watchdog.config.fleet if self.watchdog is not None else None
        by_verb = self.machine.current is not None or fleet is None
        return by_verb or any(member.name == name for member in fleet.members)

    def _on_watchdog_session(self, session: SimSession) -> None:
        """`up` or `ensure` has made its session: it starts in it."""
        self.dog_session = session
        if not self.alive:
            self.revive_at = self.machine.clock.t + 0.4

    def _spawn_dog(self) -> None:
        session = self.dog_session
        shell = session.proc if session is not None and session.proc.alive else None
        self.dog = self.machine.table.spawn("agents.py", shell)
        self.dog.handler = self._on_dog_signal
        self.dog.on_exit = lambda _code, _signum: self._dog_ended()
        self.dog_since, self.told = self.machine.clock.wall(), False

    def _on_dog_signal(self, signum: int) -> bool:
        if signum == signals.SIGTERM:
            self.told = self.machine.woken = True
        return True

    def _end_dog(self, code: int | None = None, signum: int | None = None) -> None:
        dog, self.dog = self.dog, None
        self.alive = False
        if dog is not None:
            dog.on_exit = None
            self.machine.table.end(dog, code=code, signum=signum)

    def _dog_ended(self) -> None:
        """Somebody has killed it."""
        self.dog, self.alive, self.stopped_until = None, False, 0.0
        self.revive_at = self.machine.clock.t + 1.0
        self.machine.doomed = self.ticking
        self.lock.drop("watchdog")

    def _wanted(self) -> bool:
        """Would its shell, or `ensure`, start it again?"""
        shell = self.dog_session is not None and self.dog_session.proc.alive and not self.told
        return shell or any(e.want is Want.UP for e in self.desired.entries.values())

    def _open(self) -> None:
        self.machine.actor = "watchdog"
        self.oracles.looked = False
        self.oracles.on_tick_begun()
        self.lock.drop("watchdog")
        if self.children is not None:
            self.children.close()
        govern = self._govern if self.work is not None else None
        helpers = self.helpers(None)
        assert helpers.pages is not None
        helpers.pages.ring = lambda: self.machine.wake(Hint.SIGNALS)
        world = self.world(None)
        self.watchdog = Supervisor(world, Reloader(world, CONFIG, parsed), helpers, govern=govern)
        self._spawn_dog()
        self.machine.in_tick = self.ticking = self.alive = True
        self.machine.doomed = False
        try:
            refused = self.watchdog.open()
            if not refused:
                self.watchdog.begin()
        except OSError:
            refused = "the disk"
        finally:
            self.machine.in_tick = self.ticking = self.machine.doomed = False
            self.lock.drop("watchdog")
        if refused and self.alive:
            self._end_dog(code=2)
            self.revive_at = self.machine.clock.t + 5.0

    def _govern(self, world: World, house: House) -> LoopKeeper:
        assert self.work is not None
        machine = self.machine
        rng = Random(f"{self.seed}/children/{machine.clock.t}")
        self.children = SimChildren(machine.clock, rng, self.work.answer, machine.before, machine.wake)
        return LoopKeeper(world, house, self.children)

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
        finally:
            for verb in list(self.verbs):
                verb.end()
        self.report.golden, self.report.events = golden(self.machine.disk, self.trace)
        self.report.acts.update(self.oracles.acts)
        self.report.struck.update(self.nemesis.struck)
        self.report.moods.update(self.machine.moods)
        return self.report

    def _all(self) -> None:
        self.verb("up_all", self._everyone(), Random(0))
        while self.machine.clock.t < self.end:
            self._step()
        self.liveness.at_the_end()
        self.oracles.at_the_end()
        if self.loop is not None:
            self.loop.at_the_end(long=self.end >= DAY)

    def _everyone(self) -> list[str]:
        """Whom a bare `up` starts; the task at the end is the loop's to start."""
        return [m.name for m in self.machine.members.values() if m.kind != "task"]

    def _peace(self) -> None:
        self.nemesis.peace()
        self.machine.temper.weights = dict(CALM)
        self.machine.temper.boot_death = self.machine.temper.not_found = 0.0
        self.stopped_until = 0.0
        if self.work is not None and self.loop is not None:
            self.work.manners.make_peace()
            self.machine.temper.work = min(self.machine.temper.work, 300.0)
            self.loop.begin_peace()
            self.loop.trigger()
        self._make_peace()
        self.liveness.begin()

    def _make_peace(self) -> None:
        """Every terminal is closed; then everything is wanted, and every open question is answered."""
        for verb in list(self.verbs):
            verb.end()
        everyone = self._everyone()

        def up(_verb: Verb) -> None:
            self.type_words(("up", "--no-wait"), everyone, Random(0))

        self.type_words(("unpause", *everyone), everyone, Random(0), then=up)
        for member in self.machine.members.values():
            agent = member.agent
            if agent is not None and agent.alive and agent.mood in NEEDS_A_PERSON:
                agent.begin("answered by a person")

    def _step(self) -> None:
        clock = self.machine.clock
        if not self.alive:
            self._without()
            return
        delay = self._tick()
        if self.alive and not self.told:
            self._until(clock.t + delay)
            self._until_continued()
        if self.alive and self.told:
            self._farewell()

    def _without(self) -> None:
        """No watchdog: until somebody starts one."""
        clock = self.machine.clock
        while clock.t < self.revive_at:
            due = clock.next_event()
            clock.advance_to(min(self.revive_at, self.end) if due is None else min(due, self.revive_at))
            if clock.t >= self.end:
                return
        if self.holder() is not None or not self._wanted():
            self.revive_at = clock.t + (1.0 if self.holder() is not None else CRON_S)
            return
        try:
            self._open()
        except Killed:
            self.machine.in_tick = False

    def _farewell(self) -> None:
        """It was asked to end, and ends in order."""
        assert self.watchdog is not None
        self.machine.actor, self.machine.in_tick, self.ticking = "watchdog", True, True
        try:
            self.watchdog.close("told to")
        except (OSError, StoreError, Killed):
            pass
        finally:
            self.machine.in_tick = self.ticking = self.machine.doomed = False
            self.lock.drop("watchdog")
        self._end_dog(code=0)
        self.revive_at = self.machine.clock.t + CRON_S

    def _until(self, t: float) -> None:
        """Let time pass to `t`, or to the first thing that wakes the watchdog."""
        clock, machine = self.machine.clock, self.machine
        assert self.watchdog is not None
        machine.woken = False
        while (due := clock.next_event()) is not None and due <= t:
            clock.advance_to(due)
            if machine.woken or not self.alive:
                break
        else:
            clock.advance_to(t)
        for key in sorted(machine.keys, key=str):
            self.watchdog.hasten(key)
        if machine.keys and self.watchdog.loop is not None and self.fleet.loop is not None:
            self.watchdog.loop.watch_paths(self.fleet.loop)  # as it is asked before each sleep
        machine.keys.clear()

    def _tick(self) -> float:
        machine, watchdog = self.machine, self.watchdog
        assert watchdog is not None
        machine.clock.advance_to(machine.clock.t + TICK_COST)
        machine.actor, machine.in_tick, self.ticking = "watchdog", True, True
        self.oracles.on_tick_begun()
        self.report.ticks += 1
        self._spins()
        try:
            delay = watchdog.tick()
        except Killed:
            return 0.0
        finally:
            machine.in_tick = self.ticking = machine.doomed = False
            self.lock.drop("watchdog")
        self._mark(watchdog)
        self.oracles.on_tick_over()
        if self.loop is not None:
            self.loop.on_tick_over()
        self.liveness.look()
        return delay

    def _spins(self) -> None:
        second, count = self._last_second
        now = int(self.machine.clock.t)
        self._last_second = (now, count + 1 if now == second else 1)
        if self._last_second[1] > SPINS:
            self.oracles.fail("I50", "the watchdog spins: it looks again and again without waiting")

    def _mark(self, watchdog: Supervisor) -> None:
        for name, verdict in watchdog.mind.decided.items():
            if self._marked.get(name) is not verdict:
                self._marked[name] = verdict
                self.report.rules.update({verdict.shown.rule, *dict(verdict.trace)})
                row = watchdog.board.rows[name]
                was, self._rows[name] = self._rows.get(name, row), row
                if was.state != row.state:
                    self.report.edges[was.state, row.state] += 1


def run_seed(seed: int, hours: float, loop: bool) -> Report:
    """One seed; where any process of a pool finds it, however that was started."""
    return Simulation(seed, hours, loop=loop).run()
