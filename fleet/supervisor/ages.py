"""The steady clock: what ages are measured on.

It runs with the monotonic clock, also over a restart of ours; over one of the machine it carries on by the
wall time that passed. It never goes back. When the two clocks part, or a tick is long overdue, the machine
was suspended, the watchdog stopped, or the clock moved: then no agent was idle, and all ages start anew.
"""

from __future__ import annotations

from fleet.core.memory import FleetMemory
from fleet.ports import Clock
from fleet.times.moment import Moment, Steady, Wall

JUMP_S = 60.0  # clocks that differ by more than this have been moved, or we slept
CARRY_OVER_MAX_S = 8 * 86_400.0


class Ages:
    """Now, on both clocks, and whether time went by as it should."""

    def __init__(self, clock: Clock, memory: FleetMemory) -> None:
        self._clock = clock
        wall = clock.wall()
        self._mono0 = clock.mono()
        self._steady0 = memory.steady + self._away(memory, wall, self._mono0)
        self._wall, self._mono = wall, self._mono0
        self._first = True

    @staticmethod
    def _away(memory: FleetMemory, wall: Wall, mono: float) -> float:
        """How long no watchdog looked: by the monotonic clock within one boot, else by the wall clock."""
        if not memory.wall:
            return 0.0
        away = mono - memory.mono if memory.mono and mono >= memory.mono else wall - memory.wall
        return min(max(0.0, away), CARRY_OVER_MAX_S)

    def now(self) -> Moment:
        """This moment."""
        return Moment(Steady(self._steady0 + self._clock.mono() - self._mono0), self._clock.wall())

    def jumped(self, expected: float) -> str:
        """What went wrong with time since the last call, if we meant to sleep that long; "" if nothing."""
        wall, mono = self._clock.wall(), self._clock.mono()
        gap = mono - self._mono
        drift = (wall - self._wall) - gap
        overslept = gap > 3 * max(expected, 1.0) + JUMP_S
        first, self._first = self._first, False
        self._wall, self._mono = wall, mono
        if first or not (abs(drift) > JUMP_S or overslept):
            return ""
        return f"clocks moved by {drift:.0f} s, away for {gap:.0f} s: ages start anew"
