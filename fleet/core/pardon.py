"""Forget that an agent failed: what `reset`, `up` and `restart` mean by a fresh try.

The wish carries two numbers, memory the ones that were heeded. A number that differs is heeded once, by
whichever process judges first; repeating it changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from fleet.core.case import Case
from fleet.core.decision import Note
from fleet.core.evidence import dealt_with
from fleet.core.memory import AgentMemory
from fleet.core.words import EventType, MessageKind, Witness
from fleet.times.moment import NEVER, Wall


def pardon(case: Case) -> tuple[AgentMemory, tuple[Note, ...]]:
    """The memory after what the operator wanted forgotten, and what of that is news."""
    wish, memory = case.seen.wish, case.memory
    reset = wish.resets != memory.resets
    if case.seen.blind or not (reset or wish.tries != memory.tries):
        return memory, ()
    after = forget(memory, case.now.wall, window=reset)
    same = replace(after, pardoned=memory.pardoned, pardoned_at=memory.pardoned_at) == memory
    heeded = replace(after, tries=wish.tries, resets=wish.resets)
    said = Note(EventType.AGENT_RESET, "the operator asked for it")
    return heeded, (said,) if reset or not same else ()


def forget(memory: AgentMemory, wall: Wall, *, window: bool = True) -> AgentMemory:
    """As if it had never failed. With `window` a limit window ends now too: `up` and `restart` keep it.

    It is ended, not forgotten: its old banner would arm it again.
    """
    limit = memory.limit
    if limit is not None and window:
        waiting = any(m.kind is MessageKind.PROBE for m in memory.outbox)  # then that is the one probe
        limit = replace(
            limit, until=wall, probed=limit.probed if waiting else NEVER, probes=0, source=Witness.OPERATOR
        )
    if memory.fatal:
        memory = dealt_with(memory)  # the words that condemned it may still stand there
    return replace(
        memory, deaths=(), exits=(), flapping=NEVER, retry_at=NEVER, fatal="", fix="", pardoned=memory.over,
        pardoned_at=wall, limit=limit, limit_hint=NEVER, bad_resumes=0, presses=0, pressed="", kept="",
    )  # fmt: skip
