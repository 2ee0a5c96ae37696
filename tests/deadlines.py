"""How long a test waits for what must come: its own number, times how slow this machine is now.

Every wait ends with its condition, so a long deadline costs nothing while things work. Two things tell the
slowness, and the greater one counts. It is measured before the first test, by what tests do most: start a
Python. It travels to the workers in the environment; workers that share a core make it slower again. Others
may begin to work on this machine later: how many processes stand in line for a core is asked at each wait.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

NAME = "AOTEST_SLOWNESS"
QUICK_S = 0.05  # to start Python twice, on a machine with nothing else to do
MOST = 8.0
LONGEST_S = 300.0  # what any one test may take


def measure() -> None:
    """Once a run: the first process that asks."""
    if NAME in os.environ:
        return
    begun = time.monotonic()
    for _ in range(2):
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    os.environ[NAME] = f"{slowness(time.monotonic() - begun):.1f}"


def slowness(took: float) -> float:
    """Between 1 and what a machine may be too slow by before it is a fault."""
    return max(1.0, min(MOST, took / QUICK_S))


def patience(seconds: float) -> float:
    """The deadline for something that takes at most so long on a quiet machine."""
    cores = os.cpu_count() or 1
    crowd = max(1.0, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) / cores)
    line = os.getloadavg()[0] / cores
    return seconds * min(MOST, max(float(os.environ.get(NAME, "1")) * crowd, line))
