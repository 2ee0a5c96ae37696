"""A whole project on a private tmux socket, driven through agents.py as a user would."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fleet.host import procfs
from fleet.host.clock import RealClock
from fleet.host.ending import stop_all
from fleet.host.processes import ProcTable
from fleet.host.tmux.client import resolve_socket
from fleet.store.eventlog import parse
from tests.deadlines import patience

ENGINE = Path(__file__).parents[2]
MORTAL = Path(__file__).with_name("mortal.py")
FAST = """
[watchdog]
signal_interval = 0.3
heavy_interval = 1.0
stall_grace = 0.5
limit_reset_slack = 0.3
limit_probe_fallback = 2.0
"""
# How long these verbs wait by themselves: here they too wait longer on a slow machine.
WAITS_S = {"up": 90.0, "restart": 90.0, "send": 60.0, "reset": 15.0}


class Project:
    """One project directory; `agents` runs a verb, `json` runs it for a program."""

    def __init__(self, root: Path, text: str, *, fast: bool = True, defaults: str = "") -> None:
        self.root = root
        self.prefix = f"aotest{secrets.token_hex(3)}-"
        self.socket = f"ao-{self.prefix.rstrip('-')}"
        self.config = root / "agents.toml"
        self.log_dir = root / ".ao-state"
        self.head = f'[defaults]\nsession_prefix = "{self.prefix}"\nlog_dir = ".ao-state"\n{defaults}\n'
        self.head += FAST if fast else ""
        root.mkdir(parents=True, exist_ok=True)
        self.write(text)

    def write(self, text: str) -> None:
        """Replace the declaration, keeping the head."""
        self.config.write_text(self.head + text, encoding="utf-8")

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """A user's environment, outside of any tmux."""
        foreign = ("TMUX", "TMUX_PANE")
        env = {k: v for k, v in os.environ.items() if k not in foreign and not k.startswith("AGENT_")}
        return {**env, **(more or {})}

    def agents(
        self, *words: str, code: int | None = 0, env: Mapping[str, str] | None = None, timeout: float = 120.0
    ) -> str:
        """Run a verb; its output. Fails the test on another exit code, or on a traceback."""
        if words[0] in WAITS_S and "--timeout" not in words:
            words += ("--timeout", f"{patience(WAITS_S[words[0]]):.0f}")
        done = subprocess.run(
            [sys.executable, str(ENGINE / "agents.py"), *words, "--config", str(self.config)],
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(timeout),
            env=self.env(env),
            cwd=self.root,
        )
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert code is None or done.returncode == code, f"{words}: exit {done.returncode}\n{said}"
        return done.stdout if code == 0 else said

    def json(self, *words: str, code: int | None = 0, env: Mapping[str, str] | None = None) -> Any:
        """Run a verb with --json."""
        return json.loads(self.agents(*words, "--json", code=code, env=env))

    def row(self, name: str) -> dict[str, Any]:
        """The status row of one member."""
        facts = self.json("status")
        return next(r for r in (*facts["agents"], *facts["services"]) if r["name"] == name)

    def tmux(self, *words: str) -> str:
        """A plain tmux command on the fleet's server."""
        argv = ["tmux", "-L", self.socket, *words]
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=patience(10), env=self.env()
        ).stdout

    def pid(self, name: str) -> int:
        """The process in a member's pane, asked of tmux: cheaper than `status`. 0 when there is none."""
        pane = ("-t", f"={self.prefix}{name}:", "-F", "#{pane_dead} #{pane_pid}")
        said = self.tmux("list-panes", *pane).split()
        return int(said[1]) if len(said) > 1 and said[0] == "0" else 0  # 3.8 tells no pid of the dead

    def kill_watchdog(self) -> None:
        """With the shell that would start it again."""
        lock = json.loads((self.log_dir / "state" / "watchdog.lock").read_text())
        for pid in (self.pid("watchdog"), lock["pid"]):
            os.kill(pid, signal.SIGKILL)

    def events(self, kind: str = "", agent: str = "") -> list[dict[str, Any]]:
        """The record so far."""
        path = self.log_dir / "events.jsonl"
        if not path.exists():
            return []
        rows = [r for line in path.read_bytes().split(b"\n") if (r := parse(line)) is not None]
        return [r for r in rows if (not kind or r["type"] == kind) and (not agent or r["agent"] == agent)]

    def received(self, name: str) -> list[dict[str, Any]]:
        """What a scripted agent was told, byte for byte."""
        path = self.log_dir / "scripted" / f"{self.prefix}{name}" / "messages.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def script(self, name: str, text: str) -> str:
        """A script for a scripted agent; its path for AO_SCRIPT."""
        path = self.root / "scripts" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return f"scripts/{name}.toml"

    def tear_down(self) -> None:
        """Nothing of ours outlives the test, whatever the test did."""
        self._end_watchdog()  # first: it outlives its server, and would found another one
        runs = self.runs()
        server = self.tmux("list-sessions", "-F", "#{pid}").split()[:1]
        self.tmux("kill-server")
        for pid in map(int, server):
            self._end_server(pid)
        survivors = stop_all(ProcTable(), RealClock(), [(0, run) for run in runs], grace=1.0)
        socket = resolve_socket(self.socket)
        if os.path.exists(socket):
            os.unlink(socket)
        assert not survivors, survivors

    def _end_watchdog(self) -> None:
        holder = self.log_dir / "state" / "watchdog.lock"
        if not holder.exists() or not holder.read_text().strip():
            return
        told = json.loads(holder.read_text())
        row = procfs.row(told["pid"])
        if row is None or row.start != told["start"]:
            return
        os.kill(told["pid"], 9)
        until(lambda: (now := procfs.row(told["pid"])) is None or now.zombie or now.start != told["start"])

    def _end_server(self, pid: int) -> None:
        """By force if need be: tmux 3.3a may wait for ever for a control client whose reader was killed."""
        row = procfs.row(pid)
        deadline = time.monotonic() + patience(1.0)
        while row is not None and time.monotonic() < deadline:
            time.sleep(0.02)
            row = now if (now := procfs.row(pid)) is not None and now.start == row.start else None
        if row is not None and not row.zombie:
            os.kill(pid, 9)

    def runs(self) -> list[str]:
        """Run ids on record, and those that processes of this project carry."""
        folder = self.log_dir / "state" / "runs"
        known = [json.loads(f.read_text())["id"] for f in folder.glob("*.json")] if folder.is_dir() else []
        return [*known, *(r for r in self._carried() if r not in known)]

    def _carried(self) -> set[str]:
        found = set()
        for pid in procfs.table():
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if f"AO_SESSION={self.prefix}".encode() in environ:
                found.add(procfs.run_of(pid))
        return found - {""}


def scripted(project: Project, name: str, script: str = "", more: str = "") -> str:
    """The declaration of an agent that plays a script."""
    path = project.script(name, script)
    return (
        f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "scripted"\n'
        f'prompt = "Begin."\nenv = {{ AO_SCRIPT = "{path}" }}\n{more}\n'
    )


@contextmanager
def gated(project: Project, point: str) -> Iterator[Path]:
    """A watchdog that stops at a point, says so in `<gate>.reached`, and goes on once the gate exists."""
    gate = project.root / f"gate-{secrets.token_hex(3)}"
    command = [sys.executable, str(MORTAL), point, "watchdog", "--config", str(project.config)]
    begun = len(project.events("watchdog.started"))
    with open(project.root / "mortal.log", "ab") as log:
        env = project.env({"MORTAL_GATE": str(gate)})
        dog = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        until(lambda: len(project.events("watchdog.started")) > begun)
        yield gate
    finally:
        dog.kill()
        dog.wait()


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait for a condition; what it returned when it held."""
    seconds = patience(seconds)
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.05)
    return result
