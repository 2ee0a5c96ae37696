"""Stop a run wholly: ask, wait, force, take the session away, look again.

Killing a session leaves five of eight kinds of children behind, so a stop is about the process set
of the run. One step a look; a run with survivors blocks the next start of that agent.
"""

from __future__ import annotations

import signal
from typing import assert_never

from fleet.core.case import SEEN_ONCE, Case, Verdict, hold
from fleet.core.decision import Note
from fleet.core.effects import Remove, Signal
from fleet.core.memory import Stopping
from fleet.core.seen import PaneRef
from fleet.core.words import Detail, EventType, StopStage

TERM_WAIT_S = 10.0
IN_PERSON_S = 5.0  # a person waits for the verb
HANG_UP_S = 1.0  # what survives SIGKILL that long may leave with its terminal: sudo and its like do
KILL_WAIT_S = 5.0
POLL_S = 0.25
EAGER_S, EAGER_POLL_S = 1.0, 0.03  # most end at once


def begin(case: Case, cause: str, *, planned: bool, event: EventType | None = None) -> Verdict:
    """Start to stop the run that is there."""
    pane, memory = case.seen.pane, case.memory
    run = pane.ref.run if pane is not None else case.seen.left or memory.seen_run
    pid = memory.run.pid if memory.run else 0
    if pane is not None:
        pid = pane.ref.pid
    stop = Stopping(cause, planned, pane.ref if pane else None, run, pid, at=case.now.steady)
    told = (Note(event, cause),) if event else ()
    step = _step(case.with_memory(memory._replace(stopping=stop)), stop)
    return step._replace(notes=(*told, *step.notes))


def stopping(case: Case) -> Verdict | None:
    """Go on with a stop in progress."""
    stop = case.memory.stopping
    return None if stop is None else _step(case, stop)


def _step(case: Case, stop: Stopping) -> Verdict:
    now, pane, left = case.now, case.seen.pane, case.seen.survivors
    if left is None and stop.stage is not StopStage.BEGUN:
        return _hold(case, stop, f"stopping: {stop.cause}; processes not counted yet")
    if left == 0 and (pane is None or pane.dead or stop.stage is not StopStage.BEGUN):
        return _emptied(case, stop)
    waited = now.since(stop.at)
    match stop.stage:
        case StopStage.BEGUN:
            asked = stop._replace(stage=StopStage.ASKED, at=now.steady)
            act = _signal(case, stop, signal.SIGTERM, stop.cause)
            return _hold(case, asked, f"stopping: {stop.cause}", act)
        case StopStage.ASKED if waited >= (IN_PERSON_S if case.in_person else TERM_WAIT_S):
            forced = stop._replace(stage=StopStage.FORCED, at=now.steady)
            act = _signal(case, stop, signal.SIGKILL, f"{stop.cause}; {left} ignored SIGTERM")
            return _hold(case, forced, f"forcing {left} processes", act)
        case StopStage.FORCED if waited >= HANG_UP_S and pane is not None and pane.ref.run == stop.run:
            return _remove(case, stop, pane.ref)
        case StopStage.FORCED | StopStage.REMOVED if waited >= KILL_WAIT_S:
            forced = stop._replace(stage=StopStage.FORCED, at=now.steady)
            act = _signal(case, stop, signal.SIGKILL, f"{left} survived SIGKILL")
            verdict = _hold(case, forced, f"{left} processes survive SIGKILL; they block a new start", act)
            return verdict._replace(notes=(Note(EventType.AGENT_SURVIVED_STOP, f"{left} processes"),))
        case StopStage.ASKED | StopStage.FORCED | StopStage.REMOVED:
            return _hold(case, stop, f"stopping: waiting for {left} processes")
        case _:
            assert_never(stop.stage)


def _signal(case: Case, stop: Stopping, signum: signal.Signals, cause: str) -> Signal:
    return Signal(case.agent.name, int(signum), cause, stop.run, stop.pid)


def _emptied(case: Case, stop: Stopping) -> Verdict:
    """No process is left. After a signal of a planned stop one more look has to say so."""
    signalled = stop.stage in {StopStage.ASKED, StopStage.FORCED}
    if signalled and stop.clear == 0 and stop.planned:
        seen_once = stop._replace(clear=1, at=case.now.steady)
        return _hold(case, seen_once, f"stopping: no process is left, {SEEN_ONCE}")
    pane = case.seen.pane
    if pane is not None and pane.ref.run == stop.run:
        return _remove(case, stop, pane.ref)
    memory = case.memory._replace(stopping=None)
    return hold(f"stopped: {stop.cause}", Detail.STOPPING, case.now.steady, memory)


def _remove(case: Case, stop: Stopping, ref: PaneRef) -> Verdict:
    removed = stop._replace(stage=StopStage.REMOVED, at=case.now.steady)
    verdict = _hold(case, removed, "taking the session away", Remove(case.agent.name, ref, stop.cause))
    if stop.stage is StopStage.REMOVED:  # it did not go: once more, at the usual pace
        return verdict
    return verdict._replace(wake_at=case.now.steady)


def _hold(case: Case, stop: Stopping, reason: str, act: Signal | Remove | None = None) -> Verdict:
    memory = case.memory._replace(stopping=stop)
    again = case.now.after(EAGER_POLL_S if case.now.since(stop.at) < EAGER_S else POLL_S)
    return hold(reason, Detail.STOPPING, again, memory)._replace(action=act)
