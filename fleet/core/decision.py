"""The one form in which a decision leaves core, and the form in which the outcome of an effect comes back.

A decision says what to keep, show, tell and do, and when to look again. The executor keeps this order:
messages, memory, notes, effects. A crash in between decides the same again, and puts the same messages down
under the same ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from fleet.core.words import EventType, Outcome

if TYPE_CHECKING:
    from fleet.core.memory import Message, Run
    from fleet.times.moment import Steady

Memory = TypeVar("Memory")
Shown = TypeVar("Shown")
Effect = TypeVar("Effect")


class Note(NamedTuple):
    """An event for the record."""

    type: EventType
    reason: str
    facts: tuple[tuple[str, str | float], ...] = ()


class Decision(NamedTuple, Generic[Memory, Shown, Effect]):
    """What a judge says of one subject."""

    memory: Memory  # what must survive, kept before anything is done
    shown: Shown  # for people
    messages: tuple[tuple[str, Message], ...] = ()  # by agent: new or changed ones
    notes: tuple[Note, ...] = ()
    effects: tuple[Effect, ...] = ()
    wake_at: Steady | None = None  # look again not later than this
    trace: tuple[tuple[str, str], ...] = ()  # what each part said


class Result(NamedTuple):
    """What became of an action: the word that counts, and the reason for people."""

    outcome: Outcome
    why: str = ""
    run: Run | None = None  # that a start began

    @property
    def ok(self) -> bool:
        """It was done."""
        return self.outcome is Outcome.DONE


# --------------------------------------------------------------------------------------------------
# What went wrong in a way that a person can act on. `fleet/verbs/main.py` prints it as it is.


class Fault(Exception):
    """Its text says what failed and what to do. Any other exception is a fault of this program."""

    code = 1  # the exit code of a verb that ends with it
    hint = ""

    def lines(self) -> list[str]:
        """All that is to be said, one line for each thing that is wrong."""
        return [str(self)]
