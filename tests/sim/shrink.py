"""The shortest schedule that still breaks the same promise."""

from __future__ import annotations

from tests.sim.faults import Fault, schedule
from tests.sim.simulation import STORM, Simulation

RUNS = 120


def shrink(seed: int, hours: float, failure: str, *, loop: bool = False) -> tuple[Fault, ...]:
    """Leave out faults, half of them at a time, then fewer, as long as the same number is broken."""
    number = failure.partition(":")[0]
    kept = schedule(seed, hours * 3600 * STORM, loop=loop)
    size, runs = max(1, len(kept) // 2), 0
    while size and runs < RUNS:
        at = 0
        while at < len(kept) and runs < RUNS:
            fewer = kept[:at] + kept[at + size :]
            runs += 1
            if Simulation(seed, hours, fewer, loop=loop).run().failure.partition(":")[0] == number:
                kept = fewer
            else:
                at += size
        size //= 2
    return kept
