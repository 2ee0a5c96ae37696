"""The one form in which a decision leaves core: what to keep, show, tell and do, and when to look again.

Whoever carries it out keeps this order: messages, memory, notes, effects. A crash in between decides the same
again, and puts the same messages down under the same ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from fleet.core.words import EventType

if TYPE_CHECKING:
    from fleet.core.memory import Message
    from fleet.times.moment import Steady

Memory = TypeVar("Memory")
Shown = TypeVar("Shown")
Effect = TypeVar("Effect")


@dataclass(frozen=True, slots=True)
class Note:
    """An event for the record."""

    type: EventType
    reason: str
    facts: tuple[tuple[str, str | float], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision(Generic[Memory, Shown, Effect]):
    """What a judge says of one subject."""

    memory: Memory  # what must survive, kept before anything is done
    shown: Shown  # for people
    messages: tuple[tuple[str, Message], ...] = ()  # by agent: new or changed ones
    notes: tuple[Note, ...] = ()
    effects: tuple[Effect, ...] = ()
    wake_at: Steady | None = None  # look again not later than this
    trace: tuple[tuple[str, str], ...] = ()  # what each part said
