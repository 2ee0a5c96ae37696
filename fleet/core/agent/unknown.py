"""A screen that no pattern describes is not idle, and never healed. After a while it is kept and reported."""

from __future__ import annotations

from fleet.core.case import Case, Verdict, do, hold
from fleet.core.decision import Note
from fleet.core.effects import Keep
from fleet.core.seen import ScreenState
from fleet.core.words import Detail, EventType
from fleet.times.moment import later

TOLD_AFTER_S = 1800.0


def unknown(case: Case) -> Verdict | None:
    """Hold what we do not understand."""
    memory, pane = case.memory, case.seen.pane
    if memory.state != ScreenState.UNKNOWN or pane is None:
        return None
    lasted = case.now.since(memory.state_since)
    text = f"no pattern of the profile matches the screen, for {lasted:.0f} s"
    if lasted < TOLD_AFTER_S:
        return hold(text, Detail.UNKNOWN, later(memory.state_since, TOLD_AFTER_S))
    if memory.kept == pane.ref.run:
        return hold(text, Detail.UNKNOWN)
    kept, told = memory._replace(kept=pane.ref.run), (Note(EventType.AGENT_UNKNOWN, text),)
    return do(Keep(case.agent.name, pane.ref, text), Detail.UNKNOWN, memory=kept, notes=told)
