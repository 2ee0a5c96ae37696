"""What an agent's memory is after an effect was tried, and after one that could not be put on record.

The outcome is a closed word. What may have been typed goes no step back: the screen tells whether it arrived.
"""

from __future__ import annotations

from typing import NamedTuple

from fleet.core.agent.heal import BAD_ID_TRIES
from fleet.core.decision import Note, Result
from fleet.core.effects import Action, Paste, Post, Press, Start, Unpause
from fleet.core.memory import AgentMemory, Message
from fleet.core.queue import advance
from fleet.core.words import EventType, MessageState, Outcome
from fleet.times.moment import UNNAMED, Moment, Steady, Wall

MAYBE_DONE = frozenset({Outcome.DONE, Outcome.UNKNOWN})
NOTHING_CHANGED = frozenset({Outcome.EXISTS, Outcome.STALE})
REFUSED_AGAIN_S = 5.0
STARTED_S = 0.05  # a new run is looked at after this
AGAIN_S = 1.0
# What a verdict changes in memory because its act is about to happen.
DONE_BY_ACTS = (
    "stopping", "outbox", "typed", "pressed", "presses", "limit", "kept", "run", "bad_resumes",
    "afresh",
)  # fmt: skip


class Aftermath(NamedTuple):
    """Memory after an effect, and what of that is news."""

    memory: AgentMemory
    notes: tuple[Note, ...] = ()
    ended: tuple[Message, ...] = ()
    wake_at: Steady | None = None  # None: as it was decided
    healed: bool = False  # an unplanned start, which counts against the fleet's budget


def settle(memory: AgentMemory, effect: Action, done: Result, now: Moment) -> Aftermath:
    """What becomes of memory when an effect has had this outcome."""
    match effect:
        case Start():
            return _after_start(memory, effect, done, now)
        case Paste() | Press() | Post():
            return _after_typing(memory, effect, done, now)
        case Unpause() if done.ok:
            note = Note(EventType.AGENT_UNPAUSED, "its pause was over")
            return Aftermath(memory, (note,), wake_at=now.steady)
        case _:
            return Aftermath(memory, _failure(effect, done))


def _failure(effect: Action, done: Result) -> tuple[Note, ...]:
    if done.ok:
        return ()
    kind = EventType.ACTION_STALE if done.outcome is Outcome.STALE else EventType.ACTION_FAILED
    return (Note(kind, f"{type(effect).__name__}: {done.why}"),)


def _after_start(memory: AgentMemory, effect: Start, done: Result, now: Moment) -> Aftermath:
    again = now.after(AGAIN_S)
    if done.ok:
        tries = 0 if memory.bad_resumes >= BAD_ID_TRIES else memory.bad_resumes
        begun = memory._replace(run=done.run, bad_resumes=tries)
        soon = now.after(STARTED_S)
        if effect.planned:
            return Aftermath(begun, wake_at=soon)
        note = Note(EventType.AGENT_HEALED, effect.cause)
        return Aftermath(begun._replace(heals=begun.heals + 1), (note,), wake_at=soon, healed=True)
    if done.outcome is Outcome.IMPOSSIBLE:
        fix = f"correct it, then run `reset {effect.agent}` or `up {effect.agent}`"
        note = Note(EventType.AGENT_FAILED_FOR_GOOD, done.why)
        return Aftermath(memory._replace(fatal=done.why, fix=fix), (note,), wake_at=again)
    if done.outcome in NOTHING_CHANGED:
        return Aftermath(memory, wake_at=again)
    note = Note(EventType.AGENT_START_FAILED, done.why)
    return Aftermath(memory._replace(retry_at=now.after(REFUSED_AGAIN_S)), (note,), wake_at=again)


def _after_typing(memory: AgentMemory, effect: Paste | Press | Post, done: Result, now: Moment) -> Aftermath:
    message = next((m for m in memory.outbox if m.id == effect.message), None)
    notes = _failure(effect, done)
    if message is None:
        return Aftermath(memory, notes)
    if done.outcome in MAYBE_DONE:  # in doubt the screen tells whether a paste arrived
        sure = isinstance(effect, Paste) and done.ok
        return Aftermath(advance(memory, message._replace(pasted=True)) if sure else memory, notes)
    # it was certainly not done: a step back, or out of the queue when it never can be
    back = message._replace(status=MessageState.QUEUED, run="", posted=False, why=done.why)
    if isinstance(effect, Press):
        back = message._replace(status=MessageState.TYPED, enters=message.enters - 1, why=done.why)
    elif done.outcome is Outcome.IMPOSSIBLE:
        back = back._replace(status=MessageState.FAILED)
    ended = (back,) if done.outcome is Outcome.IMPOSSIBLE else ()
    return Aftermath(advance(memory, back), notes, ended, now.after(AGAIN_S))


def take_back(before: AgentMemory, after: AgentMemory, *, acted: bool) -> AgentMemory:
    """Memory when a decision could not be put on record, so that nothing of it was done.

    What was found out stays; what the effect would have made true does not.
    """
    undone = {key: getattr(before, key) for key in DONE_BY_ACTS}
    known = {m.id for m in before.outbox}
    new = (m for m in after.outbox if m.id not in known and m.status is MessageState.QUEUED)
    undone["outbox"] = (*before.outbox, *new)  # that something is to be said was found out, not done
    if not acted and _window(before) != _window(after):
        del undone["limit"]  # that a window began or ended was seen, not done
    return after._replace(**undone)


def _window(memory: AgentMemory) -> Wall:
    return memory.limit.since if memory.limit is not None else UNNAMED
