"""What the supervisor holds from one tick to the next, by agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fleet.core.agent.decide import AgentDecision
from fleet.core.case import Case
from fleet.core.loop.loop_case import NO_LOOP, LoopShown
from fleet.core.memory import AgentMemory, FleetMemory
from fleet.core.model import Member
from fleet.times.moment import Moment, Steady

AT_ONCE = Steady(0.0)
NOT_BY_ITSELF = Steady(1e15)  # only something that happens makes it due


@dataclass(slots=True)
class Mind:
    """Memory, the last case and the last decision, and when each agent is due."""

    fleet: FleetMemory = field(default_factory=FleetMemory)
    memories: dict[str, AgentMemory] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    decided: dict[str, AgentDecision] = field(default_factory=dict)
    wakes: dict[str, Steady] = field(default_factory=dict)  # when each is due, on the steady clock
    loop: LoopShown = NO_LOOP

    def due(self, specs: Iterable[Member], now: Moment) -> frozenset[str]:
        """Whose time has come."""
        wakes, steady = self.wakes, now.steady
        return frozenset([s.name for s in specs if wakes.get(s.name, AT_ONCE) <= steady])

    def wake(self, names: Iterable[str]) -> None:
        """These are due at once."""
        self.wakes.update(dict.fromkeys(names, AT_ONCE))
