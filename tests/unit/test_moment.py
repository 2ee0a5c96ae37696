"""Two clocks, and what lies between an instant and now."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fleet.core.codec import from_plain, to_plain
from fleet.times.moment import NEVER, UNNAMED, Moment, Steady, Wall, later

NOW = Moment(Steady(1000.0), Wall(5e8))


@dataclass(frozen=True)
class Kept:
    ready: Steady = NEVER
    until: Wall | None = None
    typed: tuple[Steady, ...] = ()
    named: Wall = UNNAMED


def test_ages_and_instants_lie_on_their_own_clock():
    assert NOW.since(Steady(990.0)) == 10.0
    assert NOW.ahead(Steady(1005.0)) == 5.0
    assert NOW.after(5.0) == 1005.0
    assert NOW.since_wall(Wall(5e8 - 60)) == 60.0
    assert NOW.ahead_wall(Wall(5e8 + 60)) == 60.0
    assert NOW.after_wall(-60.0) == 5e8 - 60
    assert later(Steady(3.0), 2.0) == 5.0


@pytest.mark.parametrize(("named", "at"), [(5e8 + 30, 1030.0), (5e8, 1000.0), (5e8 - 30, 1000.0)])
def test_a_named_instant_is_waited_for_on_the_steady_clock_and_never_in_the_past(named, at):
    assert NOW.until(Wall(named)) == at


def test_instants_are_kept_as_numbers_and_nothing_else_is_taken_for_one():
    kept = Kept(Steady(1.5), Wall(5e8), (Steady(1.0), Steady(2.0)), Wall(7.0))
    assert from_plain(Kept, to_plain(kept)) == kept
    assert isinstance(from_plain(Kept, {"ready": 3}).ready, float)
    with pytest.raises(ValueError, match="expected float"):
        from_plain(Kept, {"ready": "soon"})
