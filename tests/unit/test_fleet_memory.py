"""What concerns all agents together: restarts of the last hour, and the tmux server they live in."""

from __future__ import annotations

from fleet.core.desired import NOTHING
from fleet.core.memory import FleetMemory
from fleet.core.remember import with_server, without_server
from fleet.core.restarts import after_heal, forgiven
from fleet.core.seen import ServerId
from fleet.core.words import EventType
from fleet.times.moment import Moment, Steady, Wall

NOW = Moment(Steady(10_000.0), Wall(1_800_000_000.0))


def test_a_heal_is_counted_with_those_of_the_last_hour():  # I21
    memory = FleetMemory(heals=(Steady(6_000.0), Steady(7_000.0), Steady(9_999.0)))
    assert after_heal(memory, NOW).heals == (7_000.0, 9_999.0, 10_000.0)


def test_an_amnesty_is_heeded_once():  # I21
    memory = FleetMemory(heals=(Steady(9_000.0),))
    desired = NOTHING._replace(amnesty=1)
    once = forgiven(memory, desired)
    assert (once.heals, once.amnesty) == ((), 1)
    again = after_heal(once, NOW)
    assert forgiven(again, desired) is again


def test_a_server_that_went_is_told_and_dated_and_the_same_one_is_no_news():
    first = ServerId(7, 100)
    memory, notes = with_server(FleetMemory(), first, NOW)
    assert [n.type for n in notes] == [EventType.SERVER_FOUNDED]
    assert memory.server_lost != NOW.steady, "there was none before it"
    assert with_server(memory, first, NOW) == (memory, ())
    other, notes = with_server(memory, ServerId(7, 200), NOW)
    assert [n.type for n in notes] == [EventType.SERVER_LOST, EventType.SERVER_FOUNDED]
    assert other.server_lost == NOW.steady
    gone, notes = with_server(memory, None, NOW)
    assert (gone.server_pid, [n.type for n in notes]) == (0, [EventType.SERVER_LOST])


def test_a_server_that_was_ended_on_purpose_is_not_told_as_lost():
    first, second = ServerId(7, 100), ServerId(8, 200)
    memory, _ = with_server(FleetMemory(heals=(Steady(9_000.0),)), first, NOW)
    ended = without_server(memory)
    assert ended.heals == memory.heals
    assert with_server(ended, None, NOW) == (ended, ())
    known, notes = with_server(ended, second, NOW)
    assert [n.type for n in notes] == [EventType.SERVER_FOUNDED]
    assert [n.type for n in with_server(known, None, NOW)[1]] == [EventType.SERVER_LOST], "killed under it"
