"""A large fleet for a while: is everybody looked at, and does the supervisor stay as small as it was?

    python -m tests.chaos.load [--agents 100] [--minutes 2]

Agents change what they show, or die, one after the other. How long it takes until that is on record is
counted in looks of the watchdog, not in seconds, so that a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.deadlines import patience
from tests.tmux.project import Project, until

MOODY = Path(__file__).with_name("moody.sh")
WARM_S = 10.0
LOOKS_MAX = 2
GROWTH_KB = 4096
DESCRIPTORS = 3
DOWN_S = 30.0  # for a hundred agents


@dataclass
class Load:
    """What was found."""

    agents: int
    looks: list[int] = field(default_factory=list)  # from each change to its record
    unseen: list[str] = field(default_factory=list)
    memory_kb: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    processor: float = 0.0  # share of one core
    down_s: float = 0.0

    def broken(self) -> list[str]:
        """What was promised and is not so."""
        late = [n for n in self.looks if n > LOOKS_MAX]
        found = [f"{len(late)} changes took more than {LOOKS_MAX} looks: {late}"] if late else []
        found += [f"never noticed: {self.unseen}"] if self.unseen else []
        if self.memory_kb[-1] > self.memory_kb[0] * 1.05 + GROWTH_KB:
            found.append(f"memory grew from {self.memory_kb[0]} to {self.memory_kb[-1]} kB")
        if self.descriptors[-1] > self.descriptors[0] + DESCRIPTORS:
            found.append(f"descriptors grew from {self.descriptors[0]} to {self.descriptors[-1]}")
        if self.down_s > patience(DOWN_S) * max(1.0, self.agents / 100):
            found.append(f"`down` took {self.down_s:.0f} s")
        return found

    def text(self) -> str:
        """One line for a person."""
        return (
            f"{self.agents} agents: {len(self.looks)} changes, within {max(self.looks, default=0)} looks, "
            f"{100 * self.processor:.2f} % of a core, {self.memory_kb[0]} -> {self.memory_kb[-1]} kB, "
            f"{self.descriptors[0]} -> {self.descriptors[-1]} descriptors, down in {self.down_s:.1f} s"
        )


def declaration(count: int) -> str:
    """A backend of the plain kind, and that many agents of it."""
    text = "[watchdog]\nsignal_interval = 1.0\nheavy_interval = 10.0\n"
    text += f"[backend.moody]\nbin = 'exec sh {MOODY}'\n"
    text += 'prompt_delivery = "exec"\nactive_re = "^WORKING$"\n'
    one = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "moody"\nwatch = "heal"\n'
    return text + "".join(one.format(f"m{n}") for n in range(count))


class Beats:
    """The looks of the watchdog, counted from outside: by its heartbeat."""

    def __init__(self, project: Project) -> None:
        self._path = project.log_dir / "state" / "heartbeat"
        self._last = 0
        self.count = 0

    def look(self) -> int:
        at = self._path.stat().st_mtime_ns
        self.count += at != self._last
        self._last = at
        return self.count


def measure(pid: int) -> tuple[int, int, float]:
    """Resident kilobytes, open descriptors, processor seconds."""
    status = Path(f"/proc/{pid}/statm").read_text().split()
    cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE") // 1024, len(os.listdir(f"/proc/{pid}/fd")), used


def panes(project: Project) -> dict[str, int]:
    """Pids by agent."""
    rows = project.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid}").split("\n")
    found = (r.split() for r in rows if r.startswith(f"{project.prefix}m"))
    return {name.removeprefix(project.prefix): int(pid) for name, pid in found}


def run(root: Path, agents: int, seconds: float, seed: int = 1) -> Load:
    """Bring them up, keep them changing, and watch the watchdog."""
    project = Project(root, declaration(agents), fast=False)
    rng, load = Random(seed), Load(agents)
    try:
        project.agents("up", "--timeout", "240", timeout=300)
        dog = project.json("status")["watchdog"]["pid"]
        pids = panes(project)
        assert len(pids) == agents
        beats, warm = Beats(project), time.monotonic() + WARM_S
        until(lambda: time.monotonic() > warm, WARM_S + 5)
        began, first = time.monotonic(), measure(dog)
        while time.monotonic() - began < seconds:
            _change(project, rng, pids, beats, load)
            memory, descriptors, _ = measure(dog)
            load.memory_kb.append(memory)
            load.descriptors.append(descriptors)
        load.processor = (measure(dog)[2] - first[2]) / (time.monotonic() - began)
        assert project.json("status")["watchdog"]["pid"] == dog
        leaving = time.monotonic()
        project.agents("down", timeout=300)
        load.down_s = time.monotonic() - leaving
    finally:
        project.tear_down()
    return load


def _change(project: Project, rng: Random, pids: dict[str, int], beats: Beats, load: Load) -> None:
    """One agent shows something else; count the looks until that is on record."""
    name = rng.choice(sorted(pids))
    path = project.log_dir / "events.jsonl"
    size, began = path.stat().st_size, beats.look()
    os.kill(pids[name], signal.SIGUSR1)
    deadline = time.monotonic() + patience(60)
    while time.monotonic() < deadline:
        looks = beats.look() - began
        with path.open("rb") as file:
            file.seek(size)
            rows = [json.loads(line) for line in file.read().splitlines() if line.endswith(b"}")]
        if any(r["agent"] == name and r["type"] == "agent.state_changed" for r in rows):
            load.looks.append(looks)
            return
        time.sleep(0.02)
    load.unseen.append(name)


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(prog="tests.chaos.load", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=2.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aotest-load-") as root:
        load = run(Path(root) / "project", args.agents, args.minutes * 60)
    print(load.text())
    for text in load.broken():
        print(f"BROKEN {text}")
    return 1 if load.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
