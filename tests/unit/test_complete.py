"""The end of the sequence (R113-R118, T36, T37, T56)."""

from __future__ import annotations

from fleet.core.effects import CallTask, ClearMarker, ConsumeTrigger, ReadHistory, WriteMarker
from fleet.core.loop.loop_case import InboxView
from fleet.core.model import OnComplete
from tests.unit.loops import NOW, STILL, B, change, decide, effects, fleet, moves, seen, settled

REPORT = OnComplete("/p/.ao/.run-on-complete", "reporter")


def end(f=None, memory=None, now=NOW, **more):
    f = f or fleet()
    return decide(f, memory or settled(f), seen(f, 3, status=None, **more), now)


def test_the_marker_waits_for_the_loops_to_stop():
    plan = end(alive=("builder",))
    assert plan.shown.complete
    assert not effects(plan, WriteMarker)
    assert "builder" in plan.shown.state
    assert effects(end(memory=plan.memory), WriteMarker) == [effects(end(), WriteMarker)[0]]


def test_a_loop_that_will_not_stop_does_not_hold_the_marker_for_ever():
    plan = end(alive=("builder",))
    assert not effects(end(memory=plan.memory, now=NOW + 59, alive=("builder",)), WriteMarker)
    assert effects(end(memory=plan.memory, now=NOW + 61, alive=("builder",)), WriteMarker)


def test_the_marker_names_what_was_done():
    (step,) = effects(end(), WriteMarker)
    assert step.ids == ("p1", "p2", "p3")


def test_a_complete_loop_keeps_up_with_the_repository_and_wakes_nobody():
    known = end(inboxes=(InboxView("ADVERSARY-INBOX.md", work="1", remote="1"),)).memory
    plan = end(
        memory=known,
        git=change(STILL, tip=B),
        inboxes=(InboxView("ADVERSARY-INBOX.md", work="2", remote="2"),),
    )
    assert plan.memory.tip == B
    assert not effects(plan, ReadHistory)
    assert not plan.messages


def test_completion_is_idempotent():
    plan = end(marker=True)
    again = end(memory=plan.memory, marker=True)
    assert again.shown.complete
    assert again.effects == ()
    assert again.notes == ()
    assert again.memory == plan.memory


def test_a_marker_that_is_not_true_is_cleared():
    f = fleet()
    plan = decide(f, settled(f), seen(f, 1, marker=True))
    assert effects(plan, ClearMarker)
    assert not moves(plan)


def test_an_appended_phase_opens_the_loop_and_then_clears_the_marker():
    old, new = fleet("a", "b"), fleet("a", "b", "c")
    plan = decide(new, settled(old), seen(old, 2, marker=True, status=None))
    (move,) = moves(plan)
    assert move.to.id == "c"
    assert not effects(plan, ClearMarker), "one thing at a time: the record first"
    after = decide(new, plan.memory, seen(new, 2, marker=True))
    assert effects(after, ClearMarker)
    assert after.shown.phase == "c"


def test_without_its_trigger_file_the_task_is_not_run():
    plan = end(fleet(on_complete=REPORT), marker=True)
    assert not effects(plan, CallTask)
    assert not effects(plan, ConsumeTrigger)


def test_the_trigger_is_consumed_and_the_task_stays_asked_for():
    f = fleet(on_complete=REPORT)
    plan = end(f, marker=True, trigger="7-1-0")
    assert effects(plan, CallTask) == [CallTask("reporter", "7-1-0")]
    assert effects(plan, ConsumeTrigger) == [ConsumeTrigger("7-1-0")]
    assert [n.type for n in plan.notes] == ["task.triggered"]
    later = end(f, plan.memory, marker=True)
    assert later.effects == (CallTask("reporter", "7-1-0"),), "it is on record, not in the file"
    assert later.notes == ()
    assert end(f, plan.memory, marker=True, called="7-1-0").effects == (), "it was called"


def test_a_task_that_was_called_for_a_trigger_that_is_forgotten_is_left_alone():
    assert end(fleet(on_complete=REPORT), marker=True, called="7-1-0").effects == ()


def test_killed_before_the_trigger_was_deleted_the_task_is_the_same_one():
    f = fleet(on_complete=REPORT)
    plan = end(f, marker=True, trigger="7-1-0")
    again = end(f, plan.memory, marker=True, trigger="7-1-0")
    assert effects(again, CallTask) == effects(plan, CallTask)
    assert effects(again, ConsumeTrigger)
    assert not again.notes


def test_a_second_trigger_is_a_second_run():
    f = fleet(on_complete=REPORT)
    first = end(f, marker=True, trigger="7-1-0")
    second = end(f, first.memory, marker=True, trigger="8-2-0")
    assert effects(second, CallTask) == [CallTask("reporter", "8-2-0")]


def test_the_task_waits_for_the_marker():
    plan = end(fleet(on_complete=REPORT), trigger="7-1-0")
    assert not effects(plan, CallTask)
    assert effects(plan, WriteMarker)
    assert not effects(plan, ConsumeTrigger)


def test_a_trigger_before_the_end_does_nothing():
    f = fleet(on_complete=REPORT)
    plan = decide(f, settled(f), seen(f, 1, trigger="7-1-0"))
    assert not effects(plan, CallTask)
    assert not effects(plan, ConsumeTrigger)
