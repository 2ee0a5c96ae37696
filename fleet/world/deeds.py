"""The doing half of a tick: what was decided goes on record, then it is done, then how it went is remembered.

What cannot be put on record is not done. What was decided before somebody stopped us is not done either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from fleet.core.actions import Action, Paste, Post, Press, Start
from fleet.core.budget import HOUR_S
from fleet.core.case import Case, LoopState
from fleet.core.decide import Judgement
from fleet.core.memory import AgentMemory, FleetMemory, MadeFor, Message
from fleet.core.model import AgentSpec, Fleet
from fleet.core.moment import UNNAMED, Moment, Steady, Wall
from fleet.core.result import Result
from fleet.core.rules.heal import BAD_ID_TRIES
from fleet.core.rules.outbox import advance, tail_of
from fleet.core.words import EventType, MessageState, Outcome
from fleet.journal.store import StoreError
from fleet.world.ages import Ages
from fleet.world.board import Board
from fleet.world.perform import Order, Performer
from fleet.world.records import Records
from fleet.world.sense import Senses, Spec
from fleet.world.trouble import Trouble
from fleet.world.world import House

MAYBE_DONE = frozenset({Outcome.DONE, Outcome.UNKNOWN})
NOTHING_CHANGED = frozenset({Outcome.EXISTS, Outcome.STALE})
REFUSED_AGAIN_S = 5.0
OLD_S = 60.0  # what was decided longer ago than this is decided again: we were stopped in between
AT_ONCE = Steady(0.0)
NOT_BY_ITSELF = Steady(1e15)  # only something that happens makes it due
# What a verdict changes in memory because its act is about to happen.
DONE_BY_ACTS = (
    "stopping", "outbox", "typed", "pressed", "presses", "limit", "kept", "run", "bad_resumes",
    "afresh",
)  # fmt: skip
TAIL_OF = 400  # characters of a long text in which its end is found
WHOLE = 4000  # characters of a text that is known whole: then a person's words before it are seen as theirs


@dataclass(slots=True)
class Mind:
    """What the watchdog holds from one tick to the next, by agent."""

    fleet: FleetMemory = field(default_factory=FleetMemory)
    memories: dict[str, AgentMemory] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    judged: dict[str, Judgement] = field(default_factory=dict)
    wakes: dict[str, Steady] = field(default_factory=dict)  # when each is due, on the steady clock
    loop: LoopState = field(default_factory=LoopState)

    def due(self, specs: Iterable[Spec], now: Moment) -> frozenset[str]:
        """Whose time has come."""
        wakes, steady = self.wakes, now.steady
        return frozenset([s.name for s in specs if wakes.get(s.name, AT_ONCE) <= steady])


@dataclass(slots=True)
class Deeds:
    """Carries verdicts out."""

    mind: Mind
    house: House
    records: Records
    performer: Performer
    senses: Senses
    board: Board
    ages: Ages
    trouble: Trouble
    tick: Callable[[], int]

    def do_all(self, fleet: Fleet, todo: Iterable[Spec], now: Moment) -> None:
        """Everything that was decided for these."""
        starts: list[tuple[Spec, Start]] = []
        acts: list[tuple[Spec, Action]] = []
        wakes = self.mind.wakes
        if self._too_late(now):
            wakes.update((spec.name, AT_ONCE) for spec in todo)
            return
        for spec in todo:
            verdict = self.mind.judged[spec.name]
            if not self._remember(spec, verdict, now):
                wakes[spec.name] = now.after(REFUSED_AGAIN_S)
                continue  # what cannot be put on record is not done
            wakes[spec.name] = verdict.wake_at if verdict.wake_at is not None else NOT_BY_ITSELF
            if isinstance(verdict.action, Start):
                starts.append((spec, verdict.action))
            elif verdict.action is not None:
                acts.append((spec, verdict.action))
        for spec, action in acts:
            act = partial(self._act, spec, action, now)
            self.trouble.guard(f"acting on {spec.name}", act, comes_again=False)
        if starts:
            start = partial(self._start, fleet, starts, now)
            self.trouble.guard("starting agents", start, comes_again=False)

    def _remember(self, spec: Spec, verdict: Judgement, now: Moment) -> bool:
        old = self.mind.memories[spec.name]
        memory = self._with_tails(spec.name, verdict.memory)
        if memory is not verdict.memory:
            verdict = replace(verdict, memory=memory)
        self.mind.memories[spec.name] = memory
        try:
            # messages first: one that memory has forgotten is asked for once more, under the same id
            self.house.outbox.save(spec.name, memory.outbox, verdict.finished)
            self.records.save(spec.name, spec.session, verdict.memory, now.steady)
            for kind, reason in verdict.events:
                self.house.events.record(kind, agent=spec.name, reason=reason)
            if verdict.memory.detail != old.detail:
                reason = f"{old.detail or 'unseen'} -> {verdict.memory.detail}: {verdict.reason}"
                self.house.events.record(
                    EventType.AGENT_STATE_CHANGED,
                    agent=spec.name,
                    reason=reason,
                    rule=verdict.rule,
                    was=old.detail or "",
                    now=verdict.memory.detail,
                )
            if verdict.action is not None:
                self.board.bundle(self.tick(), spec, self.mind.cases[spec.name], verdict)
        except (OSError, StoreError) as error:
            # not put on record, so not done: what the verdict took for granted is taken back
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.trouble.degrade("state cannot be written", why)
            self._take_back(spec)
            return False
        return True

    def _take_back(self, spec: Spec) -> None:
        before, after = self.mind.cases[spec.name].memory, self.mind.memories[spec.name]
        undone = {key: getattr(before, key) for key in DONE_BY_ACTS}
        known = {m.id for m in before.outbox}
        new = (m for m in after.outbox if m.id not in known and m.status is MessageState.QUEUED)
        undone["outbox"] = (*before.outbox, *new)  # that something is to be said was found out, not done
        if self.mind.judged[spec.name].action is None and _window(before) != _window(after):
            del undone["limit"]  # that a window began or ended was seen, not done
        self.mind.memories[spec.name] = replace(after, **undone)

    def _too_late(self, now: Moment) -> bool:
        """Did somebody stop us since this look? What the operator wants may be the opposite by now."""
        return self.ages.now().since(now.steady) > OLD_S

    def _with_tails(self, name: str, memory: AgentMemory) -> AgentMemory:
        """A text that lies in a file is known on the screen like any other: a long one by its end."""
        if not memory.outbox or all(m.tail or not m.file for m in memory.outbox):
            return memory
        return replace(memory, outbox=tuple(self._with_tail(name, m) for m in memory.outbox))

    def _with_tail(self, name: str, message: Message) -> Message:
        if message.tail or not message.file:
            return message
        try:
            text = self.performer.text_of(name, message)
        except OSError:
            return message
        return replace(message, tail=tail_of(text[-TAIL_OF:]), text=text if len(text) <= WHOLE else "")

    def _act(self, spec: Spec, action: Action, now: Moment) -> None:
        message: Message | None = None
        if self._too_late(now):
            self._take_back(spec)
            self.mind.wakes[spec.name] = AT_ONCE
            return
        if isinstance(action, Paste | Press | Post):
            message = next((m for m in self.mind.memories[spec.name].outbox if m.id == action.message), None)
        done = self.performer.act(action, message)
        self.senses.forget(spec.session)
        if message is not None and isinstance(action, Paste) and done.ok:  # in doubt the screen tells
            pasted = replace(message, pasted=True)
            self.mind.memories[spec.name] = advance(self.mind.memories[spec.name], pasted)
        if done.ok:
            return
        self._record(
            EventType.ACTION_STALE if done.outcome is Outcome.STALE else EventType.ACTION_FAILED,
            spec.name,
            f"{type(action).__name__}: {done.why}",
        )
        if message is not None and done.outcome not in MAYBE_DONE:
            # it was certainly not done: a step back, or out of the queue when it never can be
            back = replace(message, status=MessageState.QUEUED, run="", posted=False, why=done.why)
            if isinstance(action, Press):
                back = replace(message, status=MessageState.TYPED, enters=message.enters - 1, why=done.why)
            elif done.outcome is Outcome.IMPOSSIBLE:
                back = replace(back, status=MessageState.FAILED)
            self.mind.memories[spec.name] = advance(self.mind.memories[spec.name], back)
            if done.outcome is Outcome.IMPOSSIBLE:
                self.house.outbox.save(spec.name, self.mind.memories[spec.name].outbox, (back,))
            self.mind.wakes[spec.name] = now.after(1.0)

    def _start(self, fleet: Fleet, starts: list[tuple[Spec, Start]], now: Moment) -> None:
        orders = [self._order(spec, action) for spec, action in starts]

        def wanted(name: str) -> bool:
            return self.house.desired.load().wants_up(name)

        results = self.performer.start(fleet, orders, wanted)
        for spec, action in starts:
            self._settle(spec, action, results.get(spec.name, Result(Outcome.REFUSED, "not tried")), now)

    def _order(self, spec: Spec, action: Start) -> Order:
        phase = self.mind.loop.phase if isinstance(spec, AgentSpec) and spec.kind == "loop" else ""
        memory = self.mind.memories[spec.name]
        made_for = MadeFor(phase, self.mind.cases[spec.name].seen.wish.task)
        resume = memory.bad_resumes < BAD_ID_TRIES and not memory.afresh
        return Order(spec, action.cause, action.replace, resume, made_for, action.planned, by_person=False)

    def _settle(self, spec: Spec, action: Start, done: Result, now: Moment) -> None:
        memory = self.mind.memories[spec.name]
        if done.ok:
            memory = replace(
                memory,
                run=done.run,
                bad_resumes=0 if memory.bad_resumes >= BAD_ID_TRIES else memory.bad_resumes,
            )
            if not action.planned:
                memory = replace(memory, heals=memory.heals + 1)
                lately = (t for t in self.mind.fleet.heals if now.since(t) < HOUR_S)
                self.mind.fleet = replace(self.mind.fleet, heals=(*lately, self.ages.now().steady))
                self._record(EventType.AGENT_HEALED, spec.name, action.cause)
        elif done.outcome is Outcome.IMPOSSIBLE:
            memory = replace(
                memory, fatal=done.why, fix=f"mend it, then `reset {spec.name}` or `up {spec.name}`"
            )
            self._record(EventType.AGENT_FAILED_FOR_GOOD, spec.name, done.why)
        elif done.outcome not in NOTHING_CHANGED:
            memory = replace(memory, retry_at=now.after(REFUSED_AGAIN_S))
            self._record(EventType.AGENT_START_FAILED, spec.name, done.why)
        self.mind.memories[spec.name] = memory
        self.mind.wakes[spec.name] = now.after(0.05 if done.ok else 1.0)
        self.records.save(spec.name, spec.session, memory, now.steady)

    def _record(self, kind: EventType, agent: str, reason: str) -> None:
        self.house.events.record(kind, agent=agent, reason=reason)


def _window(memory: AgentMemory) -> Wall:
    return memory.limit.since if memory.limit is not None else UNNAMED
