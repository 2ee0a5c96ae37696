"""The same three faults under other tools: an agent is killed, its session is killed, it freezes.

    python bench/peers.py [--bound S]

Each tool is installed from the registry into an environment of its own (a cache, kept between runs) and runs
the same little agent. Measured are the time until it says that something is wrong, and until a new agent
runs; whatever takes longer than the bound is "not within". A tool that cannot be installed is one line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import AGENT, Figure, declaration, stamps
from tests.tmux.project import Project

PINNED = {
    "supervisor": "4.3.0",
    "circus": "0.19.0",
    "cli-agent-orchestrator": "2.5.4",
    "puppetmaster-ai": "1.48.0",
}
FAULTS = ("agent killed", "session killed", "agent frozen")
INSTALL_S = 420
POLL_S = 0.01


class Missing(Exception):
    """The tool cannot be had here, or has nothing to compare; the text says which."""


def environment(package: str) -> Path:
    """A virtual environment that holds exactly this tool."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-fleet-bench"
    home = base / f"{package}-{PINNED[package]}"
    done = home / "installed"
    if done.exists():
        return home
    base.mkdir(parents=True, exist_ok=True)
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(home / "bin" / "pip"), "install", "-q", f"{package}=={PINNED[package]}"],
    )
    for words in steps:
        try:
            ran = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            raise Missing(f"not installed within {INSTALL_S} s") from None
        if ran.returncode:
            said = (ran.stderr.strip() or "no reason given").splitlines()[-1]
            raise Missing(f"cannot be installed here: {said[:120]}")
    done.touch()
    return home


class Tool:
    """One supervisor with one agent. `notices` and `pid` are asked over and over after a fault."""

    name = ""
    signals = True  # does its agent change its word on USR1?

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = home / "starts"
        self.starts.mkdir(parents=True, exist_ok=True)
        self.env = {k: v for k, v in os.environ.items() if k not in {"TMUX", "TMUX_PANE"}}
        self.env |= {"BENCH_STARTS": str(self.starts), "HOME": str(home), "TMUX_TMPDIR": str(home)}

    def start(self) -> None: ...

    def stop(self) -> None:
        """Also after a start that failed half-way."""
        if self.process is not None:
            _end(self.process)

    def pid(self) -> int:
        """The agent that runs, or 0."""
        last = (rows[-1] for rows in stamps(self.starts).values() if rows)
        newest = max(last, key=lambda row: row[1], default=(0, 0.0))
        return newest[0] if _lives(newest[0]) else 0

    def notices(self) -> bool:
        """Does it say that something is, or was, wrong?"""
        return False

    def kill_session(self) -> bool:
        """False where there is no such thing."""
        return False

    def rouse(self) -> None:
        """Let it have run for a while, and show some life just before the fault."""
        time.sleep(2.5)
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                if self.signals:
                    os.kill(self.pid(), signal.SIGUSR1)
            time.sleep(1.2)


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


class Ours(Tool):
    """This project."""

    name = "agents.py"

    def start(self) -> None:
        os.environ |= {"BENCH_STARTS": str(self.starts)}
        pace = "[watchdog]\nsignal_interval = 1.0\nheavy_interval = 30.0\n"
        text = declaration(1, "stall_idle = 5\n").replace('watch = "heal"', 'watch = "heal+stall"')
        self.project = Project(self.home / "project", pace + text, fast=False)
        self.project.agents("up")
        self.seen = 0

    def stop(self) -> None:
        self.project.agents("down", code=None)
        self.project.tear_down()

    def notices(self) -> bool:
        return self._told() > self.seen

    def mark(self) -> None:
        self.seen = self._told()

    def _told(self) -> int:
        return sum(e["type"] in {"agent.died", "agent.stalled"} for e in self.project.events(agent="n0"))

    def kill_session(self) -> bool:
        self.project.tmux("kill-session", "-t", f"={self.project.prefix}n0:")
        return True


class Supervisor(Tool):
    """supervisord, as its manual shows it."""

    name = "supervisor"

    def start(self) -> None:
        tools = environment("supervisor") / "bin"
        conf = self.home / "supervisord.conf"
        sock = self.home / "s.sock"
        conf.write_text(
            f"[unix_http_server]\nfile={sock}\n[supervisord]\nnodaemon=true\nlogfile={self.home}/log\n"
            f"pidfile={self.home}/pid\n[rpcinterface:supervisor]\n"
            "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n"
            f"[supervisorctl]\nserverurl=unix://{sock}\n"
            f"[program:agent]\ncommand=sh {AGENT} agent\nautorestart=true\n"
        )
        self.process = _spawn([str(tools / "supervisord"), "-c", str(conf)], self.env)
        self.log = self.home / "log"

    def notices(self) -> bool:
        return _grew(self, self.log, "exited: agent")


class Circus(Tool):
    """circusd, as its manual shows it."""

    name = "circus"

    def start(self) -> None:
        tools = environment("circus") / "bin"
        conf = self.home / "circus.ini"
        conf.write_text(
            f"[circus]\nendpoint = ipc://{self.home}/e\npubsub_endpoint = ipc://{self.home}/p\n"
            f"[watcher:agent]\ncmd = sh {AGENT} agent\ncopy_env = true\n"
        )
        self.log = self.home / "log"
        words = [str(tools / "circusd"), "--log-output", str(self.log), "--log-level", "debug", str(conf)]
        self.process = _spawn(words, self.env)

    def notices(self) -> bool:
        return _grew(self, self.log, "reaping process")


class Orchestrator(Tool):
    """cli-agent-orchestrator with the stand-in CLI its own tests use: a prompt in a tmux pane."""

    name = "cli-agent-orchestrator"
    signals = False

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        tools = environment("cli-agent-orchestrator") / "bin"
        programs = self.home / "bin"
        programs.mkdir()
        mock = programs / "mock_cli"
        mock.write_text(
            f'#!/bin/sh\nprintf "%s %s\\n" $$ "$(date +%s.%N)" >>"{self.starts}/cao"\n'
            "while :; do printf '❯ '; IFS= read -r line || exit 0; printf '> MOCK: %s\\n' \"$line\"; done\n"
        )
        mock.chmod(0o755)
        for name in (".profile", ".bashrc"):  # a login shell begins with a PATH of its own
            (self.home / name).write_text(f'PATH="{programs}:$PATH"\n')
        self.env |= {"PATH": f"{programs}:{tools}:{os.environ['PATH']}", "SHELL": "/bin/sh"}
        self.env["CAO_API_PORT"] = self.port
        self.process = _spawn([str(tools / "cao-server")], self.env)
        _wait(lambda: self._get("/health") is not None, 60, "cao-server does not answer")
        made = self._get("/sessions?provider=mock_cli&agent_profile=developer", post=True)
        if not made:
            raise Missing("its server made no session with the stand-in CLI")
        self.terminal, self.session = made["id"], made.get("session_name", "")
        self.fine = self._status()

    def _get(self, path: str, *, post: bool = False) -> dict[str, str] | None:
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, method="POST" if post else "GET")
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, str] = json.load(answer)
            return found
        return None

    def _status(self) -> str:
        found = self._get(f"/terminals/{self.terminal}")
        return str(found.get("status")) if found else "gone"

    def stop(self) -> None:
        super().stop()
        subprocess.run(["tmux", "kill-server"], env=self.env, capture_output=True, check=False)

    def mark(self) -> None:
        self.fine = self._status()

    def notices(self) -> bool:
        return self._status() != self.fine

    def kill_session(self) -> bool:
        words = ["tmux", "kill-session", "-t", f"={self.session}:"]
        subprocess.run(words, env=self.env, capture_output=True, check=False)
        return True


class Puppetmaster(Tool):
    """puppetmaster-ai."""

    name = "puppetmaster-ai"

    def start(self) -> None:
        environment("puppetmaster-ai")
        raise Missing("installs; its workers end with their task, so there is no agent to keep alive")


TOOLS: tuple[type[Tool], ...] = (Ours, Supervisor, Circus, Orchestrator, Puppetmaster)


def _spawn(words: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _grew(tool: Tool, log: Path, words: str) -> bool:
    return log.exists() and log.read_text(errors="replace").count(words) > getattr(tool, "counted", 0)


def _wait(condition: object, seconds: float, why: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise Missing(why)
        time.sleep(0.05)


@dataclass
class Outcome:
    """Seconds, or None when it was not within the bound, or -1 where the fault does not exist."""

    noticed: float | None = None
    healed: float | None = None


def strike(tool: Tool, fault: str, bound: float) -> Outcome:
    """One fault on an agent that has run for a while."""
    _wait(tool.pid, 30, "its agent does not run")
    tool.rouse()
    if hasattr(tool, "mark"):
        tool.mark()
    elif hasattr(tool, "log") and tool.log.exists():
        words = "exited: agent" if isinstance(tool, Supervisor) else "reaping process"
        tool.counted = tool.log.read_text(errors="replace").count(words)  # type: ignore[attr-defined]
    pid, began = tool.pid(), time.monotonic()
    if fault == "agent killed":
        os.kill(pid, signal.SIGKILL)
    elif fault == "agent frozen":
        os.kill(pid, signal.SIGSTOP)
    elif not tool.kill_session():
        return Outcome(-1, -1)
    outcome = Outcome()
    while time.monotonic() - began < bound and (outcome.noticed is None or outcome.healed is None):
        if outcome.noticed is None and tool.notices():
            outcome.noticed = time.monotonic() - began
        if outcome.healed is None and tool.pid() not in {0, pid}:
            outcome.healed = time.monotonic() - began
        time.sleep(POLL_S)
    if fault == "agent frozen" and _lives(pid):
        os.kill(pid, signal.SIGCONT)
    return outcome


def measure(bound: float, rounds: int) -> Iterator[tuple[str, str, Outcome | str]]:
    """(tool, fault, outcome) for each; an outcome that is text says why there is none."""
    for kind in TOOLS:
        name = f"{kind.name} {PINNED[kind.name]}" if kind.name in PINNED else kind.name
        for fault in FAULTS:
            found = [afresh(kind, fault, bound) for _ in range(rounds if fault == FAULTS[0] else 1)]
            words = next((one for one in found if isinstance(one, str)), None)
            if words is not None:
                yield name, "" if fault == FAULTS[0] else fault, words
                break
            times = [one for one in found if isinstance(one, Outcome)]
            yield name, fault, Outcome(_middle(t.noticed for t in times), _middle(t.healed for t in times))


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; what was not within the bound is longest."""
    ordered = sorted(values, key=lambda v: float("inf") if v is None else v)
    return ordered[len(ordered) // 2]


def afresh(kind: type[Tool], fault: str, bound: float) -> Outcome | str:
    """One fault under a tool that was just started: no earlier fault is held against it, or left unmended."""
    with tempfile.TemporaryDirectory(prefix="aotest-peer-") as home:
        tool = kind(Path(home))
        try:
            tool.start()
            return strike(tool, fault, bound)
        except (Missing, OSError) as why:
            return str(why)
        finally:
            tool.stop()


def seconds(value: float | None, bound: float) -> str:
    """For a table."""
    if value is None:
        return f"not within {bound:g} s"
    return "no session" if value < 0 else f"{value:.2f} s"


def figures(bound: float, rounds: int = 1) -> tuple[list[Figure], list[dict[str, str]]]:
    """Ours as figures, everybody as rows of a table."""
    found, rows = [], []
    for name, fault, outcome in measure(bound, rounds):
        if isinstance(outcome, str):
            rows.append({"tool": name, "fault": fault, "noticed": outcome, "healed": ""})
            continue
        noticed, healed = seconds(outcome.noticed, bound), seconds(outcome.healed, bound)
        rows.append({"tool": name, "fault": fault, "noticed": noticed, "healed": healed})
        if name == Ours.name:
            met = outcome.healed is not None
            value = outcome.healed if outcome.healed is not None else bound
            goal = f"within {bound:g} s"
            found.append(Figure("faults", f"{fault}: healed", value, "s", goal=goal, met=met))
    return found, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bound", type=float, default=20.0)
    args = parser.parse_args()
    for row in figures(args.bound)[1]:
        print(f"{row['tool']:<30}{row['fault']:<18}{row['noticed']:<24}{row['healed']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
