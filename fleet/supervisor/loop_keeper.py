"""The loop as the watchdog holds it: recall, look, keep what was decided, do it. Deciding is core's.

The order is that of every decision (`fleet/core/decision.py`): messages, memory, notes, effects.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.codec import from_plain, to_plain
from fleet.core.decision import Result
from fleet.core.effects import LoopEffect
from fleet.core.loop.decide_loop import LoopDecision
from fleet.core.loop.loop_case import Job, LoopMemory, LoopSeen
from fleet.core.model import Fleet, Loop
from fleet.ports import Children
from fleet.store.house import House
from fleet.supervisor.loop_children import LoopChildren
from fleet.supervisor.loop_do import LoopExecutor
from fleet.supervisor.loop_look import LoopLook
from fleet.supervisor.world import World

DOCUMENT = "loop"


class LoopKeeper:
    """Keeps one project's loop."""

    def __init__(self, world: World, house: House, jobs: Children[Job]) -> None:
        children = LoopChildren(world, house, jobs)
        self._house = house
        self._look = LoopLook(world, house, children)
        self._executor = LoopExecutor(world, house, children)
        self.memory: LoopMemory | None = None

    def recall(self) -> LoopMemory:
        """What is remembered; a damaged record counts as none, which makes this sight the first one."""
        if self.memory is None:
            data = self._house.store.load(DOCUMENT)
            try:
                self.memory = from_plain(LoopMemory, data) if data else LoopMemory()
            except ValueError as error:
                self._house.store.troubles.append(f"state/loop.json: {error}; starting from what is seen")
                self.memory = LoopMemory()
        return self.memory

    def look(self, fleet: Fleet, loop: Loop, *, alive: Iterable[str]) -> LoopSeen:
        """One look. `alive`: loop agents that still run."""
        return self._look.look(fleet, loop, alive=alive)

    def keep(self, decision: LoopDecision) -> None:
        """Put down messages, memory and notes. A crash in between decides the same again."""
        for agent, message in decision.messages:
            self._house.outbox.put(agent, message)
        if decision.memory != self.recall():
            self._house.store.save(DOCUMENT, to_plain(decision.memory))
            self.memory = decision.memory
        for note in decision.notes:
            self._house.events.note(note)

    def do(self, fleet: Fleet, loop: Loop, effect: LoopEffect) -> Result:
        """Carry out one effect."""
        return self._executor.do(fleet, loop, effect)

    def watch_paths(self, fleet: Fleet) -> tuple[str, ...]:
        """Files whose changes are worth an early look."""
        return self._look.watch_paths(fleet.loop) if fleet.loop is not None else ()
