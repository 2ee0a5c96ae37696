"""Leave a starting agent alone: a preamble, a slow disk or a first run may take its time."""

from __future__ import annotations

from fleet.core.case import Case, Verdict, hold
from fleet.core.seen import ScreenState
from fleet.core.words import Detail

FIRST_S = 5.0  # most are ready within this: look often


def starting(case: Case) -> Verdict | None:
    """Within its grace an agent that is not ready is neither wrong nor stuck."""
    memory, now = case.memory, case.now
    if memory.ready or case.seen.pane is None:
        return None
    age = now.since(memory.alive_since)
    grace = case.backend.start_grace
    if age >= grace or memory.state == ScreenState.ASKING:
        return None
    again = now.after(min(0.5 if age < FIRST_S else 2.0, grace))
    return hold(f"starting for {age:.0f} s of at most {grace:.0f}", Detail.STARTING, again)
