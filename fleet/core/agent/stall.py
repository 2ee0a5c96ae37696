"""An agent that should be working and is not: restart it, after everything that speaks against it.

Against it speak a marker that has not lapsed, children at work, a transcript that grows, a message
on its way, and a screen that moved. A loop agent is first asked, once a phase, to write its marker.
"""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict
from fleet.core.decision import Note
from fleet.core.queue import NUDGE, own, queue
from fleet.core.seen import ScreenState
from fleet.core.words import Detail, EventType, MessageKind, MessageState
from fleet.times.moment import later, utc

IDLE_LIKE = frozenset({ScreenState.IDLE, ScreenState.ERROR, ScreenState.CONTEXT})
MEASURE_S = 2.0
MOVING = frozenset({ScreenState.WORKING, ScreenState.RETRYING})
FROZEN_S = 300.0  # a screen that claims work and does not move by a character for this long


def stall(case: Case) -> Verdict | None:
    """Restart what has been idle, or frozen, for too long."""
    memory, now = case.memory, case.now
    if case.agent.watch != "heal+stall" or not memory.ready or case.resumed:
        return None
    if any(m.status is not MessageState.QUEUED for m in memory.outbox):
        return None
    limit = case.backend.stall_idle
    grace = max(limit, case.backend.log_grace)
    if memory.state in IDLE_LIKE:
        quiet = now.since(memory.quiet_since)
    elif memory.state in MOVING and case.seen.working is None:
        quiet, grace = now.since(memory.still_since), max(limit, FROZEN_S)
        if case.seen.proc.busy:
            return None
    else:
        return None
    if quiet >= grace and not case.seen.proc.measured:
        text = f"{memory.state} for {quiet:.0f} s; measuring its processes first"
        return Verdict(text, explains=True, wake_at=now.after(MEASURE_S))
    if quiet < grace:
        shown = max(0.0, quiet)  # what this look found new began when the look was over
        reason = f"{memory.state} for {shown:.0f} s of {grace:.0f}"
        return Verdict(reason, explains=True, wake_at=now.after(grace - quiet))
    if memory.marker and case.now.wall <= memory.marker + case.watchdog.stall_grace and _marker_stands(case):
        wake_at = now.until(later(memory.marker, case.watchdog.stall_grace))
        text = f"idle; the agent asked to wait until {utc(memory.marker)}, and the grace runs"
        return Verdict(text, detail=Detail.WAITING, wake_at=wake_at)
    if _may_nudge(case):
        memory = queue(memory, own(MessageKind.NUDGE, case.loop.phase, NUDGE, now))
        nudged = memory._replace(nudged=case.loop.phase, quiet_since=now.steady)
        return Verdict("idle: asking for the done marker once", memory=nudged, wake_at=now.steady)
    if memory.state == ScreenState.CONTEXT:  # resumed, it would be as full as before
        case = case._replace(memory=memory._replace(afresh=True))
    told = Note(EventType.AGENT_MARKER_LAPSED, "its WAITING-UNTIL time and the grace have passed")
    lapsed = (told,) if memory.marker else ()
    cause = f"{memory.state} for {quiet:.0f} s without a sign of work"
    verdict = begin(case, cause, planned=False, event=EventType.AGENT_STALLED)
    return verdict._replace(notes=(*lapsed, *verdict.notes))


def _may_nudge(case: Case) -> bool:
    """Is it a loop agent at its prompt that was not asked yet for the marker of this phase?"""
    idle = case.memory.state == ScreenState.IDLE
    return case.agent.is_loop and case.seen_nudge and idle and case.memory.nudged != case.loop.phase


def _marker_stands(case: Case) -> bool:
    reading = case.seen.reading
    return reading is not None and reading.marker is not None and reading.marker.until == case.memory.marker
