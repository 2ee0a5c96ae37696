"""Two clocks. Ages run on the steady one, which never goes back; the world names instants on the wall's.

Both count seconds, so a mix-up of the two would look like any other number: that is why each has a type of
its own, and why what lies between an instant and now is asked of a Moment. mypy finds one that is passed,
kept or returned as the other. It does not see a comparison or a difference of the two: those are floats.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple, NewType, TypeVar

Steady = NewType("Steady", float)
Wall = NewType("Wall", float)
Instant = TypeVar("Instant", Steady, Wall)

FIRST = Steady(1e6)  # the steady clock begins far from zero ...
NEVER = Steady(0.0)  # ... which says that it has not happened
LONG_AGO = Steady(-1e12)
UNNAMED = Wall(0.0)  # no instant was named


class Moment(NamedTuple):
    """Now, on both clocks."""

    steady: Steady
    wall: Wall

    def since(self, then: Steady) -> float:
        """Seconds that have passed."""
        return self.steady - then

    def ahead(self, then: Steady) -> float:
        """Seconds that are left until then; below zero when it has passed."""
        return then - self.steady

    def after(self, seconds: float) -> Steady:
        """So many seconds from now."""
        return Steady(self.steady + seconds)

    def since_wall(self, then: Wall) -> float:
        """Seconds that have passed by the wall clock, which may have been moved meanwhile."""
        return self.wall - then

    def ahead_wall(self, named: Wall) -> float:
        """Seconds that are left until the wall clock shows that; below zero when it has passed."""
        return named - self.wall

    def after_wall(self, seconds: float) -> Wall:
        """So many seconds from now, by the wall clock."""
        return Wall(self.wall + seconds)

    def until(self, named: Wall) -> Steady:
        """When the wall clock will show that, as far as is known now; now, if it has passed."""
        return Steady(self.steady + max(0.0, self.ahead_wall(named)))


def utc(wall: Wall) -> str:
    """That instant for people."""
    try:
        return f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return "a time beyond every calendar"


def later(then: Instant, seconds: float) -> Instant:
    """So many seconds after it."""
    return then + seconds  # type: ignore[return-value]  # a sum of floats is a float to mypy, whatever they mean
