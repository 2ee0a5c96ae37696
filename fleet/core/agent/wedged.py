"""A conversation that cannot go on: seen twice in the live part of the screen, then restarted fresh."""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import SEEN_ONCE, Case, Verdict, hold
from fleet.core.seen import ScreenState
from fleet.core.words import Detail, EventType

LOOKS = 2


def wedged(case: Case) -> Verdict | None:
    """Restart an agent whose screen says that its session is broken."""
    memory, reading = case.memory, case.seen.reading
    if memory.state != ScreenState.WEDGED or reading is None:
        return None
    if memory.state_looks < LOOKS:
        text = f"looks wedged, {SEEN_ONCE}: {reading.line}"
        return hold(text, Detail.WEDGED, case.now.after(1.0))
    case = case._replace(memory=memory._replace(afresh=True))
    return begin(case, f"wedged: {reading.line}", planned=False, event=EventType.AGENT_WEDGED)
