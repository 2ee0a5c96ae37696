"""How much faster than time the simulation is: ten agents, the real watchdog, one process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import Figure
from tests.sim.simulation import Simulation


def figures(seeds: int, hours: float) -> list[Figure]:
    """Faults and oracles included."""
    began, ticks = time.process_time(), 0
    for seed in range(seeds):
        report = Simulation(seed, hours).run()
        assert not report.failure, report.failure
        ticks += report.ticks
    spent = time.process_time() - began
    speed = seeds * hours * 3600 / spent
    area = "simulation, 10 agents, one process"
    each = 1e6 * spent / ticks
    return [
        Figure(area, "speed", speed, "times real time", goal=">= 20,000", met=speed >= 20_000),
        Figure(area, "one tick", each, "µs"),
    ]


if __name__ == "__main__":
    for figure in figures(2, 6.0):
        print(figure.plain())
