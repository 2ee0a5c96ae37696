"""What a look leaves in memory, and what a run's end costs."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from fleet.core import restarts
from fleet.core.case import ProcView, Wish
from fleet.core.codec import from_plain, to_plain
from fleet.core.desired import Want
from fleet.core.memory import AgentMemory, Stopping
from fleet.core.remember import remember
from fleet.core.words import MessageState, PingAbout
from tests.records import replace
from tests.unit.cases import NOW, PANE, READY, SERVICE, case, dead, limit, message, reading, seen

NEW = PANE._replace(ref=PANE.ref._replace(run="run2", pid=200), created=NOW.wall - 1)


def kinds(notes):
    return [note.type for note in notes]


def test_an_unseen_agent_changes_nothing():
    memory, events = remember(case(seen=seen(blind="hung", pane=None)))
    assert memory is READY
    assert not events


def test_a_new_run_voids_what_was_about_the_old_one():
    old = replace(
        READY, limit_hint=5.0, shell_since=7.0, presses=2, marker=9.0, state="wedged", state_looks=2
    )
    memory, _ = remember(case(old, seen=seen(pane=NEW, reading=None)))
    assert memory.seen_run == "run2"
    void = (memory.ready, memory.limit_hint, memory.shell_since, memory.presses, memory.marker)
    assert not any(void)


def test_a_limit_window_outlives_the_run_it_was_seen_in():
    memory, _ = remember(case(replace(READY, limit=limit()), seen=seen(pane=NEW)))
    assert memory.limit == limit()  # R156, I5


def test_a_message_typed_into_the_old_run_is_owed_to_the_new_one():
    sent = replace(
        message("ping", about=PingAbout.CLAIM), status=MessageState.SUBMITTED, run="run1", enters=1
    )
    memory, _ = remember(case(replace(READY, outbox=(sent,)), seen=seen(pane=NEW)))
    assert [(m.status, m.run) for m in memory.outbox] == [(MessageState.QUEUED, "")]


def test_a_ping_backend_is_owed_its_kickoff_once_a_run():
    run = replace(READY.run, id="run2", delivery="ping", kickoff="/k", tail="the end")
    memory, _ = remember(case(replace(READY, run=run), seen=seen(pane=NEW)))
    assert [(m.kind, m.file) for m in memory.outbox] == [("kickoff", "/k")]
    again, _ = remember(case(replace(memory, outbox=()), seen=seen(pane=NEW)))
    assert not again.outbox  # I18


def test_an_old_kickoff_is_not_typed_into_a_new_run():
    stale = replace(message("kickoff"), run="run1")
    memory, _ = remember(case(replace(READY, outbox=(stale,)), seen=seen(pane=NEW)))
    assert not memory.outbox


@pytest.mark.parametrize("state", ["idle", "working", "limited", "retrying", "error", "context"])
def test_ready_means_that_the_screen_says_something_known(state):
    young = replace(READY, ready=0.0, alive_since=NOW.steady - 2)
    memory, events = remember(case(young, seen=seen(reading=reading(state))))
    assert memory.ready
    assert "agent.ready" in kinds(events)


@pytest.mark.parametrize("state", ["unknown", "asking", "starting", "shell"])
def test_a_strange_screen_is_not_ready(state):
    young = replace(READY, ready=0.0, alive_since=NOW.steady - 2)
    assert not remember(case(young, seen=seen(reading=reading(state))))[0].ready


def test_a_service_is_ready_by_living():
    young = replace(READY, ready=0.0, alive_since=NOW.steady - 0.5)
    assert not remember(case(young, agent=SERVICE, seen=seen(reading=None)))[0].ready
    older = replace(young, alive_since=NOW.steady - 1.5)
    assert remember(case(older, agent=SERVICE, seen=seen(reading=None)))[0].ready


def test_work_on_the_screen_or_in_the_processor_is_not_quiet():
    quiet = replace(READY, quiet_since=NOW.steady - 500)
    for look in (seen(reading=reading("working")), seen(proc=ProcView(busy=True)), seen(working=True)):
        assert remember(case(quiet, seen=look))[0].quiet_since == NOW.steady


def test_what_a_look_finds_new_is_as_young_as_the_end_of_the_look():
    """I23: who stopped us half-way made nobody older; what has not changed is not made younger."""
    moved = seen(reading=reading("idle", content_hash="new"))
    for look in (moved, seen(proc=ProcView(busy=True)), seen(transcript=NOW.steady)):
        assert remember(case(seen=look, looked=NOW.steady + 60))[0].quiet_since == NOW.steady + 60
    assert remember(case(looked=NOW.steady + 60))[0].quiet_since == READY.quiet_since
    assert remember(case(seen=seen(transcript=NOW.steady - 2)))[0].quiet_since == NOW.steady - 2


def test_our_own_echo_is_not_work():
    """T77: a change just after we typed does not make the agent look alive."""
    sent = replace(message(), status=MessageState.SUBMITTED, run="run1", at=NOW.steady - 1)
    quiet = replace(READY, quiet_since=NOW.steady - 500, outbox=(sent,))
    memory, _ = remember(case(quiet, seen=seen(reading=reading("idle", content_hash="new"))))
    assert memory.quiet_since == NOW.steady - 500
    unprompted = replace(quiet, outbox=())
    memory, _ = remember(case(unprompted, seen=seen(reading=reading("idle", content_hash="new"))))
    assert memory.quiet_since == NOW.steady


def test_after_a_suspend_nobody_has_been_idle():
    memory, _ = remember(case(replace(READY, quiet_since=NOW.steady - 9000), resumed=True))
    assert memory.quiet_since == NOW.steady  # I23


@pytest.mark.parametrize("detail", ["PAUSED", "FROZEN"])
def test_the_time_an_agent_was_paused_does_not_count_as_idle(detail):
    old = replace(READY, quiet_since=NOW.steady - 9000, still_since=NOW.steady - 9000, detail=detail)
    memory, _ = remember(case(old))
    assert (memory.quiet_since, memory.still_since) == (NOW.steady, NOW.steady)
    held, _ = remember(case(old, seen=seen(wish=Wish(Want.UP, paused=True))))
    assert held.quiet_since == NOW.steady - 9000


@pytest.mark.parametrize(
    ("working", "screen", "said"),
    [
        (True, "unknown", "working"),
        (True, "idle", "working"),
        (False, "unknown", "unknown"),
        (False, "limited", "limited"),
        (None, "unknown", "unknown"),
    ],
)
def test_a_structured_source_outranks_the_screen_about_work(working, screen, said):
    memory, _ = remember(
        case(replace(READY, state=None), seen=seen(reading=reading(screen), working=working))
    )
    assert memory.state == said


# --- how a run ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pane", "kind", "deaths", "exits"),
    [
        (dead(1), "agent.died", 1, 0),
        (dead(None, 9), "agent.died", 1, 0),
        (dead(0), "agent.exited", 0, 1),
        (None, "agent.died", 1, 0),
    ],
)
def test_an_unplanned_end_is_counted_once(pane, kind, deaths, exits):
    memory, events = remember(case(seen=seen(pane=pane, reading=None)))
    assert kinds(events) == [kind]
    assert (len(memory.deaths), len(memory.exits)) == (deaths, exits)
    again, events = remember(case(memory, seen=seen(pane=pane, reading=None)))
    assert again == memory
    assert not events


STOP = Stopping("because", planned=True, ref=PANE.ref, run="run1", pid=100)


@pytest.mark.parametrize(
    ("memory", "look"),
    [
        pytest.param(replace(READY, stopping=STOP), seen(pane=dead(None, 15)), id="our-own-stop"),
        pytest.param(READY, seen(pane=dead(), wish=Wish(Want.DOWN)), id="taken-down"),
        pytest.param(READY, seen(pane=dead(), wish=Wish(Want.UP, run=1)), id="a-newer-run-was-called-for"),
    ],
)
def test_our_own_stops_are_never_counted(memory, look):
    after, events = remember(case(memory, seen=look))
    assert not after.deaths
    assert after.planned
    assert kinds(events) == ["agent.stopped"]


def test_a_reboot_for_stalling_is_counted():
    memory, _ = remember(
        case(replace(READY, stopping=replace(STOP, planned=False)), seen=seen(pane=dead(None, 15)))
    )
    assert len(memory.deaths) == 1


def test_the_loss_of_the_server_is_not_the_agents_fault():
    memory, _ = remember(case(seen=seen(pane=None, server_lost=True)))
    assert not memory.deaths
    assert memory.over == "run1"


def test_half_an_hour_of_being_ready_forgives():
    guilty = replace(READY, deaths=(1.0, 2.0), flapping=3.0, ready=NOW.steady - 1801)
    memory, events = remember(case(guilty))
    assert not memory.deaths
    assert not memory.flapping
    assert "agent.recovered" in kinds(events)


# --- the budget ------------------------------------------------------------------------------------


def die(memory, now, *, ready=True, clean=False):
    memory = replace(memory, ready=now - 5 if ready else 0.0)
    return restarts.count_end(memory, now, clean=clean, run=f"r{now}")


def test_the_first_death_of_a_ready_agent_is_free():
    memory, _ = die(AgentMemory(), 1000.0)
    assert memory.retry_at == 1000.0


def test_an_agent_that_was_never_ready_waits():
    memory, _ = die(AgentMemory(), 1000.0, ready=False)
    assert 8 <= memory.retry_at - 1000 <= 12


def test_the_wait_doubles_up_to_ten_minutes():
    waits = [restarts.back_off(n, "r") for n in range(12)]
    assert waits[0] == 0
    assert all(a <= b for a, b in pairwise(waits))
    assert waits[-1] <= 600 * 1.2


def test_five_in_a_quarter_of_an_hour_make_it_flap():
    memory, now = AgentMemory(), 1000.0
    told = ""
    for _ in range(5):
        memory, told = die(memory, now)
        now += 60
    assert told
    assert memory.flapping
    assert memory.retry_at - (now - 60) == restarts.FLAPPING_STEP_S


def test_an_hour_of_flapping_slows_to_one_an_hour():
    memory = AgentMemory(flapping=1000.0, deaths=(900.0,) * 4)
    memory, _ = die(memory, 1000.0 + 3601)
    assert memory.retry_at - 4601.0 == restarts.FLAPPING_HOUR_S


def test_clean_exits_have_their_own_tally():
    memory, _ = die(AgentMemory(deaths=(1.0, 2.0, 3.0)), 1000.0, clean=True)
    assert memory.retry_at == 1000.0
    assert len(memory.deaths) == 3


@pytest.mark.parametrize("seed", range(30))
def test_no_quarter_of_an_hour_ever_holds_more_than_five_starts(seed):
    """I21 over three days of dying at random."""
    rng, memory, now, starts = random.Random(seed), AgentMemory(), 10_000.0, []
    while now < 10_000 + 3 * 86_400:
        memory, _ = die(memory, now, ready=rng.random() < 0.7, clean=rng.random() < 0.2)
        now = max(now, memory.retry_at)
        starts.append(now)
        now += rng.choice([0.5, 3, 30, 300])
    for at in starts:
        assert sum(at <= t < at + 900 for t in starts) <= 10  # two tallies of five each
    last_day = [t for t in starts if t > now - 86_400]
    assert len(last_day) <= 40


@pytest.mark.parametrize(
    ("heals", "agents", "lost", "may"),
    [
        ((), 3, False, True),
        (tuple(range(10)), 3, False, False),
        (tuple(range(10)), 100, True, True),
        (tuple(range(20)), 100, True, False),
        (tuple(-59 * n for n in range(1, 61)), 3, False, False),
    ],
)
def test_the_fleet_has_a_budget_too(heals, agents, lost, may):
    assert restarts.fleet_allows(tuple(float(t) for t in heals), 20.0, agents, server_lost=lost) is may


# --- memory survives a round trip ------------------------------------------------------------------


def test_memory_comes_back_from_disk_as_it_was():
    full = replace(
        READY,
        limit=limit(),
        outbox=(message(), replace(message("wake"), status=MessageState.TYPED)),
        deaths=(1.0, 2.5),
        stopping=STOP,
    )
    assert from_plain(AgentMemory, to_plain(full)) == full


def test_a_document_of_a_newer_version_is_read_without_its_new_keys():
    assert from_plain(AgentMemory, {"heals": 3, "something_new": [1]}).heals == 3


@pytest.mark.parametrize("bad", [{"heals": "many"}, {"outbox": 3}, {"limit": {"since": "x"}}, []])
def test_a_document_of_something_else_is_refused(bad):
    with pytest.raises(ValueError, match="not a AgentMemory"):
        from_plain(AgentMemory, bad)
