"""One tick of the supervisor: declare, look, decide, keep, act, show, and say when to look again.

It is level-triggered: what is done follows from what is seen, whatever woke it. Everything that must not be
forgotten is on disk before its effect happens, so a supervisor that is killed between any two lines is
continued by the next one without repeating or losing an effect.

The watchdog ticks for a whole fleet. A deputy ticks for the names of a verb. An observer only glances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fleet import __version__
from fleet.core.agenda import Agenda, rest
from fleet.core.agent.decide import AgentDecision, judge, stumbled
from fleet.core.case import AgentSeen, Case
from fleet.core.desired import Desired
from fleet.core.effects import CallTask, Start
from fleet.core.loop.decide_loop import LoopDecision, decide_loop
from fleet.core.loop.loop_case import NO_LOOP, LoopCase, LoopSeen, LoopShown
from fleet.core.memory import AgentMemory
from fleet.core.model import Fleet, Member
from fleet.core.remember import with_server
from fleet.core.restarts import HOUR_S, fleet_allows, forgiven
from fleet.core.settle import REFUSED_AGAIN_S
from fleet.core.words import FINAL, EventType
from fleet.ports import Hint, PaneDied, Unavailable, Wake
from fleet.store.house import House
from fleet.store.memories import Records
from fleet.store.position import PhaseBook, shown, standing
from fleet.supervisor.act import Executor
from fleet.supervisor.hear import Ears
from fleet.supervisor.look import Look, Senses
from fleet.supervisor.mind import AT_ONCE, Ages, Mind, Trouble
from fleet.supervisor.perform import Performer
from fleet.supervisor.reload import Reloader, Settled
from fleet.supervisor.view import Board
from fleet.supervisor.world import Helpers, World
from fleet.times.moment import LONG_AGO, UNNAMED, Moment, Steady, Wall

if TYPE_CHECKING:
    from fleet.supervisor.loop import LoopKeeper  # only the watchdog itself has one

STAGGER_S = 5.0
RESUME_TICKS = 2
REAP_EVERY_S = 0.1
DEATH_S = 2.0  # how long tmux is asked about a death that is known
DIRECTORIES = ("agents", "runs", "signals", "outbox")


@dataclass(slots=True)
class Pulse:
    """When the last of each happened, on the steady clock."""

    heavy: Steady = LONG_AGO
    listed: Steady = LONG_AGO
    reaped: Steady = LONG_AGO
    slept: float = 0.0  # seconds
    hurried: int = 0


Govern = Callable[[World, House], "LoopKeeper"]


class Supervisor:
    """The tick over any world. Nothing happens before `open`; one that acts calls `begin` too."""

    def __init__(
        self,
        world: World,
        config: Reloader | Settled,
        helpers: Helpers | None = None,
        *,
        govern: Govern | None = None,
        lease: tuple[int, int] | None = None,
        unwritten: Callable[[Desired], Desired] | None = None,
    ) -> None:
        """`lease`: the pid and start of a verb; what it holds is not held against it.

        `unwritten`: a wish that the disk did not take. It is carried out all the same, without a record.
        """
        self.world = world
        self.config = config
        self.helpers = helpers or Helpers()
        self.count = 0
        self.mind = Mind()
        self.trouble = Trouble(self._tell_trouble, strict=lease is not None and unwritten is None)
        self.last_look: Look | None = None
        self.loop: LoopKeeper | None = None
        self.loop_shown: LoopShown | None = None
        self._loop_seen: LoopSeen | None = None  # by this look; None: it could not be looked at
        self._loop_decision: LoopDecision | None = None  # of this look
        self._loop_wake: Steady | None = None
        self.ears: Ears | None = None
        self._acts = False  # an observer writes nothing
        self._fleet_changed = False
        self._faults: dict[str, str] = {}  # by agent: the fault of a rule that was told last
        self._govern_with = govern
        self._lease = lease
        self._unwritten = unwritten
        self._pulse = Pulse()
        self._resumed = 0
        self._leased: frozenset[str] = frozenset()  # names that verbs held at the last look
        self._released: frozenset[str] = frozenset()  # and those that they have let go since
        self._unread: set[str] = set()  # names of members whose memory could not be read yet
        self._dying: dict[str, tuple[int, Steady]] = {}  # session: pid that ended, until when to look for it

    # --- opening ------------------------------------------------------------------------------------

    def open(self, *, repair: bool = True) -> str:
        """Read config and memory; returns why that is not possible. With `repair`, damage is set aside."""
        news = self.config.refresh(force=True)
        if self.config.fleet is None:
            return self.config.problem or news.reason or "the config is not readable yet"
        self.house = House(self.world, self.config.fleet.log_dir, lambda: self.count, repair=repair)
        self.records = Records(self.house, durable=self._lease is None)
        self.senses = Senses(self.world, self.helpers.mail, self._lease)
        self.mind.fleet = self.records.fleet()
        self.ages = Ages(self.world.clock, self.mind.fleet)
        self.board = Board(self.world, self.house)
        self.executor = Executor(
            self.mind,
            self.house,
            self.records,
            Performer(self.world, self.house, self.records, self.helpers.mail),
            self.senses,
            self.board,
            self.ages,
            self.trouble,
            lambda: self.count,
            by_person=self._lease is not None,
            on_record=self._unwritten is None,
        )
        return ""

    def begin_work(self) -> None:
        """What one that acts needs."""
        self._acts = True
        for name in DIRECTORIES:
            self.world.disk.make_dir(self.house.path(name))

    def begin(self) -> None:
        """What a watchdog needs: structured sources and the loop, too."""
        self.begin_work()
        self.ears = self.senses.ears = Ears(self.world, self.house, self.helpers.pages)
        if self._govern_with is not None:
            self.loop = self._govern_with(self.world, self.house)
        self._record(EventType.WATCHDOG_STARTED, "", f"version {__version__}", version=__version__)

    def close(self, why: str) -> None:
        """Record the end, save the fleet's memory."""
        self._record(EventType.WATCHDOG_STOPPED, "", why)
        self._save_fleet(self.ages.now())

    # --- the tick -----------------------------------------------------------------------------------

    def tick(self) -> float:
        """One look and what follows from it; returns the seconds until the next one is due."""
        fleet, desired, now = self._declare()
        self.trouble.guard("taking messages in", self._take_in)
        look = self._look(fleet, desired, now)
        todo = self._decide(fleet, desired, look, now)
        self._act(fleet, todo, look, now)
        self._show(fleet, todo, now)
        return self._rest(fleet, look, now)

    def work(self) -> float:
        """A deputy's tick. Nothing is shown, and what concerns all agents is left to the watchdog."""
        fleet, desired, now = self._declare()
        if self._acts:
            self.trouble.guard("taking messages in", self._take_in)
        look = self._look(fleet, desired, now)
        todo = self._decide(fleet, desired, look, now)
        self.executor.carry_out(fleet, todo, now)
        self._reap(look, now)
        self._pulse.listed = now.steady
        self.house.events.settle()
        return self._rest(fleet, look, now)

    def finish(self) -> None:
        """A deputy has done its work."""
        self.executor.finish(self.ages.now())

    def glance(self) -> Look:
        """Look and decide. Nothing is kept or done; what would be is in `mind.decided` and in `document`."""
        fleet, desired, now = self._declare()
        look = self._look(fleet, desired, now)
        todo = self._decide(fleet, desired, look, now)
        self.mind.memories.update((spec.name, self.mind.decided[spec.name].memory) for spec in todo)
        self._post(fleet, todo)
        if fleet.loop is not None:
            book = PhaseBook(self.house.store, self.world.locks.state, fleet.loop.state_file)
            self.loop_shown = shown(book.read())
        return look

    # --- declaring ----------------------------------------------------------------------------------

    def _declare(self) -> tuple[Fleet, Desired, Moment]:
        """The file, if it changed; what the operator wants; what is remembered of each member."""
        self.count += 1
        self.trouble.begin()
        now = self.ages.now()
        jump = self.ages.jumped(self._pulse.slept)
        if jump:
            self._resumed = RESUME_TICKS
            self._record(EventType.WATCHDOG_RESUMED, "", jump)
        news = self.config.refresh()
        fleet = self.config.fleet
        assert fleet is not None, "open() came first"
        if news.event:
            self._record(news.event, "", news.reason)
            if news.event in {EventType.CONFIG_LOADED, EventType.CONFIG_RECOVERED}:
                self.mind.wakes.clear()
                self.board.keep_only(s.name for s in fleet.members)
        desired = self.house.desired.load()
        if self._unwritten is not None:
            desired = self._unwritten(desired)
        self._recall(fleet, desired)
        return fleet, desired, now

    def _recall(self, fleet: Fleet, desired: Desired) -> None:
        """Memory of members that are new, and of those that a verb has let go: the verb kept it meanwhile."""
        held = frozenset(n for n, entry in desired.entries.items() if self.senses.is_leased(entry))
        self._released = (self._leased - held) | (self._released & self._unread)
        self._leased = held
        for spec in fleet.members:
            if spec.name not in self.mind.memories or spec.name in self._released | self._unread:
                step = partial(self._remember, spec)
                self.trouble.guard(f"remembering {spec.name}", step, comes_again=False)
        self.mind.wake(self._released)

    def _remember(self, spec: Member) -> None:
        """Memory as it is on disk. While it cannot be read, the member has no turn."""
        self._unread.add(spec.name)
        self.mind.memories.setdefault(spec.name, AgentMemory())
        if spec.name in self._released:
            self.house.outbox.read_again(spec.name)
        self.mind.memories[spec.name] = self.records.agent(spec.name, spec.session)
        self._unread.discard(spec.name)

    def _take_in(self) -> None:
        """Messages that were put into the outbox since the last look."""
        memories = self.mind.memories
        for name, message in self.house.outbox.news():
            memory = memories.get(name)
            if memory is not None and message.status not in FINAL and name not in self._leased:
                memories[name] = memory._replace(outbox=(*memory.outbox, message))
                self.mind.wakes[name] = AT_ONCE

    # --- looking ------------------------------------------------------------------------------------

    def _look(self, fleet: Fleet, desired: Desired, now: Moment) -> Look:
        """One listing, and what of the rest is due or has changed."""
        specs = fleet.members
        whole = self._resumed or now.since(self._pulse.heavy) >= fleet.watchdog.heavy_interval
        due = frozenset(s.name for s in specs) if whole else self.mind.due(specs, now)
        before = self.last_look.alive if self.last_look is not None else {}
        self._learn_runs([s for s in specs if s.session not in before])
        look = self.senses.look(fleet, self.mind.memories, self.mind.fleet, desired, now, due)
        vanished = [s for s in specs if s.session in before and look.seen[s.name].pane is None]
        again = self._learn_runs(vanished) if vanished and not look.blind else set()
        look = look._replace(due=due, again=frozenset(again))
        self.last_look = look = self._with_unwanted(look)
        self._loop_seen = None
        self.trouble.guard("looking at the loop", lambda: self._look_at_loop(fleet, look))
        return look

    def _look_at_loop(self, fleet: Fleet, look: Look) -> None:
        """Phase, status file, repository, and what its children answered."""
        if fleet.loop is not None and self.loop is not None and not look.blind:
            alive = [a.name for a in fleet.agents if a.is_loop and a.session in look.alive]
            self._loop_seen = self.loop.look(fleet, fleet.loop, alive=alive)

    def _with_unwanted(self, look: Look) -> Look:
        """Add the messages that their senders took back; those of agents that are not ours to judge wait."""
        unwanted: dict[str, list[str]] = {}
        if not self._acts:
            return look
        for name, message_id in self.house.outbox.withdrawals():
            if name in look.seen and name not in self._leased:
                unwanted.setdefault(name, []).append(message_id)
            elif name not in look.seen:
                forget = partial(self.house.outbox.settle_withdrawal, name, message_id)
                self.trouble.guard("taking messages back", forget)
        if not unwanted:
            return look
        seen = dict(look.seen)
        for name, ids in unwanted.items():
            seen[name] = seen[name]._replace(unwanted=tuple(ids))
        return look._replace(seen=seen, changed=look.changed | unwanted.keys())

    def _learn_runs(self, specs: Iterable[Member]) -> set[str]:
        """An agent without a pane may have been started by a verb, and be gone again: its record stays.

        Returns the names of those of whom that is news.
        """
        learned = set()
        for spec in specs:
            memory = self.mind.memories[spec.name]
            if memory.stopping is not None:
                continue
            run = self.records.run(spec.session)
            if run is not None and run.supersedes(memory.run):
                self.mind.memories[spec.name] = memory._replace(run=run)
                learned.add(spec.name)
        return learned

    # --- deciding -----------------------------------------------------------------------------------

    def _decide(self, fleet: Fleet, desired: Desired, look: Look, now: Moment) -> list[Member]:
        """The fleet's own memory, the loop, then each agent that is due or has changed; returns those."""
        if self._lease is None:
            self._decide_fleet(desired, look, now)
        self._loop_decision = None
        self.trouble.guard("deciding on the loop", lambda: self._decide_loop(fleet))
        due = look.due | self.mind.due(fleet.members, now)
        due = (due | look.changed) - look.again
        self.mind.wake(look.again)  # what is left of their runs was not looked for
        if self._unread and self._unwritten is None:  # a wish without a record is carried out in any case
            due -= self._unread
            self.mind.wakes.update(dict.fromkeys(self._unread, now.after(REFUSED_AGAIN_S)))
        todo = [s for s in fleet.members if s.name in due]
        heals = tuple(t for t in self.mind.fleet.heals if now.since(t) < HOUR_S)
        looked = self.ages.now().steady
        for spec in todo:
            seen = look.seen[spec.name]
            memory = self._with_run(spec, seen, self.mind.memories[spec.name])
            case = self._case(fleet, spec, memory, seen, now, looked, heals)
            decision = self._judge(case)
            self.mind.cases[spec.name], self.mind.decided[spec.name] = case, decision
            if any(isinstance(act, Start) and not act.planned for act in decision.effects):
                heals = (*heals, now.steady)
        return todo

    def _decide_fleet(self, desired: Desired, look: Look, now: Moment) -> None:
        """The restarts and the tmux server that all agents share."""
        before = self.mind.fleet
        self.mind.fleet = forgiven(before, desired)
        if not look.blind:
            self.mind.fleet, notes = with_server(self.mind.fleet, look.server, now)
            for note in notes:
                self._record(note.type, "", note.reason)
        self._fleet_changed = self.mind.fleet is not before

    def _decide_loop(self, fleet: Fleet) -> None:
        """Where the loop stands, for its agents, and what is to be done about it."""
        loop = fleet.loop
        if loop is None:
            self.mind.loop, self.loop_shown, self._loop_wake = NO_LOOP, None, None
            return
        if self.loop is None:  # an observer or a deputy: the position is what the record says
            book = PhaseBook(self.house.store, self.world.locks.state, loop.state_file)
            self.mind.loop = standing(book.read())
            return
        if self._loop_seen is None:
            return
        case = LoopCase(fleet, loop, self.loop.recall(), self._loop_seen, self.ages.now())
        self._loop_decision = decision = decide_loop(case)
        if decision.shown.orders != self.mind.loop.orders:
            self.mind.wake(a.name for a in fleet.agents if a.is_loop)
        self.mind.loop = self.loop_shown = decision.shown
        self._loop_wake = decision.wake_at

    def _judge(self, case: Case) -> AgentDecision:
        """What the rules say. One that breaks down costs this agent its turn; the others go on."""
        try:
            return judge(case)
        except Exception as fault:
            decision, name = stumbled(case, fault), case.agent.name
            if self._faults.get(name) != decision.shown.reason:
                self._faults[name] = decision.shown.reason
                self.trouble.fault(f"deciding on {name}", fault)
            return decision

    def _with_run(self, spec: Member, seen: AgentSeen, memory: AgentMemory) -> AgentMemory:
        """The record of the run that is there, read once a run."""
        pane = seen.pane
        if pane is None or (memory.run is not None and memory.run.id == pane.ref.run):
            return memory
        run = self.records.run(spec.session)
        if run is None or run.id != pane.ref.run:
            return memory
        return memory._replace(run=run._replace(pid=pane.ref.pid))

    def _case(
        self,
        fleet: Fleet,
        spec: Member,
        memory: AgentMemory,
        seen: AgentSeen,
        now: Moment,
        looked: Steady,
        heals: tuple[Steady, ...],
    ) -> Case:
        until, by, place = self._account(fleet, spec, now) if spec.account else (UNNAMED, "", 0)
        return Case(
            agent=spec,
            backend=fleet.backend_of(spec),
            watchdog=fleet.watchdog,
            memory=memory,
            seen=seen,
            now=now,
            looked=looked,
            loop=self.mind.loop,
            account_until=until,
            account_by=by,
            stagger=place * STAGGER_S,
            resumed=self._resumed > 0 or spec.name in self._released,
            may_start=fleet_allows(heals, now.steady, len(fleet.agents), server_lost=seen.server_lost),
            ping_gap=min(60.0, 2 * fleet.watchdog.signal_interval),
            in_person=self._lease is not None,
            seen_nudge=fleet.loop.done_nudge if fleet.loop else False,
        )

    def _account(self, fleet: Fleet, agent: Member, now: Moment) -> tuple[Wall, str, int]:
        """Until when this account is limited, who found out, and this agent's place in the queue after it."""
        mates = [a for a in fleet.agents if a.account == agent.account]
        until, by = UNNAMED, ""
        for mate in mates:
            limit = self.mind.memories[mate.name].limit if mate.name in self.mind.memories else None
            if limit is not None and mate.name != agent.name and limit.until > max(until, now.wall):
                until, by = limit.until, mate.name
        return until, by, mates.index(agent)

    # --- acting -------------------------------------------------------------------------------------

    def _act(self, fleet: Fleet, todo: Iterable[Member], look: Look, now: Moment) -> None:
        """Carry the decisions out, then what is done for all of them together."""
        guard = self.trouble.guard
        if self._fleet_changed:
            guard("keeping the fleet's record", lambda: self._save_fleet(now))
        heals = self.mind.fleet.heals
        self.executor.carry_out(fleet, todo, now)
        if self.mind.fleet.heals != heals:  # a watchdog that is killed now must not forget them
            guard("keeping the fleet's record", lambda: self._save_fleet(now))
        guard("governing the loop", lambda: self._govern(fleet))
        guard("keeping logs", lambda: self._keep_logs(fleet, look))
        guard("counting tokens", lambda: self._count_tokens(fleet, now))
        self._reap(look, now)
        self._pulse.listed = now.steady
        if now.since(self._pulse.heavy) >= fleet.watchdog.heavy_interval:
            self._pulse.heavy = now.steady
            guard("keeping the fleet's record", lambda: self._save_fleet(now))
            guard("tidying", self.house.store.tidy)
        if look.blind:
            self.trouble.degrade("tmux", look.blind)
        if self.house.events.settle():
            self.trouble.recover()
        self._resumed = max(0, self._resumed - 1)

    def _govern(self, fleet: Fleet) -> None:
        """Keep what was decided about the loop, then do it; what was not done is a problem on the board."""
        decision, keeper = self._loop_decision, self.loop
        if decision is None or keeper is None or fleet.loop is None:
            return
        keeper.keep(decision)
        if decision.messages:
            self._take_in()
        results = [(effect, keeper.do(fleet, fleet.loop, effect)) for effect in decision.effects]
        self.mind.wake(e.agent for e, result in results if isinstance(e, CallTask) and result.ok)
        trouble = tuple(result.why for _, result in results if not result.ok and result.why)
        self.loop_shown = decision.shown._replace(problems=(*decision.shown.problems, *trouble))

    def _keep_logs(self, fleet: Fleet, look: Look) -> None:
        if self.helpers.logs is None or look.blind:
            return
        names = {s.session: s.name for s in fleet.members}
        self.helpers.logs.keep(
            look.panes, lambda kind, session, why: self._record(kind, names.get(session, ""), why)
        )

    def _count_tokens(self, fleet: Fleet, now: Moment) -> None:
        """Tokens of the phase that runs, and the record of one that is over."""
        if self.loop is None or self.loop_shown is None:
            return
        limited = any(m.limit is not None for m in self.mind.memories.values())
        for record in self.loop.books.note(
            fleet, self.mind.loop, limited=limited, steady=now.steady, wall=now.wall
        ):
            self._record(EventType.TOKENS_RECORDED, "", f"phase {record['phase']}")

    def _reap(self, look: Look, now: Moment) -> None:
        """Tmux misses some deaths until another child of its own ends: give it one."""
        if look.unreaped and now.since(self._pulse.reaped) >= REAP_EVERY_S:
            self._pulse.reaped = now.steady
            try:
                self.world.tmux.reap()
            except Unavailable as error:
                self.trouble.degrade("tmux", str(error))

    # --- showing ------------------------------------------------------------------------------------

    def _show(self, fleet: Fleet, todo: Iterable[Member], now: Moment) -> None:
        """Rows for the verbs that show something, and the heartbeat."""
        self._post(fleet, todo)
        words = (self.trouble.now, self.config.problem, self.loop_shown, self._strangers(), self._flooded())
        if self.board.due(now.steady, words):
            self.trouble.guard("writing the view", lambda: self.board.write(self.document()))
        self.trouble.guard("the heartbeat", lambda: self.world.disk.touch(self.house.path("heartbeat")))

    def _post(self, fleet: Fleet, todo: Iterable[Member]) -> None:
        mind = self.mind
        for name in (spec.name for spec in todo):
            self.board.post(fleet, mind.cases[name], mind.memories[name], mind.decided[name])

    def document(self) -> bytes:
        """The view after the last tick or glance: what verbs show."""
        fleet = self.config.fleet
        assert fleet is not None, "open() came first"
        troubles = [f"watchdog: degraded: {self.trouble.now}"] if self.trouble.now else []
        troubles += [*self.house.store.troubles, *self._strangers()]
        troubles += [f"{s}: floods its log; look at it with: agents.py attach" for s in self._flooded()]
        facts = {
            "tick": self.count,
            "at": self.ages.now().wall,
            "degraded": self.trouble.now,
            "config": self.config.problem,
        }
        return self.board.document(fleet, self.config.stamp, self.loop_shown, troubles, facts)

    def _strangers(self) -> tuple[str, ...]:
        return tuple(self.ears.strangers()) if self.ears is not None else ()

    def _flooded(self) -> list[str]:
        return self.helpers.logs.flooded if self.helpers.logs is not None else []

    # --- until the next tick ------------------------------------------------------------------------

    def _rest(self, fleet: Fleet, look: Look, now: Moment) -> float:
        agenda = Agenda(
            listed=self._pulse.listed,
            interval=fleet.watchdog.signal_interval,
            agents=[self.mind.wakes.get(s.name, AT_ONCE) for s in fleet.members],
            config_s=self.config.again_in,
            loop=self._loop_wake,
            unreaped=bool(look.unreaped),
            blind=bool(look.blind),
            dying=self._unburied(look, now),
            hurried=self._pulse.hurried,
        )
        self._pulse.slept, self._pulse.hurried = rest(agenda, now)
        return self._pulse.slept

    def hasten(self, wake: Wake) -> None:
        """Something happened: an agent that died must be looked at wholly, whatever its time says."""
        if wake is Hint.SIGNALS:
            self.senses.listen = True
        fleet = self.config.fleet
        if isinstance(wake, PaneDied) and fleet is not None:
            self.mind.wake(s.name for s in fleet.members if s.session == wake.session)
            ref = self.last_look.alive.get(wake.session) if self.last_look is not None else None
            if ref is not None:
                self._dying[wake.session] = (ref.pid, self.ages.now().after(DEATH_S))

    def _unburied(self, look: Look, now: Moment) -> bool:
        """Has an agent died that tmux shows alive, or without a status? It hears of it later."""
        self._dying = {
            session: (pid, until)
            for session, (pid, until) in self._dying.items()
            if now.steady < until and (look.shows(session, pid) or pid in look.unreaped)
        }
        return bool(self._dying)

    # --- records ------------------------------------------------------------------------------------

    def _save_fleet(self, now: Moment) -> None:
        self.mind.fleet = self.mind.fleet._replace(
            steady=now.steady, wall=now.wall, mono=self.world.clock.mono()
        )
        self.records.save_fleet(self.mind.fleet)

    def _tell_trouble(self, kind: EventType, reason: str, trace: str) -> None:
        facts: dict[str, Any] = {"trace": trace} if trace else {}
        if self._lease is None:  # a verb tells its caller
            self._record(kind, "", reason, **facts)

    def _record(self, kind: EventType, agent: str, reason: str, **facts: Any) -> None:
        if self._acts:
            self.house.events.record(kind, agent=agent, reason=reason, **facts)
