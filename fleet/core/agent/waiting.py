"""WAITING-UNTIL: the line by which an agent says when it goes on.

Before that time it is left alone. When it passes, the agent is told once; only when it stays idle
for the grace after it may the stall rule act. A marker that cannot be read is flagged, not trusted.
"""

from __future__ import annotations

from fleet.core.case import Case, Verdict
from fleet.core.decision import Note
from fleet.core.memory import AgentMemory
from fleet.core.queue import PASSED, own, queue
from fleet.core.seen import ScreenState
from fleet.core.words import Detail, EventType, MessageKind
from fleet.times.moment import Wall, utc

PASSED_BY = "its WAITING-UNTIL time has passed"


def waiting(case: Case) -> Verdict | None:
    """Remember the newest marker, hold until it passes, then wake the agent once."""
    memory, reading, now = case.memory, case.seen.reading, case.now
    if reading is None or memory.state != ScreenState.IDLE:
        return None
    marker = reading.marker
    if marker is None:
        return None
    if marker.until is None:
        if memory.bad_marker == marker.text:
            return None
        told = (Note(EventType.AGENT_MARKER_MALFORMED, marker.text),)
        bad = memory._replace(bad_marker=marker.text)
        return Verdict(f"its WAITING-UNTIL line cannot be read: {marker.text}", memory=bad, notes=told)
    if marker.until != memory.marker:
        memory = memory._replace(marker=marker.until)
        told = (Note(EventType.AGENT_WAITING, marker.text + (" (capped at 24 h)" if marker.capped else "")),)
        if now.wall < marker.until:
            return _hold(case, memory, marker.until, told)
        return Verdict(PASSED_BY, memory=memory, notes=told, wake_at=now.steady)
    if now.wall < marker.until:
        return _hold(case, None, marker.until, ())
    if memory.marker_woken != marker.until and case.agent.watched:
        woken = memory._replace(marker_woken=marker.until)
        message = own(MessageKind.MARKER, f"{marker.until:.0f}", PASSED, now)
        return Verdict(f"{PASSED_BY}: sending it a message", memory=queue(woken, message), wake_at=now.steady)
    return None


def _hold(case: Case, memory: AgentMemory | None, until: Wall, told: tuple[Note, ...]) -> Verdict:
    wake = case.now.until(until)
    # messages are still delivered to a waiting agent: the marker speaks of its own plans, not of ours
    text = f"the agent asked to wait until {utc(until)}; not counted as stalled"
    return Verdict(text, detail=Detail.WAITING, memory=memory, wake_at=wake, notes=told)
