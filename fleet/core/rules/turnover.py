"""A run that was made for something else is replaced by one that is made for what counts now, as planned.

A loop agent belongs to a phase, a task to the call of completion. The advance and the call are durable
records and nothing else. The run carries what it was made for, so the next look finishes what a killed
watchdog had begun.
"""

from __future__ import annotations

from fleet.core.actions import Start
from fleet.core.case import Case, Verdict
from fleet.core.rules.stopping import begin
from fleet.core.state import Detail


def task(case: Case) -> Verdict | None:
    """A task that completion called for runs once a call, in place of whatever run it had before."""
    pane, run, call = case.seen.pane, case.memory.run, case.seen.wish.task
    if not call or case.memory.fatal or (run is not None and run.made_for.task == call):
        return None
    if pane is not None:
        return begin(case, "it is called for anew", planned=True)
    if case.seen.survivors:
        return begin(case, "its last run left processes behind", planned=True)
    act = Start(case.agent.name, "the sequence is complete and its trigger is there", planned=True)
    return Verdict(act.cause, action=act, hold=True, detail=Detail.STARTING, wake_at=case.now.after(0.4))


def turnover(case: Case) -> Verdict | None:
    """Stop a loop agent whose phase is over, and keep it stopped when all are."""
    if not case.is_loop:
        return None
    pane, loop, run = case.seen.pane, case.loop, case.memory.run
    if loop.complete:
        if pane is not None:
            return begin(case, "the sequence is complete", planned=True)
        return Verdict("the sequence is complete", hold=True, detail=Detail.DONE)
    held = loop.held or ("" if loop.phase else "its position could not be looked at")
    if held:
        if pane is not None and not pane.dead:
            return None
        return Verdict(f"the loop is held: {held}", hold=True, detail=Detail.HELD)
    known = run is not None and pane is not None and run.id == pane.ref.run
    made_for = run.made_for.phase if known and run is not None else ""
    if made_for and made_for != loop.phase and not loop.keep_runs:
        return begin(case, f"phase {made_for} is over, {loop.phase} begins", planned=True)
    return None
