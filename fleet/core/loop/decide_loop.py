"""One look at the loop, one decision. Pure: what is seen and remembered goes in, what to do comes out.

Its parts are asked in turn, and several may act on one look: a fetch, a history and a gate can all follow
from it. Each part sees what the ones before it remember.
"""

from __future__ import annotations

from functools import partial

from fleet.core.decision import Decision, Note
from fleet.core.effects import LoopEffect
from fleet.core.loop.complete import complete, not_complete
from fleet.core.loop.handoff import handoff
from fleet.core.loop.loop_case import LoopCase, LoopMemory, LoopPart, LoopShown
from fleet.core.loop.phases import advance, locate
from fleet.core.words import EventType

LoopDecision = Decision[LoopMemory, LoopShown, LoopEffect]
UNWRITTEN = "its position is just being written"


def decide_loop(case: LoopCase) -> LoopDecision:
    """What this look leads to."""
    place, said = locate(case)
    ended = place is not None and place.complete
    said = said.then(case, partial(handoff, quiet=ended))
    if place is not None and ended:
        said = said.then(case, complete)
    elif place is not None:
        said = said.then(case, not_complete).then(case, partial(advance, place=place))
    said = said.then(case, partial(_hold, why=said.held))
    shown = LoopShown(
        phase=place.id if place else "",
        complete=ended,
        held="" if place else said.held or UNWRITTEN,
        keep_runs=place is not None and place.keep_runs,
        stays=said.held,
        state=said.state or (f"held: {said.held}" if said.held else "not begun"),
        problems=(*said.problems, *case.seen.blind),
    )
    return Decision(
        memory=said.memory,
        shown=shown,
        messages=said.messages,
        notes=said.notes,
        effects=said.effects,
        wake_at=case.now.until(min(said.wakes)) if said.wakes else None,
    )


def _hold(case: LoopCase, why: str) -> LoopPart:
    """The loop is held, or not any more: once on the record, and every time in `status`."""
    news = bool(why) and why != case.memory.held
    return LoopPart(
        memory=case.memory.having(held=why),
        notes=(Note(EventType.PHASE_HELD, why),) if news else (),
        problems=(why,) if why else (),
    )
