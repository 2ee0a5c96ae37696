"""Stop a run wholly: ask, wait, force, take the session away, look again.

Killing a session leaves five of eight kinds of children behind, so a stop is about the process set
of the run. One step a look; a run with survivors blocks the next start of that agent.
"""

from __future__ import annotations

import signal
from dataclasses import replace

from fleet.core.actions import Remove, Signal
from fleet.core.case import Case, Verdict
from fleet.core.memory import Stopping
from fleet.core.state import Detail
from fleet.core.words import EventType

TERM_WAIT_S = 10.0
KILL_WAIT_S = 5.0
POLL_S = 0.25
FORCED, REMOVED = 2, 3  # steps


def begin(case: Case, cause: str, *, planned: bool, event: EventType | None = None) -> Verdict:
    """Start to stop the run that is there."""
    pane, memory = case.seen.pane, case.memory
    run = pane.ref.run if pane is not None else case.seen.left or memory.seen_run
    pid = memory.run.pid if memory.run else 0
    if pane is not None:
        pid = pane.ref.pid
    stop = Stopping(cause, planned, pane.ref if pane else None, run, pid, step=0, at=case.now.steady)
    events = ((event, cause),) if event else ()
    step = _step(replace_memory(case, stop), stop)
    return replace(step, events=(*events, *step.events))


def stopping(case: Case) -> Verdict | None:
    """Go on with a stop in progress."""
    stop = case.memory.stopping
    return None if stop is None else _step(case, stop)


def replace_memory(case: Case, stop: Stopping | None) -> Case:
    """The same case with another stop in it."""
    return replace(case, memory=replace(case.memory, stopping=stop))


def _step(case: Case, stop: Stopping) -> Verdict:
    now, pane = case.now.steady, case.seen.pane
    name = case.agent.name
    left = case.seen.survivors
    alive = pane is not None and not pane.dead
    if stop.step == 0:
        if left == 0 and not alive:
            return _remove_or_done(case, stop)
        act = Signal(name, stop.run, stop.pid, int(signal.SIGTERM), stop.cause)
        return _hold(case, replace(stop, step=1, at=now), f"stopping: {stop.cause}", act)
    if left is None:
        return _hold(case, stop, f"stopping: {stop.cause}; processes not counted yet")
    if left == 0 and not alive:
        if stop.clear == 0 and stop.step < REMOVED and stop.planned:
            return _hold(
                case, replace(stop, clear=1, at=now), "stopping: nobody left, looking once more", wait=POLL_S
            )
        return _remove_or_done(case, stop)
    waited = now - stop.at
    if stop.step == 1 and waited >= TERM_WAIT_S:
        act = Signal(name, stop.run, stop.pid, int(signal.SIGKILL), f"{stop.cause}; {left} ignored SIGTERM")
        return _hold(case, replace(stop, step=2, at=now), f"forcing {left} processes", act)
    if stop.step >= FORCED and waited >= KILL_WAIT_S:
        act = Signal(name, stop.run, stop.pid, int(signal.SIGKILL), f"{left} survived SIGKILL")
        stopped = replace(stop, step=2, at=now)
        verdict = _hold(case, stopped, f"{left} processes survive SIGKILL; they block a new start", act)
        return replace(verdict, events=((EventType.AGENT_SURVIVED_STOP, f"{left} processes"),))
    return _hold(case, stop, f"stopping: waiting for {left} processes", wait=POLL_S)


def _remove_or_done(case: Case, stop: Stopping) -> Verdict:
    pane = case.seen.pane
    if pane is not None and pane.ref.run == stop.run:
        act = Remove(case.agent.name, pane.ref, stop.cause)
        return _hold(case, replace(stop, step=3, at=case.now.steady), "taking the session away", act)
    memory = replace(case.memory, stopping=None)
    return Verdict(
        f"stopped: {stop.cause}", memory=memory, hold=True, detail=Detail.STOPPING, wake_at=case.now.steady
    )


def _hold(
    case: Case, stop: Stopping, reason: str, act: Signal | Remove | None = None, wait: float = POLL_S
) -> Verdict:
    memory = replace(case.memory, stopping=stop)
    return Verdict(
        reason, action=act, hold=True, detail=Detail.STOPPING, memory=memory, wake_at=case.now.steady + wait
    )
