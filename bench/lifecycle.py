"""`up` and `down` of a fleet, beside starting the same programs on terminals of their own and ending them."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import AGENT, Figure, project, ratio, stamps


def ours(size: int) -> tuple[float, float, float]:
    """Milliseconds until every program runs; until `up` is sure that all are ready; of `down`."""
    with project(size) as (made, starts):
        began = time.time()
        made.agents("up", timeout=600)
        ready = time.time()
        last = max(rows[0][1] for rows in stamps(starts).values())
        assert len(stamps(starts)) == size
        down = time.time()
        made.agents("down", timeout=600)
        return (last - began) * 1000, (ready - began) * 1000, (time.time() - down) * 1000


def floor(size: int) -> tuple[float, float]:
    """The same programs by forkpty and exec, then SIGTERM: milliseconds of each."""
    with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
        os.environ["BENCH_STARTS"] = home
        began, children = time.time(), []
        for n in range(size):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execvp("sh", ["sh", str(AGENT), f"f{n}"])
            children.append((pid, terminal))
        while len(os.listdir(home)) < size or any(not rows for rows in stamps(Path(home)).values()):
            time.sleep(0.005)
        last = max(rows[0][1] for rows in stamps(Path(home)).values())
        ending = time.time()
        for pid, terminal in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
            os.close(terminal)
        for pid, _ in children:
            os.waitpid(pid, 0)
        return (last - began) * 1000, (time.time() - ending) * 1000


def figures(size: int, rounds: int) -> list[Figure]:
    """In turns: floor, ours, floor, ours ..."""
    runs, floors = [], []
    for _ in range(rounds):
        floors.append(floor(size))
        runs.append(ours(size))
    area = f"{size} agents"
    up = ratio([r[0] for r in runs], [f[0] for f in floors])
    beside = "forkpty and exec of the same programs"
    middle = sorted(runs)[len(runs) // 2]
    return [
        Figure(area, "`up` until all run", middle[0], "ms", beside, up, "<= 3 times", up <= 3),
        Figure(area, "`up` until all are known to be ready", middle[1], "ms"),
        Figure(
            area,
            "`down`, sure that nothing is left",
            middle[2],
            "ms",
            "SIGTERM to the same programs",
            ratio([r[2] for r in runs], [f[1] for f in floors]),
            "<= 30 s",
            middle[2] <= 30_000,
        ),
    ]


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if sys.argv[1:] else 10, 1):
        print(figure.plain())
