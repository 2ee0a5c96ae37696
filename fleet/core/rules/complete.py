"""The end of the sequence, once: loops stopped, SEQUENCE-COMPLETE written, the task agent called.

The marker is a promise that the loops have ended, so it waits for them, though not for ever. The trigger
file is consumed when its task is on record; the record, not the file, is what the task runs for, so a
crash in between neither loses the run nor repeats it.
"""

from __future__ import annotations

from fleet.core.decision import Note
from fleet.core.loop import ClearMarker, ConsumeTrigger, Draft, RunTask, WriteMarker
from fleet.core.moment import UNNAMED, later
from fleet.core.rules.gates import cancel_others
from fleet.core.words import EventType

STOP_PATIENCE_S = 60.0


def complete(draft: Draft) -> None:
    """Finish, and then stay finished: a later look finds nothing to do."""
    loop, seen, now = draft.loop, draft.seen, draft.now
    total = len(loop.phases)
    draft.state = f"complete: {total} of {total} phases"
    draft.remember(told=())
    cancel_others(draft, "")
    if not seen.marker:
        since = draft.memory.ending if 0 < draft.memory.ending <= now else now
        draft.remember(ending=since)
        if seen.alive and now - since < STOP_PATIENCE_S:
            draft.state = f"complete: waiting for {', '.join(seen.alive)} to stop"
            draft.wakes.append(later(since, STOP_PATIENCE_S))
            return
        note = Note(EventType.SEQUENCE_COMPLETED, f"all {total} phases are done", (("count", total),))
        draft.steps.append(WriteMarker(tuple(p.id for p in loop.phases), note))
        draft.wakes.append(now)
        return
    draft.remember(ending=UNNAMED)
    wish = loop.on_complete
    if wish is None:
        return
    if seen.trigger:
        if draft.memory.task != seen.trigger:
            draft.remember(task=seen.trigger)
            draft.note(
                EventType.TASK_TRIGGERED, f"{wish.trigger_file} is there: {wish.run} runs", task=wish.run
            )
        draft.steps.append(ConsumeTrigger(seen.trigger))
    if draft.memory.task:
        draft.task = RunTask(wish.run, draft.memory.task)


def not_complete(draft: Draft) -> None:
    """A marker that is not true any more goes away."""
    if draft.seen.marker:
        draft.steps.append(ClearMarker("there is a phase to do"))
    if draft.memory.ending:
        draft.remember(ending=UNNAMED)
