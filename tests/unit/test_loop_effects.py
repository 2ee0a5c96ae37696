"""The loop's executor: an effect is done, or left with a word that says why."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from fleet.core.decision import Note
from fleet.core.effects import (
    CallTask,
    CancelGate,
    ConsumeTrigger,
    Fetch,
    LookAtTree,
    Move,
    ReadHistory,
    RunGate,
    WriteMarker,
)
from fleet.core.loop.loop_case import GateJob, LoopJob
from fleet.core.model import Gate, OnComplete
from fleet.core.words import EventType, Outcome
from fleet.ports import Host
from fleet.store.house import House
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.phase import identity
from fleet.supervisor.world import World
from tests.unit.loops import NOW, A, B, MemoryDisk, fleet, place

REPO, TRIGGER = "/p/builder", "/p/.ao/.go"
TESTS = Gate(run="make test")


class Clock:
    def wall(self):
        return NOW

    def mono(self):
        return NOW


class Children:
    """Children that never end; `refuses` is why none can be started."""

    def __init__(self):
        self.live = {}
        self.refuses = ""

    def start(self, key, argv, *, cwd, timeout, log="", env=()):
        if not self.refuses:
            self.live[key] = argv
        return self.refuses

    def poll(self):
        return ()

    def keys(self):
        return frozenset(self.live)

    def cancel(self, key):
        self.live.pop(key, None)


class Bench:
    """An executor over a disk in memory."""

    def __init__(self):
        self.f = fleet(gates=[TESTS], on_complete=OnComplete(TRIGGER, "reporter"))
        self.disk, self.children = MemoryDisk(), Children()
        self.disk.files |= {
            "/p/kickoff.md": b"{phase_id}",
            "/p/roles/builder.md": b"build",
            "/p/roles/adversary.md": b"doubt",
            f"{REPO}/.git/HEAD": b"ref: refs/heads/main\n",
            f"{REPO}/.git/refs/heads/main": A.encode(),
            "/p/plans/p1.md": b"plan",
        }
        world = World(
            tmux=None, processes=None, clock=Clock(), disk=self.disk, host=Host(), servers=None,
            locks=SimpleNamespace(state=contextlib.nullcontext), http=None, draw=lambda: "0" * 32,
        )  # fmt: skip
        self.house = House(world, self.f.log_dir)
        self.keeper = LoopKeeper(world, self.house, self.children)

    def do(self, effect):
        return self.keeper.do(self.f, self.f.loop, effect)


@pytest.fixture
def bench():
    return Bench()


BEGINS = Note(EventType.PHASE_SET, "the loop begins")


def test_a_move_is_done_once_and_stale_after_that(bench):
    begin = Move(None, place(bench.f, 0), BEGINS)
    assert bench.do(begin).ok
    again = bench.do(begin)
    assert (again.outcome, again.why) == (Outcome.STALE, "the loop is at p1 meanwhile")


def test_an_advance_to_a_phase_that_cannot_be_started_is_refused(bench):
    bench.do(Move(None, place(bench.f, 0), BEGINS))
    note = Note(EventType.PHASE_ADVANCED, "p1 is done")
    refused = bench.do(Move(place(bench.f, 0), place(bench.f, 1), note, startable=True))
    assert refused.outcome is Outcome.REFUSED
    assert "plans/p2.md" in refused.why
    assert bench.do(Move(place(bench.f, 0), place(bench.f, 1), note)).ok, "only an advance expects that"


def test_another_trigger_than_the_one_seen_is_left(bench):
    bench.disk.files[TRIGGER] = b"2"
    assert bench.do(ConsumeTrigger("7-1-0")).outcome is Outcome.STALE
    assert TRIGGER in bench.disk.files
    assert bench.do(ConsumeTrigger(identity(bench.disk, TRIGGER))).ok
    assert TRIGGER not in bench.disk.files


def test_a_task_is_called_once_a_token(bench):
    call = CallTask("reporter", "7-1-0")
    assert bench.do(call).ok
    assert bench.house.desired.load().entries["reporter"].task == "7-1-0"
    assert bench.do(call).outcome is Outcome.EXISTS
    assert bench.do(CallTask("reporter", "8-2-0")).ok


def test_a_task_that_is_not_in_the_file_is_not_called(bench):
    assert bench.do(CallTask("gone", "7-1-0")).outcome is Outcome.STALE
    assert "gone" not in bench.house.desired.load().entries


GATE = RunGate("p1", 0, TESTS, "x", A)


def test_a_child_that_cannot_be_started_is_refused_with_the_reason(bench):
    bench.children.refuses = "no more processes"
    for effect in (GATE, LookAtTree(REPO), ReadHistory(REPO, A, B)):
        refused = bench.do(effect)
        assert (refused.outcome, refused.why) == (Outcome.REFUSED, "no more processes")
    assert bench.do(Fetch(REPO)).outcome is Outcome.REFUSED
    view = bench.keeper.look(bench.f, bench.f.loop, alive=()).git
    assert (view.fetched, view.fetch_trouble) == (True, "no more processes"), "the next look tells of a fetch"


def test_a_gate_at_work_is_seen_by_its_question_until_it_is_cancelled(bench):
    assert bench.do(GATE).ok
    assert GATE.job == GateJob("p1", 0, "x", A)
    assert GATE.job in bench.keeper.look(bench.f, bench.f.loop, alive=()).jobs
    assert bench.do(CancelGate(GATE.job)).ok
    assert not any(isinstance(j, GateJob) for j in bench.keeper.look(bench.f, bench.f.loop, alive=()).jobs)


def test_children_of_git_go_by_closed_words(bench):
    for effect, job in ((Fetch(REPO), LoopJob.FETCH), (ReadHistory(REPO, A, B), LoopJob.HISTORY)):
        assert bench.do(effect).ok
        assert job in bench.children.live


@pytest.mark.parametrize(
    "make",
    [
        lambda: CallTask("reporter", ""),
        lambda: ConsumeTrigger(""),
        lambda: ReadHistory(REPO, "", B),
        lambda: Fetch(""),
        lambda: WriteMarker((), BEGINS),
        lambda: RunGate("", 0, TESTS, "x", A),
    ],
)
def test_an_effect_that_does_not_say_what_it_expects_is_never_made(make):
    with pytest.raises(AssertionError, match="does not say all it expects"):
        make()
