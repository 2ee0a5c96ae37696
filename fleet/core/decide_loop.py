"""One look at the loop, one plan. Pure: what is seen and remembered goes in, what to do comes out.

Pings are put into the outbox and memory is saved, in this order, before the steps are carried out. A crash in
between decides the same again, and puts the same ping down under the same id.
"""

from __future__ import annotations

from fleet.core.loop import Draft, LoopMemory, LoopPlan, LoopSeen
from fleet.core.model import Fleet
from fleet.core.moment import Wall
from fleet.core.rules.complete import complete, not_complete
from fleet.core.rules.handoff import handoff
from fleet.core.rules.phases import advance, locate
from fleet.core.words import EventType


def decide_loop(fleet: Fleet, memory: LoopMemory, seen: LoopSeen, now: Wall) -> LoopPlan:
    """What this look leads to. `now` is the wall clock."""
    loop = fleet.loop
    if loop is None:
        return LoopPlan(memory)
    draft = Draft(fleet, loop, seen, now, memory)
    place = locate(draft)
    ended = place is not None and place.complete
    handoff(draft, quiet=ended)
    if place is not None:
        if ended:
            complete(draft)
        else:
            not_complete(draft)
            advance(draft, place)
    _report_hold(draft)
    draft.problems.extend(seen.blind)
    return LoopPlan(
        memory=draft.memory,
        phase=place.id if place else "",
        complete=ended,
        held="" if place else draft.held or "its position is just being written",
        state=draft.state or (f"held: {draft.held}" if draft.held else "not begun"),
        keep_runs=bool(place and place.keep_runs),
        steps=tuple(draft.steps),
        task=draft.task,
        pings=tuple(draft.pings),
        notes=tuple(draft.notes),
        problems=tuple(draft.problems),
        stays=draft.held,
        wake_at=min(draft.wakes, default=None),
    )


def _report_hold(draft: Draft) -> None:
    """Say it once on the record, and every time in `status`."""
    if draft.held:
        draft.problems.append(draft.held)
        if draft.held != draft.memory.held:
            draft.note(EventType.PHASE_HELD, draft.held)
    if draft.held != draft.memory.held:
        draft.remember(held=draft.held)
