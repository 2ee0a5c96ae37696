"""What one start, heal, stop, message and quiet tick cost: syncs, processes started, commands given to tmux.

    python bench/costs.py [--engine CHECKOUT] [--rounds N]

Counts hardly depend on how fast the machine is, so they can be compared with those of another checkout.
Nothing of the engine is changed or imported:

- syncs: every Python of the engine loads a `sitecustomize` that notes each fsync and fdatasync;
- processes: all of it runs in a process namespace of its own, whose numbers the kernel hands out in sequence;
- commands: the tmux server keeps its own log of each command that it executes, whichever client sent it.

The watchdog's intervals are long here, so that only what an act causes is counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import ROOT, Figure

ACTS = ("start by `up`", "heal", "message by `send`", "stop by `down`", "quiet tick")
KINDS = ("syncs", "processes", "commands")
# What commit 251a380 needed, counted by this file: no act may need more.
BEFORE: dict[str, tuple[float, ...]] = {
    "start by `up`": (20, 10, 55),
    "heal": (15, 8, 76),
    "message by `send`": (22, 1, 112),
    "stop by `down`": (9, 5, 51),
    "quiet tick": (0, 0, 7),
}
STILL_S = 1.5  # no count has moved for so long: the act is over
QUIET_S = 10.0
PREFIX = "aotest-costs-"
HOOK = """import os
def counted(act, path):
    def call(*args, **options):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, b".")
        os.close(fd)
        return act(*args, **options)
    return call
for name in ("fsync", "fdatasync"):
    setattr(os, name, counted(getattr(os, name), {path!r}))
"""
HEAD = """[defaults]
session_prefix = "{prefix}"
log_dir = ".ao-state"
[watchdog]
signal_interval = {interval}
heavy_interval = 3600
"""
AGENT = """[[agent]]
name = "{name}"
kind = "persistent"
backend = "scripted"
prompt = "Begin."
watch = "heal"
"""
FIRED = re.compile(rb"^\S+ cmdq_fire_command <(?!global>)", re.MULTILINE)


class Place:
    """A project of its own, an engine beside it, and the counters."""

    def __init__(self, home: Path, engine: Path, interval: float) -> None:
        self.home, self.engine = home, engine
        self.looks = 0  # of our own at the counts
        self.victim = 0  # the process that `heal` ends
        self.root = home / "project"
        self.root.mkdir()
        self.prefix = f"{PREFIX}{os.getpid()}-"
        self.python = self._python()
        self._wrap_tmux()
        head = HEAD.format(prefix=self.prefix, interval=interval)
        text = head + "".join(AGENT.format(name=n) for n in ("a", "b"))
        (self.root / "agents.toml").write_text(text, encoding="utf-8")

    def _python(self) -> Path:
        """An interpreter that counts: whatever the engine starts with it counts, too."""
        venv = self.home / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(venv)], check=True)
        site = next((venv / "lib").glob("python*/site-packages"))
        (site / "sitecustomize.py").write_text(HOOK.format(path=str(self.home / "syncs")), encoding="utf-8")
        beside = [path for path in sys.path if path.endswith("-packages")]  # libraries that `up` may ask for
        (site / "beside.pth").write_text("\n".join(beside), encoding="utf-8")
        return venv / "bin" / "python"

    def _wrap_tmux(self) -> None:
        real = shutil.which("tmux")
        assert real, "no tmux on PATH"
        path = self.home / "bin" / "tmux"
        path.parent.mkdir()
        (self.home / "logs").mkdir()
        # It logs where it is started, which is within the project or anywhere.
        aside = f"case $PWD in {self.home}/*) ;; *) cd {self.home}/logs ;; esac"
        path.write_text(f'#!/bin/sh\n{aside}\nexec {real} -vv "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def run(self, *words: str) -> str:
        """A verb of the engine; its output."""
        home = str(self.home)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TMUX", "AGENT_", "AO_"))}
        env |= {"PATH": f"{home}/bin:{env['PATH']}", "TMUX_TMPDIR": home, "HOME": home}
        argv = [str(self.python), str(self.engine / "agents.py"), *words]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env=env, cwd=self.root, timeout=300
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def pid(self, name: str) -> int:
        """The process in an agent's pane."""
        argv = ["tmux", "-L", f"ao-{self.prefix.rstrip('-')}", "list-panes", "-t", f"={self.prefix}{name}:"]
        env = os.environ | {"TMUX_TMPDIR": str(self.home)}
        return int(subprocess.check_output([*argv, "-F", "#{pane_pid}"], text=True, env=env))

    def happened(self, kind: str) -> int:
        """How many events of a type are on record."""
        record = self.root / ".ao-state" / "events.jsonl"
        return record.read_text(encoding="utf-8").count(f'"type":"{kind}"')

    def counts(self) -> tuple[int, ...]:
        """So far, as KINDS. Each look starts one process itself, which is taken off."""
        self.looks += 1
        probe = os.fork()
        if probe == 0:
            os._exit(0)
        os.waitpid(probe, 0)
        syncs = self.home / "syncs"
        fired = sum(len(FIRED.findall(log.read_bytes())) for log in self.home.rglob("tmux-server-*.log"))
        return syncs.stat().st_size if syncs.exists() else 0, probe - self.looks, fired

    def settled(self) -> tuple[int, ...]:
        """The counts once they have stopped moving."""
        last, since = self.counts(), time.monotonic()
        while time.monotonic() - since < STILL_S:
            time.sleep(0.1)
            if (now := self.counts()) != last:
                last, since = now, time.monotonic()
        return last

    def cost(self, act: Callable[[], object]) -> tuple[int, ...]:
        """What an act adds to the counts, with everything that follows from it."""
        before = self.settled()
        act()
        return tuple(b - a for a, b in zip(before, self.settled(), strict=True))

    def heal(self) -> None:
        """An agent dies, and the watchdog restarts it."""
        healed = self.happened("agent.healed")
        os.kill(self.victim, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while self.happened("agent.healed") == healed:
            assert time.monotonic() < deadline, "the agent was not restarted"
            time.sleep(0.05)


def count(engine: Path, rounds: int) -> dict[str, list[float]]:
    """By act, the least of each kind in some rounds: what waits for a slow machine looks more often."""
    found: dict[str, list[tuple[int, ...]]] = {act: [] for act in ACTS}
    with place(engine, 3600.0) as there:
        there.run("up", "--timeout", "600")
        there.run("down", "b")
        for _ in range(rounds):
            found["start by `up`"].append(there.cost(lambda: there.run("up", "b", "--no-wait")))
            found["message by `send`"].append(there.cost(lambda: there.run("send", "a", "hello")))
            found["stop by `down`"].append(there.cost(lambda: there.run("down", "b")))
            there.victim = there.pid("a")
            found["heal"].append(there.cost(there.heal))
        there.run("down")
    with place(engine, 1.0) as there:
        there.run("up", "--timeout", "600")
        time.sleep(QUIET_S / 2)  # until all of them have been found at rest
        for _ in range(rounds):
            before, began = there.counts(), time.monotonic()
            time.sleep(QUIET_S / 2)
            ticks = time.monotonic() - began
            rows = zip(before, there.counts(), strict=True)
            found["quiet tick"].append(tuple((b - a) / ticks for a, b in rows))
        there.run("down")
    return {act: [min(row[n] for row in rows) for n in range(len(KINDS))] for act, rows in found.items()}


@contextlib.contextmanager
def place(engine: Path, interval: float) -> Iterator[Place]:
    """A place whose fleet is gone at the end: with the process namespace, or by `down`."""
    with tempfile.TemporaryDirectory(prefix="aotest-costs-") as home:
        made = Place(Path(home), engine, interval)
        try:
            yield made
        finally:
            with contextlib.suppress(SystemExit):
                made.run("down")


def alone(engine: Path, rounds: int) -> tuple[dict[str, list[float]], str]:
    """`count` in a process namespace of its own; where there is none, why processes are not counted."""
    own = [] if os.geteuid() == 0 else ["-U", "-r"]
    argv = ["unshare", *own, "-p", "-f", "--mount-proc"]
    words = [sys.executable, __file__, "--engine", str(engine), "--rounds", str(rounds), "--inside"]
    may = shutil.which("unshare") is not None
    may = may and subprocess.run([*argv, "true"], check=False, capture_output=True).returncode == 0
    said = subprocess.check_output([*(argv if may else []), *words], text=True)
    return json.loads(said), "" if may else "not counted: no process namespace may be made here"


def figures(rounds: int) -> list[Figure]:
    """Each count beside what it was before the redesign, which is its bound."""
    found, why = alone(ROOT, rounds)
    rows = []
    for act in ACTS:
        for kind, value, bound in zip(KINDS, found[act], BEFORE[act], strict=True):
            if kind == "processes" and why:
                rows.append(Figure(f"one {act}", kind, 0, "", note=why))
                continue
            times = value / bound if bound else None
            goal, met = f"<= {bound:g}", value <= bound
            rows.append(Figure(f"one {act}", kind, value, "", "commit 251a380", times, goal, met))
    return rows


def main() -> int:
    """Print the counts of an engine, as a table."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--engine", type=Path, default=ROOT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        return reaping(lambda: print(json.dumps(count(asked.engine, asked.rounds))))
    found, why = alone(asked.engine, asked.rounds)
    for act, row in found.items():
        print(f"{act:20}", *(f"{kind} {value:<6g}" for kind, value in zip(KINDS, row, strict=True)), why)
    return 0


def reaping(act: Callable[[], object]) -> int:
    """Do it in a child, and collect whoever is left to us: the first process of a namespace has to."""
    child = os.fork()
    if child == 0:
        act()
        sys.stdout.flush()
        os._exit(0)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
