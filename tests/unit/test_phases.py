"""The phase machine: where it stands, when it steps, what an edit does to it (R101-R118, T43-T55, I19)."""

from __future__ import annotations

import pytest

from fleet.core.loop.gates import print_of
from fleet.core.loop.loop_case import GateResult, LoopMemory, Place
from fleet.core.loop.phases import find, starts_over
from fleet.core.model import Gate
from tests.unit.loops import DONE, NOW, WORKING, change, decide, fleet, moves, place, seen, settled


def test_a_loop_begins_at_its_first_phase():
    f = fleet()
    (move,) = moves(decide(f, view=seen(f, place=None, index=None)))
    assert (move.expect, move.to.index, move.to.id) == (None, 0, "p1")


def test_while_the_position_is_being_written_nobody_starts():
    old, f = fleet("a"), fleet("a", "b")
    for view in (seen(f, place=None, index=None), seen(f, place=place(old, 1), marker=True)):
        plan = decide(f, view=view)
        assert moves(plan)
        assert plan.shown.held
        assert not plan.shown.problems


def test_a_phase_that_is_not_done_stays():
    f = fleet()
    plan = decide(f, settled(f), seen(f))
    assert not moves(plan)
    assert (plan.shown.phase, plan.shown.complete, plan.shown.held) == ("p1", False, "")
    assert plan.shown.state == "phase p1 (1/3)"


def test_done_is_believed_only_when_it_was_seen_twice():
    f = fleet()
    first = decide(f, LoopMemory(), seen(f, status=DONE))
    assert not moves(first)
    assert first.wake_at is not None
    assert first.wake_at <= NOW + 1
    assert not moves(decide(f, first.memory, seen(f, status=DONE), NOW + 0.5))
    (move,) = moves(decide(f, first.memory, seen(f, status=DONE), NOW + 1.0))
    assert (move.expect, move.to.index, move.to.id) == (place(f, 0), 1, "p2")


def test_a_file_that_is_still_being_written_is_looked_at_again():
    f = fleet()
    first = decide(f, LoopMemory(), seen(f, status=DONE))
    changed = seen(f, status=change(DONE, digest="d2"))
    second = decide(f, first.memory, changed, NOW + 5)
    assert not moves(second)
    assert not moves(decide(f, second.memory, seen(f, status=WORKING), NOW + 10))
    assert moves(decide(f, second.memory, changed, NOW + 10))


def test_a_clock_set_back_does_not_hold_a_done_phase_for_ever():
    f = fleet()
    plan = decide(f, settled(f, done_since=NOW + 9999), seen(f, status=DONE))
    assert not moves(plan)
    assert moves(decide(f, plan.memory, seen(f, status=DONE), NOW + 2))


def test_an_advance_is_by_one_with_its_evidence():
    f = fleet()
    for index in range(3):
        (move,) = moves(decide(f, settled(f, index), seen(f, index, status=DONE)))
        assert move.to.index == index + 1
        evidence = dict(move.to.evidence)
        assert evidence["status"].endswith("STATUS.md")
        assert (evidence["line"], evidence["digest"], evidence["commit"]) == ("3", "d1", "a" * 40)
    assert move.to.complete


def test_a_status_file_that_could_not_be_read_changes_nothing():
    f = fleet()
    memory = settled(f)
    plan = decide(f, memory, seen(f, status=None, blind=("/p/x: is a link",)))
    assert not moves(plan)
    assert plan.memory.done_since == memory.done_since
    assert "/p/x: is a link" in plan.shown.problems


def test_a_phase_already_done_when_it_begins_is_traced_and_passed():
    f = fleet()
    first = decide(f, settled(f, 0), seen(f, 1, status=DONE))
    assert [n.type for n in first.notes] == ["phase.pre_done"]
    second = decide(f, first.memory, seen(f, 1, status=DONE), NOW + 2)
    assert [n.type for n in second.notes] == []
    assert moves(second)


def test_a_refused_marker_is_shown_with_its_line():
    f = fleet()
    view = change(
        WORKING, reading=change(WORKING.reading, line=7, why="what follows takes it back: 'Not yet'")
    )
    plan = decide(f, settled(f), seen(f, status=view))
    assert "/p/builder/docs/STATUS.md:7: what follows takes it back: 'Not yet'" in plan.shown.problems


def test_without_auto_advance_a_done_phase_waits_for_a_person_and_says_so_once():
    f = fleet(auto_advance=False)
    plan = decide(f, settled(f), seen(f, status=DONE))
    assert not moves(plan)
    assert "waiting for `agents.py phase next`" in plan.shown.state
    assert [n.type for n in plan.notes] == ["phase.held"]
    assert not decide(f, plan.memory, seen(f, status=DONE)).notes


def test_a_next_phase_that_cannot_be_started_keeps_the_loop_where_it_is():
    f = fleet()
    plan = decide(f, settled(f), seen(f, status=DONE, next_trouble="phase p2: plan plans/p2.md is missing"))
    assert not moves(plan)
    assert plan.shown.phase == "p1", "the running agents stay in their phase"
    assert any("plans/p2.md" in p for p in plan.shown.problems)
    assert [n.type for n in plan.notes] == ["phase.held"]
    assert not decide(
        f, plan.memory, seen(f, status=DONE, next_trouble="phase p2: plan plans/p2.md is missing")
    ).notes


EDITS = [
    # before, index, after, what must come of it
    (("a", "b"), 2, ("a", "b", "c"), "reopen:2:c"),
    (("a", "b"), 2, ("a", "b", "c", "d"), "reopen:2:c"),
    (("a", "b"), 2, ("a", "b"), "complete"),
    (("a", "b", "c"), 3, ("a", "b"), "clamp:2"),
    (("a", "b", "c"), 3, ("a",), "clamp:1"),
    (("a", "b"), 2, ("b", "a"), "complete"),
    (("a", "b"), 2, ("x", "a", "b"), "hold"),
    (("a", "b"), 2, ("a", "x", "b"), "hold"),
    (("a", "b", "c"), 1, ("a", "b", "c", "d"), "stay"),
    (("a", "b", "c"), 1, ("a", "b"), "stay"),
    (("a", "b", "c"), 1, ("x", "b", "c"), "stay"),
    (("a", "b", "c"), 1, ("x", "a", "b", "c"), "hold"),
    (("a", "b", "c"), 1, ("b", "a", "c"), "hold"),
    (("a", "b", "c"), 1, ("a", "c"), "hold"),
    (("a", "b", "c"), 2, ("a", "b"), "hold"),
    (("a", "b", "c"), 0, ("b", "c"), "hold"),
]


@pytest.mark.parametrize(("before", "index", "after", "expected"), EDITS)
def test_a_phase_list_edit_never_runs_the_wrong_plan(before, index, after, expected):
    was = place(fleet(*before), index)
    f = fleet(*after)
    plan = decide(f, view=seen(f, place=was, status=WORKING, marker=was.complete))
    made = moves(plan)
    word, *rest = expected.split(":")
    if word == "hold":
        assert plan.shown.held
        assert not made
        assert not plan.shown.phase
        assert "phase set" in plan.shown.held
    elif word == "stay":
        assert not made
        assert plan.shown.phase == before[index]
    elif word == "complete":
        assert not made
        assert plan.shown.complete
    elif word == "clamp":
        assert plan.shown.complete
        assert made[0].to == Place(int(rest[0]), "", after, NOW, "a" * 40)
    else:
        assert (made[0].to.index, made[0].to.id) == (int(rest[0]), rest[1])
        assert not plan.shown.complete


def test_a_clamped_loop_opens_again_when_a_phase_is_appended():
    f = fleet("a", "b", "c")
    (clamp,) = moves(decide(fleet("a", "b"), view=seen(f, place=place(f, 3), marker=True)))
    (again,) = moves(decide(fleet("a", "b", "d"), view=seen(f, place=clamp.to, marker=True)))
    assert again.to.id == "d"


def test_an_index_changed_by_hand_holds_and_names_both():
    f = fleet()
    plan = decide(f, view=seen(f, place=place(f, 2), index=0))
    assert "phase-idx says 0 (p1)" in plan.shown.held
    assert "phase.json says 2 (p3)" in plan.shown.held
    assert not plan.effects or not moves(plan)
    assert [n.type for n in plan.notes] == ["phase.held"]
    assert not decide(f, plan.memory, seen(f, place=place(f, 2), index=0)).notes


def test_an_index_without_its_sidecar_is_adopted():
    f = fleet()
    (move,) = moves(decide(f, view=seen(f, place=None, index=1)))
    assert (move.to.index, move.to.id) == (1, "p2")
    (move,) = moves(decide(f, view=seen(f, place=None, index=99)))
    assert move.to.complete
    assert move.to.index == 3


def test_a_missing_index_is_written_again_from_the_sidecar():
    f = fleet()
    (move,) = moves(decide(f, view=seen(f, place=place(f, 1), index=None)))
    assert move.expect == move.to == place(f, 1)


def test_an_unreadable_record_holds_the_loop():
    f = fleet()
    plan = decide(f, view=seen(f, place=None, index=None, trouble="state/phase-idx holds 'x'"))
    assert plan.shown.held == "state/phase-idx holds 'x'"
    assert not moves(plan)


def test_ratchets_are_carried_from_phase_to_phase():
    f = fleet("p1", "p2", gates=[Gate(ratchet="cov", metric="coverage")])
    passed = GateResult(
        "p1", 0, print_of(f.loop.phases[0].gates[0]), "a" * 40, ok=True, said="", at=NOW, value=81.5
    )
    was = place(f, 0, ratchets=(("other", 3.0),))
    (move,) = moves(decide(f, settled(f), seen(f, place=was, status=DONE, gates=(passed,))))
    assert move.to.ratchets == (("coverage", 81.5), ("other", 3.0))


@pytest.mark.parametrize(
    ("resume", "bare", "running", "expected"),
    [
        (True, True, False, False),
        (False, True, False, True),
        (False, True, True, False),
        (False, False, False, False),
        (True, False, True, False),
    ],
)
def test_only_a_bare_up_over_no_running_loop_may_start_over(resume, bare, running, expected):
    assert starts_over(fleet(resume_phase=resume).loop, bare=bare, running=running) is expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("0", 0),
        ("2", 2),
        ("3", None),
        ("-1", None),
        ("p2", 1),
        ("1e0", None),
        ("", None),
        ("\u0661", None),
        ("P2", None),
    ],
)
def test_a_phase_is_named_by_index_or_id(word, expected):
    assert find(fleet().loop, word) == expected


def test_an_id_that_is_a_number_wins_over_the_index():
    assert find(fleet("2", "1", "0").loop, "0") == 2
