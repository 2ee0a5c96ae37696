"""Carry decisions out: keep messages, memory and notes, then do the effects, then keep how they went.

What cannot be put on record is not done. What was decided before this process was stopped is not done either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fleet.core.agent.decide import AgentDecision
from fleet.core.agent.heal import may_resume
from fleet.core.decision import Note, Result
from fleet.core.effects import Action, LearnId, Paste, Post, Press, Remove, Signal, Start
from fleet.core.memory import AgentMemory, MadeFor, Message
from fleet.core.model import Fleet, Member
from fleet.core.queue import tail_of
from fleet.core.restarts import after_heal
from fleet.core.settle import REFUSED_AGAIN_S, settle, take_back
from fleet.core.words import EventType, Outcome
from fleet.store.documents import StoreError
from fleet.store.house import House
from fleet.store.memories import Records
from fleet.store.outbox import WHOLE
from fleet.supervisor.look import Senses
from fleet.supervisor.mind import AT_ONCE, NOT_BY_ITSELF, Ages, Mind, Trouble
from fleet.supervisor.perform import Order, Performer
from fleet.supervisor.view import Board
from fleet.times.moment import Moment

OLD_S = 60.0  # what was decided longer ago than this is decided again: this process was stopped in between
TAIL_OF = 400  # characters of a long text in which its end is found
NOT_TRIED = Result(Outcome.REFUSED, "not tried")

Deed = tuple[Member, Action]


@dataclass(slots=True)
class Executor:
    """One for all decisions on agents."""

    mind: Mind
    house: House
    records: Records
    performer: Performer
    senses: Senses
    board: Board
    ages: Ages
    trouble: Trouble
    tick: Callable[[], int]
    by_person: bool = False  # a verb acts, with its caller's environment
    on_record: bool = True  # False: the disk takes nothing, and what was asked for is done all the same
    _unsaved: dict[str, Member] = field(default_factory=dict)
    started: dict[str, Result] = field(default_factory=dict)  # by name: what became of the newest start

    def carry_out(self, fleet: Fleet, todo: Iterable[Member], now: Moment) -> None:
        """Everything that was decided for these."""
        if self._too_late(now):
            self.mind.wake(spec.name for spec in todo)
            return
        deeds: list[Deed] = []
        for spec in todo:
            decision = self.mind.decided[spec.name]
            if not self._kept(spec, decision, now):
                self.mind.wakes[spec.name] = now.after(REFUSED_AGAIN_S)
                continue
            wake = decision.wake_at
            self.mind.wakes[spec.name] = NOT_BY_ITSELF if wake is None else wake
            deeds.extend((spec, effect) for effect in decision.effects)
        if deeds:
            self._do_all(fleet, deeds, now)

    # --- keeping ------------------------------------------------------------------------------------

    def _kept(self, spec: Member, decision: AgentDecision, now: Moment) -> bool:
        """Messages, memory, notes, in this order. A message that memory forgot is found under its id."""
        case, old = self.mind.cases[spec.name], self.mind.memories[spec.name]
        if case.leased or not self.on_record:  # leased: its memory belongs to the verb that is at work on it
            self.mind.memories[spec.name] = decision.memory
            return True
        memory = self._with_tails(spec.name, decision.memory)
        self.mind.memories[spec.name] = memory
        try:
            self.house.outbox.save(spec.name, memory.outbox, (m for _, m in decision.messages))
            self._save(spec, now)
            for message_id in case.seen.unwanted:
                self.house.outbox.settle_withdrawal(spec.name, message_id)
            self._tell(spec.name, decision.notes)
            if not self.by_person:  # the watchdog tells what it sees of a verb's work
                self._tell_state(spec.name, old, decision)
                if decision.effects:
                    self.board.bundle(self.tick(), spec, case, decision)
        except (OSError, StoreError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.trouble.degrade("state cannot be written", why)
            self._take_back(spec)
            return False
        return True

    def _save(self, member: Member, now: Moment) -> None:
        """Memory, at once; that of a verb once it is done, for one that is killed leaves its wish on disk."""
        if self.by_person:
            self._unsaved[member.name] = member
        else:
            self.records.save(member.name, member.session, self.mind.memories[member.name], now.steady)

    def finish(self, now: Moment) -> None:
        """A verb is done: its memory is the watchdog's from here on.

        What the disk does not take is left out: the watchdog finds out again what it sees.
        """
        while self._unsaved:
            name, member = self._unsaved.popitem()
            with contextlib.suppress(OSError, StoreError):
                self.records.save(name, member.session, self.mind.memories[name], now.steady)

    def _tell(self, agent: str, notes: Iterable[Note]) -> None:
        for note in notes:
            facts: dict[str, Any] = dict(note.facts)
            self.house.events.record(note.type, agent=agent, reason=note.reason, **facts)

    def _tell_state(self, agent: str, old: AgentMemory, decision: AgentDecision) -> None:
        shown = decision.shown
        if shown.detail == old.detail:
            return
        self.house.events.record(
            EventType.AGENT_STATE_CHANGED,
            agent=agent,
            reason=f"{old.detail or 'unseen'} -> {shown.detail}: {shown.reason}",
            rule=shown.rule,
            was=old.detail or "",
            now=shown.detail,
        )

    def _take_back(self, spec: Member) -> None:
        before, after = self.mind.cases[spec.name].memory, self.mind.memories[spec.name]
        acted = bool(self.mind.decided[spec.name].effects)
        self.mind.memories[spec.name] = take_back(before, after, acted=acted)

    def _with_tails(self, name: str, memory: AgentMemory) -> AgentMemory:
        """A text that lies in a file is known on the screen like any other: a long one by its end."""
        if not memory.outbox or all(m.tail or not m.file for m in memory.outbox):
            return memory
        return memory._replace(outbox=tuple(self._with_tail(name, m) for m in memory.outbox))

    def _with_tail(self, name: str, message: Message) -> Message:
        if message.tail or not message.file:
            return message
        try:
            text = self.performer.text_of(name, message)
        except OSError:
            return message
        return message._replace(tail=tail_of(text[-TAIL_OF:]), text=text if len(text) <= WHOLE else "")

    # --- doing --------------------------------------------------------------------------------------

    def _do_all(self, fleet: Fleet, deeds: Sequence[Deed], now: Moment) -> None:
        """Ends and starts in one batch each, the rest one by one. One that fails costs no other its turn."""
        ends = [(spec, act) for spec, act in deeds if isinstance(act, Signal | Remove)]
        starts = [(spec, act) for spec, act in deeds if isinstance(act, Start)]
        guard = partial(self.trouble.guard, comes_again=False)
        if ends:
            guard("stopping agents", partial(self._end, ends, now))
        for spec, act in deeds:
            if not isinstance(act, Signal | Remove | Start):
                guard(f"acting on {spec.name}", partial(self._act, spec, act, now))
        if starts:
            guard("starting agents", partial(self._start, fleet, starts, now))

    def _too_late(self, now: Moment) -> bool:
        """Was this process stopped since the look? What the operator wants may be the opposite by now."""
        return self.ages.now().since(now.steady) > OLD_S

    def _in_time(self, deeds: Sequence[tuple[Member, object]], now: Moment) -> bool:
        if not self._too_late(now):
            return True
        for spec, _ in deeds:
            self._take_back(spec)
            self.mind.wakes[spec.name] = AT_ONCE
        return False

    def _end(self, ends: Sequence[tuple[Member, Signal | Remove]], now: Moment) -> None:
        if not self._in_time(ends, now):
            return
        results = self.performer.end([act for _, act in ends], thorough=self.by_person, noted=self.on_record)
        for (spec, act), done in zip(ends, results, strict=True):
            self._settle(spec, act, done, now)

    def _act(self, spec: Member, act: Action, now: Moment) -> None:
        if not self._in_time([(spec, act)], now):
            return
        message: Message | None = None
        if isinstance(act, Paste | Press | Post):
            message = next((m for m in self.mind.memories[spec.name].outbox if m.id == act.message), None)
        done = self.performer.act(act, message)
        if isinstance(act, LearnId) and done.ok:
            self.senses.learned(spec.name)
        self._settle(spec, act, done, now)

    def _start(self, fleet: Fleet, starts: Sequence[tuple[Member, Start]], now: Moment) -> None:
        if not self._in_time(starts, now):
            return
        orders = [self._order(spec, act) for spec, act in starts]
        results = self.performer.start(fleet, orders, self._is_wanted)
        for spec, act in starts:
            self.started[spec.name] = done = results.get(spec.name, NOT_TRIED)
            self._settle(spec, act, done, now)
            self._save(spec, now)

    def _is_wanted(self, name: str) -> bool:
        return self.house.desired.load().wants_up(name)

    def _order(self, spec: Member, act: Start) -> Order:
        phase = self.mind.loop.phase if spec.is_loop else ""
        memory = self.mind.memories[spec.name]
        made_for = MadeFor(phase, self.mind.cases[spec.name].seen.wish.run)
        resume = may_resume(memory)
        return Order(spec, act.cause, act.replace, resume, made_for, act.planned, by_person=self.by_person)

    def _settle(self, spec: Member, act: Action, done: Result, now: Moment) -> None:
        """How it went is remembered, and the next look at this pane is a real one."""
        after = settle(self.mind.memories[spec.name], act, done, now)
        self.mind.memories[spec.name] = after.memory
        self.senses.forget(spec.session)
        if after.healed:
            self.mind.fleet = after_heal(self.mind.fleet, self.ages.now())
        if after.ended:
            self.house.outbox.save(spec.name, after.memory.outbox, after.ended)
        if after.wake_at is not None:
            self.mind.wakes[spec.name] = after.wake_at
        if self.on_record:
            self._tell(spec.name, after.notes)
