"""The only loop: read the file, look once, decide purely, put it on record, act, sleep until it matters.

`tick` is level-triggered: whatever woke us, what is done follows from what is seen. Everything that
must not be forgotten is on disk before its effect happens, so a watchdog killed between any two lines
is continued by the next one without repeating or losing an effect.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fleet import __version__
from fleet.core.actions import Start
from fleet.core.budget import HOUR_S, fleet_allows
from fleet.core.case import AgentSeen, Case, LoopState
from fleet.core.decide import Judgement, judge, stumbled
from fleet.core.desired import Desired, Want
from fleet.core.loop import LoopPlan
from fleet.core.memory import AgentMemory
from fleet.core.model import AgentSpec, Backend, Fleet
from fleet.core.moment import LONG_AGO, UNNAMED, Moment, Steady, Wall, later
from fleet.core.rules.outbox import advance
from fleet.core.words import FINAL, EventType, MessageState
from fleet.journal.events import Begun
from fleet.world.ages import Ages
from fleet.world.board import Board
from fleet.world.deeds import AT_ONCE, Deeds, Mind
from fleet.world.ears import Ears
from fleet.world.ledger import Bookkeeper
from fleet.world.perform import Performer
from fleet.world.phasebook import PhaseBook, standing
from fleet.world.ports import Unavailable
from fleet.world.records import Records
from fleet.world.reload import Parse, Reloader, Settled
from fleet.world.sense import Look, Senses, Spec
from fleet.world.trouble import Trouble
from fleet.world.world import House, World

STAGGER_S = 5.0
RESUME_TICKS = 2
REAP_EVERY_S = 0.1
DYING_S, DYING_AGAIN_S = 2.0, 0.004  # a death we know of: how long, and how often, tmux is asked about it
SHORTEST_S = 0.01
HURRIED = 50  # immediate looks in a row before we force a pause

NO_BACKEND = Backend("", "")


@dataclass(slots=True)
class Pulse:
    """When we last did what, on the steady clock."""

    heavy: Steady = LONG_AGO
    listed: Steady = LONG_AGO
    reaped: Steady = LONG_AGO
    slept: float = 0.0  # seconds
    hurried: int = 0


class Governor(Protocol):
    """The phase machine, seen from here."""

    def turn(self, fleet: Fleet, *, alive: Iterable[str]) -> LoopPlan:
        """One look of its own, its durable steps carried out; what is left concerns the agents."""


class Watchdog:
    """The supervisor over any world. Nothing happens before `open`."""

    def __init__(
        self,
        world: World,
        path: str,
        parse: Parse,
        *,
        observe: bool = False,
        govern: Callable[[World, House], Governor] | None = None,
    ) -> None:
        self.world = world
        self.observe = observe
        self.count = 0
        self.reloader: Reloader | Settled = Reloader(world, path, parse)
        self.mind = Mind()
        self.trouble = Trouble(self._tell)
        self.last_look: Look | None = None
        self.loop: Governor | None = None
        self.loop_plan: LoopPlan | None = None
        self._govern_with = govern
        self._pulse = Pulse()
        self._resumed = 0
        self.watched_sessions: set[str] = set()
        self._dying: dict[str, tuple[int, Steady]] = {}  # session: pid that ended, until when to look for it

    # --- opening ------------------------------------------------------------------------------------

    def open(self) -> str:
        """Read config and memory; returns why it cannot, or nothing. The caller holds the watchdog lock."""
        news = self.reloader.refresh(force=True)
        if self.reloader.fleet is None:
            return self.reloader.problem or news.reason or "the config is not readable yet"
        fleet = self.reloader.fleet
        self.house = House(self.world, fleet.log_dir, lambda: self.count, repair=not self.observe)
        self.records = Records(self.world, self.house)
        self.performer = Performer(self.world, self.house, self.records)
        self.ears = None if self.observe else Ears(self.world, self.house)
        self.senses = Senses(self.world, self.ears)
        self.mind.fleet = self.records.fleet()
        self.ages = Ages(self.world.clock, self.mind.fleet)
        self.board = Board(self.world, self.house)
        self.deeds = Deeds(
            self.mind,
            self.house,
            self.records,
            self.performer,
            self.senses,
            self.board,
            self.ages,
            self.trouble,
            lambda: self.count,
        )
        if not self.observe:
            for name in ("agents", "runs", "signals", "outbox"):
                self.world.disk.make_dir(self.house.path(name))
            self.house.events.record(
                EventType.WATCHDOG_STARTED, reason=f"version {__version__}", version=__version__
            )
        self.ledger = Bookkeeper(self.world, self.house) if self._govern_with is not None else None
        self.loop = self._govern_with(self.world, self.house) if self._govern_with is not None else None
        return ""

    def close(self, why: str) -> None:
        """Say goodbye."""
        if not self.observe:
            self.house.events.record(EventType.WATCHDOG_STOPPED, reason=why)
            self._save_fleet(self.ages.now())

    # --- the tick -----------------------------------------------------------------------------------

    def tick(self) -> float:
        """One look and what follows from it; returns the seconds until the next one is due."""
        self.count += 1
        self.trouble.begin()
        now = self.ages.now()
        jump = self.ages.jumped(self._pulse.slept)
        if jump:
            self._resumed = RESUME_TICKS
            self._record(EventType.WATCHDOG_RESUMED, "", jump)
        news = self.reloader.refresh()
        fleet = self.reloader.fleet
        assert fleet is not None, "open() came first"
        if news.event:
            self._record(news.event, "", news.reason)
            if news.event in {EventType.CONFIG_LOADED, EventType.CONFIG_RECOVERED}:
                self.mind.wakes.clear()
                self.board.keep_only(s.name for s in fleet.members)
        desired = self.house.desired.load()
        specs = self._specs(fleet)
        self._grant_amnesty(desired)
        self.trouble.guard("taking messages in", self._take_in)
        heavy = now.since(self._pulse.heavy) >= fleet.watchdog.heavy_interval
        due = frozenset(s.name for s in specs) if heavy or self._resumed else self.mind.due(specs, now)
        self._learn_runs(specs)
        before = self.last_look.alive if self.last_look is not None else {}
        look = self.senses.look(fleet, self.mind.memories, self.mind.fleet, desired, now, due)
        self.last_look = look
        vanished = [s for s in specs if s.session in before and look.seen[s.name].pane is None]
        again = self._learn_runs(vanished) if vanished and not look.blind else set()
        self._watch_server(look, now)
        self.trouble.guard("ending pauses", lambda: self._end_pauses(look, now))
        self.trouble.guard("keeping logs", lambda: self._keep_logs(fleet, look))
        self.trouble.guard("noting conversations", lambda: self._learn(fleet))
        self.trouble.guard("governing the loop", lambda: self._govern(fleet, look))
        self.trouble.guard("counting tokens", lambda: self._count(fleet, now))
        self._reap(look, now)
        due |= self.mind.due(specs, now)
        todo = [s for s in specs if (s.name in due or s.name in look.changed) and s.name not in again]
        self.mind.wakes.update(dict.fromkeys(again, AT_ONCE))  # what is left of that run was not looked for
        self._judge_all(fleet, todo, look, now)
        if self.observe:
            self.mind.memories.update((s.name, self.mind.judged[s.name].memory) for s in todo)
        else:
            counted = self.mind.fleet.heals
            self.deeds.do_all(fleet, todo, now)
            if self.mind.fleet.heals != counted:  # a watchdog that is killed now must not forget them
                self.trouble.guard("keeping the fleet's record", lambda: self._save_fleet(now))
        self._pulse.listed = now.steady
        if heavy:
            self._pulse.heavy = now.steady
            self.trouble.guard("keeping the fleet's record", lambda: self._save_fleet(now))
            self.trouble.guard("tidying", self.house.store.tidy)
        if self.house.events.settle():
            self.trouble.recover()
        self._show(fleet, todo, look, now)
        self._resumed = max(0, self._resumed - 1)
        return self._sleep(fleet, now)

    def _specs(self, fleet: Fleet) -> tuple[Spec, ...]:
        for spec in fleet.members:
            if spec.name not in self.mind.memories:
                self.mind.memories[spec.name] = self.records.agent(spec.name, spec.session)
        return fleet.members

    def _end_pauses(self, look: Look, now: Moment) -> None:
        """Who was paused until now goes on: first it runs again, then the wish says so."""
        over = self.house.desired.load().pauses_over(now.wall)
        if not over or self.observe or look.blind:
            return
        entries = self.house.desired.load().entries
        for name in over:
            seen = look.seen.get(name)
            if entries[name].frozen and seen is not None and seen.pane is not None:
                table, ref = self.world.processes, seen.pane.ref
                pid = 0 if seen.pane.dead else ref.pid
                self.house.events.begin([Begun("signal", name, ref.run, "its pause is over")])
                table.signal(table.members(pid, ref.run), signal.SIGCONT)
        left = self.house.desired.update(lambda d: d.end_pauses(over, now.wall))
        for name in over:
            if not left.entries[name].paused:
                self._record(EventType.AGENT_UNPAUSED, name, "its pause was over")
                self.mind.wakes[name] = AT_ONCE

    def _take_in(self) -> None:
        """Messages that were put into the outbox, and those that are not wanted any more."""
        if self.observe:
            return
        outbox, memories = self.house.outbox, self.mind.memories
        for name, message in outbox.news():
            memory = memories.get(name)
            if memory is not None and message.status not in FINAL:
                memories[name] = replace(memory, outbox=(*memory.outbox, message))
                self.mind.wakes[name] = AT_ONCE
        for name, message_id in outbox.withdrawals():
            memory = memories.get(name)
            found = next((m for m in memory.outbox if m.id == message_id), None) if memory else None
            if memory is not None and found is not None and found.status is MessageState.QUEUED:
                gone = replace(found, status=MessageState.WITHDRAWN, why="its sender took it back")
                memories[name] = advance(memory, gone)
                outbox.save(name, memories[name].outbox, (gone,))
                self._record(EventType.MESSAGE_WITHDRAWN, name, f"{message_id}: {gone.why}")
            outbox.settle_withdrawal(name, message_id)

    def _grant_amnesty(self, desired: Desired) -> None:
        """The fleet's own budget of restarts is forgotten when the operator says so."""
        if desired.amnesty != self.mind.fleet.amnesty:
            self.mind.fleet = replace(self.mind.fleet, heals=(), amnesty=desired.amnesty)
            if not self.observe:  # a watchdog that is killed now must not grant it twice
                self.trouble.guard("keeping the fleet's record", lambda: self._save_fleet(self.ages.now()))

    def _watch_server(self, look: Look, now: Moment) -> None:
        if look.blind:
            self.trouble.degrade("tmux", look.blind)
            return
        memory, server = self.mind.fleet, look.server
        known = (memory.server_pid, memory.server_started)
        here = (server.pid, server.started) if server else (0, 0)
        if known == here:
            return
        changed = replace(memory, server_pid=here[0], server_started=here[1])
        if memory.server_pid:
            changed = replace(changed, server_lost=now.steady)
            self._record(EventType.SERVER_LOST, "", f"the tmux server {memory.server_pid} is gone")
        if server:
            self._record(EventType.SERVER_FOUNDED, "", f"tmux server {server.pid}")
        self.mind.fleet = changed
        self.trouble.guard("keeping the fleet's record", lambda: self._save_fleet(now))

    def _govern(self, fleet: Fleet, look: Look) -> None:
        """Let the phase machine look, and take its pings in."""
        if fleet.loop is None:
            self.mind.loop = LoopState()
            return
        if self.loop is None:  # we only look, or act for a few: the position is what the record says
            book = PhaseBook(self.house.store, self.world.lock, fleet.loop.state_file)
            self.mind.loop = standing(book.read())
            return
        if look.blind:
            return
        alive = [a.name for a in fleet.agents if a.kind == "loop" and a.session in look.alive]
        plan = self.loop.turn(fleet, alive=alive)
        self.loop_plan = plan
        state = LoopState(plan.phase, plan.complete, plan.held, plan.keep_runs)
        if state != self.mind.loop:
            self.mind.loop = state
            self.mind.wakes.update(dict.fromkeys((a.name for a in fleet.agents if a.kind == "loop"), AT_ONCE))
        if plan.pings:
            self._take_in()
        if plan.task is not None:
            self._call_task(plan.task.agent, plan.task.token)

    def _call_task(self, name: str, token: str) -> None:
        """The task that completion calls for: wanted up, and its old run replaced once a token."""
        entry = self.house.desired.load().entries.get(name)
        if name not in self.mind.memories or (entry is not None and entry.task == token) or self.observe:
            return
        changes = {"want": Want.UP, "paused": False, "frozen": False, "task": token}
        self.house.desired.update(  # a call is a fresh try
            lambda d: d.set([name], **changes).pardon([name], window=False, budget=False)
        )
        self.mind.wakes[name] = AT_ONCE

    def _count(self, fleet: Fleet, now: Moment) -> None:
        """Tokens of the phase that runs, and the record of one that is over."""
        if self.ledger is None or self.loop_plan is None:
            return
        limited = any(m.limit is not None for m in self.mind.memories.values())
        for record in self.ledger.note(
            fleet, self.mind.loop, limited=limited, steady=now.steady, wall=now.wall
        ):
            self._record(EventType.TOKENS_RECORDED, "", f"phase {record['phase']}")

    def _learn(self, fleet: Fleet) -> None:
        """Keep the conversation ids that the CLIs themselves told us: a restart resumes there."""
        while self.ears is not None and self.ears.learned:
            name, conversation = self.ears.learned.popitem()
            agent, memory = fleet.agent(name), self.mind.memories.get(name)
            if agent is None or memory is None or memory.run is None:
                continue
            self.house.store.write_text(f"{name}.id", conversation + "\n")
            run = replace(memory.run, conversation=conversation)
            self.records.save_run(run)
            self.mind.memories[name] = replace(memory, run=run)
            self._record(EventType.AGENT_RESUME_ID_LEARNED, name, conversation)

    def _keep_logs(self, fleet: Fleet, look: Look) -> None:
        if self.observe or self.world.logs is None or look.blind:
            return
        names = {s.session: s.name for s in fleet.members}
        self.world.logs.keep(
            look.panes, lambda kind, session, why: self._record(kind, names.get(session, ""), why)
        )

    def _flooded(self) -> list[str]:
        return self.world.logs.flooded if self.world.logs is not None else []

    def _reap(self, look: Look, now: Moment) -> None:
        """Tmux misses some deaths until another child of its own ends: give it one."""
        if look.unreaped and now.since(self._pulse.reaped) >= REAP_EVERY_S and not self.observe:
            self._pulse.reaped = now.steady
            try:
                self.world.tmux.reap()
            except Unavailable as error:
                self.trouble.degrade("tmux", str(error))

    def hasten(self, key: str) -> None:
        """Something happened: who dies must be looked at wholly, whatever its time says."""
        kind, _, session = key.partition(":")
        fleet = self.reloader.fleet
        if kind == "signals":
            self.senses.listen = True
        if kind == "pane" and fleet is not None:
            self.mind.wakes.update((s.name, AT_ONCE) for s in fleet.members if s.session == session)
            ref = self.last_look.alive.get(session) if self.last_look is not None else None
            if ref is not None:
                self._dying[session] = (ref.pid, self.ages.now().after(DYING_S))

    def _unburied(self, now: Moment) -> bool:
        """Has somebody died whom tmux shows alive, or without a status? It hears of it later than we do."""
        look = self.last_look
        self._dying = {
            session: (pid, until)
            for session, (pid, until) in self._dying.items()
            if look is not None and now.steady < until and (look.shows(session, pid) or pid in look.unreaped)
        }
        return bool(self._dying)

    # --- deciding -----------------------------------------------------------------------------------

    def _judge_all(self, fleet: Fleet, todo: Iterable[Spec], look: Look, now: Moment) -> None:
        heals = tuple(t for t in self.mind.fleet.heals if now.since(t) < HOUR_S)
        looked = self.ages.now().steady
        for spec in todo:
            seen = look.seen[spec.name]
            memory = self._with_run(spec, seen, self.mind.memories[spec.name])
            case = self._case(fleet, spec, memory, seen, now, looked, heals)
            verdict = self._judge(case)
            self.mind.cases[spec.name], self.mind.judged[spec.name] = case, verdict
            if isinstance(verdict.action, Start) and not verdict.action.planned:
                heals = (*heals, now.steady)

    def _judge(self, case: Case) -> Judgement:
        """What the rules say. One that breaks down costs this agent its turn; the others go on."""
        try:
            return judge(case)
        except Exception as fault:
            verdict, name = stumbled(case, fault), case.agent.name
            before = self.mind.judged.get(name)
            if before is None or before.reason != verdict.reason:
                self.trouble.fault(f"deciding on {name}", fault)
            return verdict

    def _learn_runs(self, specs: Iterable[Spec]) -> set[str]:
        """Who is not there may have been started by a verb since, and be gone again: its record stays.

        The names of those of whom that is news.
        """
        alive, learned = self.last_look.alive if self.last_look is not None else {}, set()
        for spec in specs:
            if spec.session in alive:
                continue
            memory = self.mind.memories[spec.name]
            if memory.stopping is not None:
                continue
            run = self.records.run(spec.session)
            if run is not None and (memory.run is None or run.id != memory.run.id):
                self.mind.memories[spec.name] = replace(memory, run=run)
                learned.add(spec.name)
        return learned

    def _with_run(self, spec: Spec, seen: AgentSeen, memory: AgentMemory) -> AgentMemory:
        """The record of the run that is there, read once a run."""
        pane = seen.pane
        if pane is None or (memory.run is not None and memory.run.id == pane.ref.run):
            return memory
        run = self.records.run(spec.session)
        if run is None or run.id != pane.ref.run:
            return memory
        return replace(memory, run=replace(run, pid=pane.ref.pid))

    def _case(
        self,
        fleet: Fleet,
        spec: Spec,
        memory: AgentMemory,
        seen: AgentSeen,
        now: Moment,
        looked: Steady,
        heals: tuple[Steady, ...],
    ) -> Case:
        agent = spec if isinstance(spec, AgentSpec) else None
        until, by, place = (
            self._account(fleet, agent, now) if agent is not None and agent.account else (UNNAMED, "", 0)
        )
        return Case(
            agent=spec,
            backend=fleet.backend_of(agent) if agent else NO_BACKEND,
            watchdog=fleet.watchdog,
            memory=memory,
            seen=seen,
            now=now,
            looked=looked,
            loop=self.mind.loop,
            account_until=until,
            account_by=by,
            stagger=place * STAGGER_S,
            resumed=self._resumed > 0,
            may_start=fleet_allows(heals, now.steady, len(fleet.agents), server_lost=seen.server_lost),
            ping_gap=min(60.0, 2 * fleet.watchdog.signal_interval),
            seen_nudge=fleet.loop.done_nudge if fleet.loop else False,
        )

    def _account(self, fleet: Fleet, agent: AgentSpec, now: Moment) -> tuple[Wall, str, int]:
        """Until when this account is limited, who found out, and this agent's place in the queue after it."""
        mates = [a for a in fleet.agents if a.account == agent.account]
        until, by = UNNAMED, ""
        for mate in mates:
            limit = self.mind.memories[mate.name].limit if mate.name in self.mind.memories else None
            if limit is not None and mate.name != agent.name and limit.until > max(until, now.wall):
                until, by = limit.until, mate.name
        return until, by, mates.index(agent)

    # --- telling ------------------------------------------------------------------------------------

    def _show(self, fleet: Fleet, todo: Iterable[Spec], look: Look, now: Moment) -> None:
        """Rows for whoever asks, and the heartbeat."""
        for spec in todo:
            self.board.post(
                fleet, spec, look.seen[spec.name], self.mind.memories[spec.name], self.mind.judged[spec.name]
            )
        if self.observe:
            return
        words = (self.trouble.now, self.reloader.problem, self.loop_plan, self._strangers(), self._flooded())
        if self.board.due(now.steady, words):
            self.trouble.guard("writing the view", lambda: self._write_view(fleet, now))
        self.trouble.guard("the heartbeat", lambda: self.world.disk.touch(self.house.path("heartbeat")))

    def _write_view(self, fleet: Fleet, now: Moment) -> None:
        troubles = [f"watchdog: degraded: {self.trouble.now}"] if self.trouble.now else []
        troubles += [*self.house.store.troubles, *self._strangers()]
        troubles += [f"{s}: floods its log; look at it with: agents.py attach" for s in self._flooded()]
        facts = {
            "tick": self.count,
            "at": now.wall,
            "degraded": self.trouble.now,
            "config": self.reloader.problem,
        }
        self.board.write(fleet, self.reloader.stamp, self.loop_plan, troubles, facts)

    def _strangers(self) -> tuple[str, ...]:
        return tuple(self.ears.strangers()) if self.ears is not None else ()

    # --- keeping on ---------------------------------------------------------------------------------

    def _sleep(self, fleet: Fleet, now: Moment) -> float:
        wakes = [self.mind.wakes.get(s.name, AT_ONCE) for s in fleet.members]
        next_look = min([later(self._pulse.listed, fleet.watchdog.signal_interval), *wakes])
        delay = now.ahead(next_look)
        if self.reloader.again_in is not None:
            delay = min(delay, self.reloader.again_in)
        if self.loop_plan is not None and self.loop_plan.wake_at is not None:
            delay = min(delay, now.ahead_wall(self.loop_plan.wake_at))
        if self.last_look is not None and (self.last_look.unreaped or self.last_look.blind):
            delay = min(delay, 0.5 if self.last_look.unreaped else 2.0)
        shortest = SHORTEST_S
        if self._unburied(now):
            delay = shortest = DYING_AGAIN_S
        self._pulse.hurried = self._pulse.hurried + 1 if delay < SHORTEST_S else 0
        delay = max(delay, shortest if self._pulse.hurried < HURRIED else 0.5)
        self._pulse.slept = delay
        return delay

    def _save_fleet(self, now: Moment) -> None:
        self.mind.fleet = replace(
            self.mind.fleet, steady=now.steady, wall=now.wall, mono=self.world.clock.mono()
        )
        self.records.save_fleet(self.mind.fleet)

    def _tell(self, kind: EventType, reason: str, trace: str) -> None:
        facts: dict[str, Any] = {"trace": trace} if trace else {}
        if not self.observe:
            self.house.events.record(kind, reason=reason, **facts)

    def _record(self, kind: EventType, agent: str, reason: str) -> None:
        if not self.observe:
            self.house.events.record(kind, agent=agent, reason=reason)
