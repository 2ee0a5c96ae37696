"""When to look next: one table over all dates of a tick."""

from __future__ import annotations

import pytest

from fleet.core.agenda import BLIND_S, DYING_S, HURRIED, PAUSE_S, SHORTEST_S, UNREAPED_S, Agenda, rest
from fleet.times.moment import Moment, Steady, Wall
from tests.records import replace

NOW = Moment(Steady(1000.0), Wall(1_800_000_000.0))
QUIET = Agenda(listed=NOW.steady, interval=30.0, agents=[Steady(1e15)])


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        pytest.param({}, 30.0, id="nothing-due-is-one-interval"),
        pytest.param({"listed": Steady(990.0)}, 20.0, id="the-interval-counts-from-the-last-look"),
        pytest.param({"agents": [Steady(1e15), Steady(1007.0)]}, 7.0, id="the-first-agent-that-is-due"),
        pytest.param({"agents": []}, 30.0, id="a-fleet-without-agents"),
        pytest.param({"loop": Steady(1003.0)}, 3.0, id="the-loop"),
        pytest.param({"config_s": 0.8}, 0.8, id="a-config-that-is-not-believed-yet"),
        pytest.param({"blind": True}, BLIND_S, id="a-tmux-that-does-not-answer"),
        pytest.param({"unreaped": True}, UNREAPED_S, id="a-status-that-is-missing"),
        pytest.param({"unreaped": True, "agents": [Steady(1000.1)]}, 0.1, id="what-is-sooner-counts"),
        pytest.param({"dying": True}, DYING_S, id="a-death-that-tmux-has-not-noticed"),
        pytest.param({"agents": [Steady(1.0)]}, SHORTEST_S, id="what-is-overdue-waits-the-shortest-time"),
    ],
)
def test_the_next_look(more, seconds):
    assert rest(replace(QUIET, **more), NOW)[0] == pytest.approx(seconds)


def test_a_fleet_that_is_always_overdue_is_given_a_pause():
    hurried, waits = 0, []
    for _ in range(HURRIED + 5):
        wait, hurried = rest(replace(QUIET, agents=[Steady(1.0)], hurried=hurried), NOW)
        waits.append(wait)
    assert waits[: HURRIED - 1] == [SHORTEST_S] * (HURRIED - 1)
    assert set(waits[HURRIED - 1 :]) == {PAUSE_S}
    assert rest(replace(QUIET, hurried=hurried), NOW) == (30.0, 0)
