"""From `kill -9` to the decision, and to a new process, with supervisord beside it in the same run."""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import Figure, percentile, project, stamps
from bench.peers import Missing, Supervisor
from tests.tmux.project import Project

APART_S = 0.25
HEALED_AT_ONCE = 9  # the fleet may make ten unplanned starts a minute; later deaths time only the decision


def figures(deaths: int) -> list[Figure]:
    """Each agent dies once, one after the other; in between, supervisord's only program dies too."""
    with project(deaths) as (made, starts), tempfile.TemporaryDirectory(prefix="aotest-peer-") as home:
        beside: Supervisor | None = Supervisor(Path(home))
        why = ""
        try:
            beside.start()
        except Missing as missing:
            beside, why = None, str(missing)
        try:
            made.agents("up", "--timeout", "300", timeout=600)
            killed, theirs = _kill_all(made, starts, deaths, beside)
            decided = {e["agent"]: e["ts"] for e in made.events("agent.died")}
            told = stamps(starts)
            made.agents("down", timeout=600)
        finally:
            if beside is not None:
                beside.stop()
    until = [1000 * (decided[n] - at) for n, at in killed.items() if n in decided]
    first = list(killed.items())[:HEALED_AT_ONCE]
    again = [(told[f"{made.prefix}{name}"][1:2], at) for name, at in first]
    new = [1000 * (rows[0][1] - at) for rows, at in again if rows]
    return _report(deaths, until, new, len(first) - len(new), theirs, why)


def _kill_all(
    made: Project, starts: Path, deaths: int, beside: Supervisor | None
) -> tuple[dict[str, float], list[float]]:
    killed: dict[str, float] = {}
    theirs: list[float] = []
    for n in range(deaths):
        name = f"n{n}"
        pid = stamps(starts)[f"{made.prefix}{name}"][-1][0]
        killed[name] = time.time()
        os.kill(pid, signal.SIGKILL)
        if n < HEALED_AT_ONCE:
            _until(lambda s=f"{made.prefix}{name}": len(stamps(starts)[s]) > 1, 60)
            if beside is not None:
                theirs.append(_kill_theirs(beside))
        else:
            _until(lambda a=name: made.events("agent.died", a), 10)
        time.sleep(APART_S)
    return killed, theirs


def _kill_theirs(beside: Supervisor) -> float:
    """After it has run for longer than its own `startsecs`."""
    _until(beside.pid, 10)
    time.sleep(1.2 + random.random())  # it looks once a second: no phase may be favoured
    pid, began = beside.pid(), time.time()
    os.kill(pid, signal.SIGKILL)
    _until(lambda: beside.pid() not in {0, pid}, 30)
    return 1000 * (max(r[-1][1] for r in stamps(beside.starts).values()) - began)


def _until(condition: Callable[[], object], seconds: float) -> None:
    """Look seldom: the figures come from what the others write down, and our looking would slow them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if condition():
            return


def _report(
    deaths: int, until: list[float], new: list[float], late: int, theirs: list[float], why: str
) -> list[Figure]:
    lost = deaths - len(until)
    slow = percentile(until, 0.95)
    area, middle = f"{deaths} deaths by kill -9", statistics.median(new)
    healed = Figure(area, "to a new process, median", middle, "ms", note=f"supervisord: {why}" if why else "")
    if theirs:
        times = middle / statistics.median(theirs)
        healed = Figure(area, healed.name, middle, "ms", "supervisord", times, "<= 0.5 times", times <= 0.5)
    return [
        Figure(area, "to the decision, median", statistics.median(until), "ms"),
        Figure(area, "to the decision, 95 of 100", slow, "ms", goal="<= 50 ms", met=slow <= 50),
        Figure(area, "lost", lost, "", goal="0", met=lost == 0),
        healed,
        Figure(area, "not healed at once, of the first", late, "", goal="0", met=late == 0),
    ]


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if sys.argv[1:] else 10):
        print(figure.plain())
