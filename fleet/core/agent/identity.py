"""Is the program in the pane the one that was declared?

Judged by the whole process tree, not by a name in a title: a wrapper shows as bash while the
agent works under it, and a tool call takes the foreground for a while.
"""

from __future__ import annotations

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict, hold
from fleet.core.words import Detail, EventType
from fleet.times.moment import later


def identity(case: Case) -> Verdict | None:
    """Restart an agent that runs another backend, or that has fallen back to a bare shell."""
    if not case.backend.process_name or case.resumed:
        return None
    proc, run, shell_since = case.seen.proc, case.memory.run, case.memory.shell_since
    if proc.expected:
        return None
    if proc.other:
        return _mismatched(case, f"it runs {proc.other}, declared is {case.backend.process_name}")
    if run is not None and run.backend and run.backend != case.backend.name:
        return _mismatched(case, f"it was started as {run.backend}, declared is {case.backend.name}")
    if not shell_since:
        return None
    lasted, longest = case.now.since(shell_since), case.watchdog.heavy_interval
    said = f"only a shell is left, for {lasted:.0f} s"
    if lasted >= longest:
        return _mismatched(case, said)
    return hold(f"{said}; restarted at {longest:.0f}", Detail.MISMATCH, later(shell_since, longest))


def _mismatched(case: Case, cause: str) -> Verdict:
    return begin(case, cause, planned=False, event=EventType.AGENT_MISMATCHED)
