"""Is the program in the pane the one that was declared?

Judged by the whole process tree, not by a name in a title: a wrapper shows as bash while the
agent works under it, and a tool call takes the foreground for a while.
"""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict
from fleet.core.words import Detail, EventType
from fleet.times.moment import later


def identity(case: Case) -> Verdict | None:
    """Restart an agent that runs another backend, or that has fallen back to a bare shell."""
    if not case.backend.process_name or case.resumed:
        return None
    proc, memory, now = case.seen.proc, case.memory, case.now
    if proc.other and not proc.expected:
        cause = f"it runs {proc.other}, declared is {case.backend.process_name}"
        return begin(case, cause, planned=False, event=EventType.AGENT_MISMATCHED)
    run = memory.run
    if run is not None and run.backend and run.backend != case.backend.name and not proc.expected:
        cause = f"it was started as {run.backend}, declared is {case.backend.name}"
        return begin(case, cause, planned=False, event=EventType.AGENT_MISMATCHED)
    if memory.shell_since and not proc.expected:
        lasted = now.since(memory.shell_since)
        if lasted >= case.watchdog.heavy_interval:
            return begin(
                case,
                f"only a shell is left, for {lasted:.0f} s",
                planned=False,
                event=EventType.AGENT_MISMATCHED,
            )
        return Verdict(
            f"only a shell is left, for {lasted:.0f} s; restarted at {case.watchdog.heavy_interval:.0f}",
            hold=True,
            detail=Detail.MISMATCH,
            wake_at=later(memory.shell_since, case.watchdog.heavy_interval),
        )
    return None
