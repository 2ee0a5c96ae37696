"""What all benchmarks share: figures with the goal they are held to, and a fleet to measure."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.tmux.project import Project  # noqa: E402 - a user's project on a private socket

LOAD = os.getloadavg()[0]  # of whatever else this machine does
AGENT = ROOT / "bench" / "agent.sh"


@dataclass(frozen=True)
class Figure:
    """One measured thing. `ratio` sets it beside something measured in the same run; `goal` bounds it."""

    area: str
    name: str
    value: float
    unit: str
    beside: str = ""  # what the ratio is to
    ratio: float | None = None
    goal: str = ""  # in words
    met: bool | None = None  # None: shown, not judged
    note: str = ""

    def plain(self) -> dict[str, object]:
        """For --json."""
        return {
            "area": self.area,
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "beside": self.beside,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "goal": self.goal,
            "met": self.met,
            "note": self.note,
        }


def timed(act: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def alternate(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Every way in turns, so that whatever else this machine does falls on all of them."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            found[name].append(measure())
    return found


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of ratios of measurements that were made right after one another."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def processor(pid: int) -> float:
    """Seconds of processor time a process has used, without its children."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        cells = file.read().rpartition(")")[2].split()
    return (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Megabytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def declaration(count: int, more: str = "") -> str:
    """That many agents of a few kilobytes: they stamp their start, and change their word when told to."""
    text = f"[backend.tiny]\nbin = 'exec sh {AGENT} {{session}}'\nprompt_delivery = \"exec\"\n"
    text += 'active_re = "^WORKING$"\nenv_pass = ["BENCH_STARTS"]\n' + more
    one = '[[agent]]\nname = "n{}"\nkind = "persistent"\nbackend = "tiny"\nwatch = "heal"\n'
    return text + "".join(one.format(n) for n in range(count))


@contextlib.contextmanager
def project(count: int, watchdog: str = "", more: str = "") -> Iterator[tuple[Project, Path]]:
    """A project with that many agents, not yet up, and the directory in which they stamp their starts."""
    with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
        starts = Path(home) / "starts"
        starts.mkdir()
        os.environ["BENCH_STARTS"] = str(starts)
        pace = watchdog or "[watchdog]\nsignal_interval = 1.0\nheavy_interval = 30.0\n"
        made = Project(Path(home) / "project", pace + declaration(count, more), fast=False)
        try:
            yield made, starts
        finally:
            made.tear_down()


def stamps(starts: Path) -> dict[str, list[tuple[int, float]]]:
    """By agent: pid and instant of every start."""
    found = {}
    for path in starts.iterdir():
        rows = [line.split() for line in path.read_text().splitlines() if line.count(" ") == 1]
        found[path.name] = [(int(pid), float(at)) for pid, at in rows]
    return found


def versions() -> dict[str, str]:
    """What this was measured with; no name of a machine."""
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False).stdout.split()
    return {
        "python": platform.python_version(),
        "tmux": tmux[-1] if tmux else "none",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "cores": str(os.cpu_count()),
        "load before": f"{LOAD:.1f}",
    }
