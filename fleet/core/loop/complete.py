"""The end of the sequence, once: loops stopped, SEQUENCE-COMPLETE written, the task agent called.

The marker is a promise that the loops have ended, so it waits for them, though not for ever. The trigger
file is consumed when its task is on record; the record, not the file, is what the task runs for, so a
crash in between neither loses the run nor repeats it.
"""

from __future__ import annotations

from fleet.core.decision import Note
from fleet.core.effects import CallTask, ClearMarker, ConsumeTrigger, WriteMarker
from fleet.core.loop.gates import cancelled
from fleet.core.loop.loop_case import LoopCase, LoopPart
from fleet.core.model import OnComplete
from fleet.core.words import EventType
from fleet.text import plural
from fleet.times.moment import UNNAMED, later

STOP_PATIENCE_S = 60.0


def complete(case: LoopCase) -> LoopPart:
    """Finish, and then stay finished: a later look finds nothing to do."""
    total, memory = len(case.loop.phases), case.memory.having(told=())
    said = LoopPart(memory, effects=cancelled(case), state=f"complete: {total} of {plural(total, 'phase')}")
    if not case.seen.marker:
        return said.then(case, _end)
    said = said._replace(memory=memory.having(ending=UNNAMED))
    wish = case.loop.on_complete
    return said.then(case, lambda c: _task(c, wish)) if wish is not None else said


def _end(case: LoopCase) -> LoopPart:
    """Write the marker, once the loops have stopped."""
    memory, seen, now = case.memory, case.seen, case.now.wall
    since = memory.ending if 0 < memory.ending <= now else now
    memory = memory.having(ending=since)
    if seen.alive and now - since < STOP_PATIENCE_S:
        waits = f"complete: waiting for {', '.join(seen.alive)} to stop"
        return LoopPart(memory, wakes=(later(since, STOP_PATIENCE_S),), state=waits)
    ids = tuple(p.id for p in case.loop.phases)
    said = f"all {len(ids)} phases are done" if len(ids) > 1 else "the only phase is done"
    note = Note(EventType.SEQUENCE_COMPLETED, said, (("count", len(ids)),))
    return LoopPart(memory, effects=(WriteMarker(ids, note),), wakes=(now,))


def _task(case: LoopCase, wish: OnComplete) -> LoopPart:
    """Call the task for the newest trigger there ever was."""
    trigger, known = case.seen.trigger, case.memory.task
    token = trigger or known
    reason = f"{wish.trigger_file} is there: {wish.run} runs"
    note = Note(EventType.TASK_TRIGGERED, reason, (("task", wish.run),))
    consumed = (ConsumeTrigger(trigger),) if trigger else ()
    called = (CallTask(wish.run, token),) if token and token != case.seen.called else ()
    return LoopPart(
        case.memory.having(task=token),
        notes=(note,) if token != known else (),
        effects=(*consumed, *called),
    )


def not_complete(case: LoopCase) -> LoopPart:
    """A marker that is not true any more goes away."""
    untrue = (ClearMarker("there is a phase to do"),) if case.seen.marker else ()
    return LoopPart(case.memory.having(ending=UNNAMED), effects=untrue)
