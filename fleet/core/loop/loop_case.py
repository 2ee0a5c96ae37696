"""The loop's case at one moment: all its parts may look at, and the form in which each of them answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fleet.core.decision import Note
from fleet.core.loop.effects import LoopEffect
from fleet.core.loop.nouns import LoopMemory, LoopSeen
from fleet.core.memory import Message
from fleet.core.model import Fleet, Loop
from fleet.times.moment import Moment, Wall


@dataclass(frozen=True, slots=True)
class LoopCase:
    """All a part may look at."""

    fleet: Fleet
    loop: Loop
    memory: LoopMemory
    seen: LoopSeen
    now: Moment

    @property
    def tip(self) -> str:
        """The watched commit, as far as it is known."""
        return self.seen.git.tip if self.seen.git else ""

    @property
    def phase(self) -> str:
        """The id of the phase that the record names; empty when it names none."""
        return self.seen.place.id if self.seen.place else ""

    def after(self, part: LoopPart) -> LoopCase:
        """The case as the next part gets it: with what this one remembers."""
        return replace(self, memory=part.memory)


@dataclass(frozen=True, slots=True)
class LoopPart:
    """What one part says. Only `memory` must be given: with what the part changed of the case's."""

    memory: LoopMemory
    messages: tuple[tuple[str, Message], ...] = ()  # by agent
    notes: tuple[Note, ...] = ()
    effects: tuple[LoopEffect, ...] = ()
    problems: tuple[str, ...] = ()
    wakes: tuple[Wall, ...] = ()  # look again not later than the first of these
    held: str = ""  # why the loop does not move
    state: str = ""  # one line for `status`

    def joined(self, after: LoopPart) -> LoopPart:
        """What both say, in this order. Of `held` and `state` the later one's counts, if it has any."""
        return LoopPart(
            memory=after.memory,
            messages=self.messages + after.messages,
            notes=self.notes + after.notes,
            effects=self.effects + after.effects,
            problems=self.problems + after.problems,
            wakes=self.wakes + after.wakes,
            held=after.held or self.held,
            state=after.state or self.state,
        )

    def then(self, case: LoopCase, part: Callable[[LoopCase], LoopPart]) -> LoopPart:
        """Ask the next part, which sees what this one remembers, and join what it says."""
        return self.joined(part(case.after(self)))
