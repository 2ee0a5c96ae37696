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

from bench.common import AGENT, ROOT, Figure, project, ratio

AGENT_PY = ROOT / "fleet" / "scripted_agent" / "__main__.py"

# The first thing a scripted agent does with its kickoff is to leave a file: its date is when it was up.
SCRIPT = 'boot = 0\nsteps = [{{ write = "{starts}/{{session}}", text = "up" }}]\n'
SCRIPTED = """[[agent]]
name = "n{n}"
kind = "persistent"
backend = "scripted"
watch = "heal"
prompt = "go"
env = {{ AO_SCRIPT = "{script}" }}
"""


def ours(size: int, *, scripted: bool) -> tuple[float, float, float]:
    """Milliseconds until every program runs; until `up` is sure that all are ready; of `down`."""
    with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
        script = Path(home) / "script.toml"
        acted = "".join(SCRIPTED.format(n=n, script=script) for n in range(size if scripted else 0))
        with project(0 if scripted else size, more=acted) as (made, starts):
            script.write_text(SCRIPT.format(starts=starts))
            began = time.time()
            made.agents("up", timeout=600)
            ready = time.time()
            last = newest(starts, size)
            down = time.time()
            made.agents("down", timeout=600)
            return (last - began) * 1000, (ready - began) * 1000, (time.time() - down) * 1000


def newest(starts: Path, size: int) -> float:
    """When the last of them was up; waits for it."""
    while True:
        there = [path.stat() for path in starts.iterdir() if path.suffix != ".new"]  # not yet in its place
        dates = [found.st_mtime for found in there if found.st_size]
        if len(dates) >= size:
            return max(dates)
        time.sleep(0.005)


def floor(size: int, *, scripted: bool) -> tuple[float, float]:
    """The same programs by forkpty and exec, then SIGTERM: milliseconds of each."""
    with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
        starts, script = Path(home) / "starts", Path(home) / "script.toml"
        starts.mkdir()
        script.write_text(SCRIPT.format(starts=starts))
        os.environ["BENCH_STARTS"] = str(starts)
        began, children = time.time(), []
        for n in range(size):
            pid, terminal = pty.fork()
            if pid == 0:
                if scripted:
                    os.environ |= {"AO_SCRIPT": str(script), "AO_SESSION": f"f{n}", "AO_LOG_DIR": home}
                    os.execv(sys.executable, [sys.executable, "-I", "-S", str(AGENT_PY), "go"])
                os.execvp("sh", ["sh", str(AGENT), f"f{n}"])
            children.append((pid, terminal))
        last = newest(starts, size)
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
    least: list[tuple[float, float]] = []
    runs: list[tuple[float, float, float]] = []
    floors: list[tuple[float, float]] = []
    for _ in range(rounds):
        floors.append(floor(size, scripted=True))
        runs.append(ours(size, scripted=True))
        least.append((ours(size, scripted=False)[0], floor(size, scripted=False)[0]))
    area = f"{size} agents"
    up = ratio([r[0] for r in runs], [f[0] for f in floors])
    beside = "forkpty and exec of the same programs"
    middle = sorted(runs)[len(runs) // 2]
    bare = ratio([a for a, _ in least], [b for _, b in least])
    return [
        Figure(area, "`up` until all run", middle[0], "ms", beside, up, "<= 3 times", up <= 3),
        Figure(area, "`up` until all are known to be ready", middle[1], "ms"),
        Figure(area, "`up` of agents of one line of sh", min(least)[0], "ms", beside, bare),
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
