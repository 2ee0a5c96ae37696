"""A run that was made for something else is replaced by one that is made for what counts now, as planned.

A loop agent belongs to a phase, and each run answers a call of the operator or of completion. The advance and
the call are durable records and nothing else. The run carries what it was made for, so the next look finishes
what a killed watchdog or verb had begun.
"""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict, hold
from fleet.core.words import Detail


def turnover(case: Case) -> Verdict | None:
    """Stop a run of an older phase or call; keep loop agents stopped when all phases are over."""
    pane, loop, run = case.seen.pane, case.loop, case.memory.run
    if case.agent.is_loop and loop.complete:
        if pane is not None:
            return begin(case, "the sequence is complete", planned=True)
        return hold("the sequence is complete", Detail.DONE)
    held = _held(case)
    if held:
        if pane is not None and not pane.dead:
            return None  # it could not be started again
        return hold(f"the loop is held: {held}", Detail.HELD)
    if run is None or pane is None or pane.dead or run.id != pane.ref.run:
        return None
    if run.made_for.call < case.seen.wish.run:
        return begin(case, "a new run was called for", planned=True)
    phase = run.made_for.phase
    if case.agent.is_loop and phase and phase != loop.phase and not loop.keep_runs:
        return begin(case, f"phase {phase} is over, {loop.phase} begins", planned=True)
    return None


def _held(case: Case) -> str:
    """Why no run of a loop agent can be made now; empty for all others."""
    if not case.agent.is_loop:
        return ""
    return case.loop.held or ("" if case.loop.phase else "its position could not be looked at")
