"""`status` of a fleet, beside a Python that does nothing."""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import ROOT, Figure, alternate, project, ratio, timed


def figures(size: int, rounds: int) -> list[Figure]:
    """Both in turns, each as a whole process."""
    compileall.compile_dir(str(ROOT / "fleet"), quiet=2)
    with project(size) as (made, _):
        made.agents("up", timeout=600)
        env = {k: v for k, v in made.env().items() if not k.startswith("PYTHON")}
        words = [sys.executable, str(ROOT / "agents.py"), "status", "--config", str(made.config)]

        def run(argv: list[str]) -> float:
            return timed(lambda: subprocess.run(argv, capture_output=True, check=True, env=env))

        ways = {"status": lambda: run(words), "nothing": lambda: run([sys.executable, "-c", "pass"])}
        alternate(ways, 2)  # byte code is written, pages are warm
        found = alternate(ways, rounds)
        made.agents("down", timeout=600)
    times = ratio(found["status"], found["nothing"])
    took = statistics.median(found["status"])
    goal, met = "<= 5 times", times <= 5
    return [Figure(f"{size} agents", "`status`", took, "ms", "python3 -c pass", times, goal, met)]


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if sys.argv[1:] else 10, 5):
        print(figure.plain())
