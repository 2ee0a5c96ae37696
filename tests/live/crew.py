"""A project with one real agent under the real watchdog, in a temporary home, on a private tmux server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from rig import Home, installed
from server import Server

from tests.deadlines import patience

ENGINE = Path(__file__).resolve().parents[2] / "agents.py"
AGENT = """
[defaults]
session_prefix = "{prefix}"
log_dir = "log"
dir = "work"

[watchdog]
signal_interval = 1
heavy_interval = 5
limit_reset_slack = 1
limit_probe_fallback = 5

{backend}

[[agent]]
name = "a"
kind = "persistent"
backend = "{cli}"
watch = "heal+stall"
resume = true
prompt = {prompt}
env_pass = ["LOOP_KEY"]
"""
WAITS = {"up": 90.0, "send": 120.0}  # seconds, on a quiet machine


class Crew:
    """One agent of that CLI. Use as a context: whatever happens, nothing is left behind."""

    def __init__(self, cli: str, root: Path, *, backend: str = "", prompt: str = "begin the work") -> None:
        self.cli, self.root = cli, root
        self.server = Server()
        self.home = Home(str(root), self.server.url)
        self.home.prepare()
        self.env = self.home.environment(subscription=True)
        paths = {os.path.dirname(installed(name)) for name in ("claude", "codex", "opencode")}
        self.env["PATH"] = os.pathsep.join([*paths, self.env["PATH"]])
        self.env |= {k: os.environ[k] for k in ("TMUX_TMPDIR", "AOTEST_RUN") if k in os.environ}
        self.env |= {"CLAUDE_CODE_MAX_RETRIES": "2", "TZ": "Europe/Berlin", "PYTHONDONTWRITEBYTECODE": "1"}
        self.prefix = f"aotest-{os.getpid() % 10000}-{cli}-"
        declared = AGENT.format(prefix=self.prefix, cli=cli, backend=backend, prompt=json.dumps(prompt))
        (root / "agents.toml").write_text(declared)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.SubprocessError):
            self.verb("down", check=False)
        self.home.close()
        self.server.__exit__()

    def verb(self, *words: str, check: bool = True, timeout: float = 180, **env: str) -> str:
        """Run a verb; its output, or an error that shows it. `up` and `send` wait as long as a test would."""
        if words[0] in WAITS and "--timeout" not in words:
            words = (*words, "--timeout", f"{patience(WAITS[words[0]]):.0f}")
        done = subprocess.run(
            [sys.executable, str(ENGINE), *words], cwd=self.root, env=self.env | env,
            capture_output=True, text=True, timeout=patience(timeout), check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    # --- looking ------------------------------------------------------------------------------------

    def agent(self) -> dict[str, Any]:
        document = json.loads(self.verb("status", "--json", check=False))
        return next(row for row in document["agents"] if row["name"] == "a")

    def detail(self) -> str:
        return str(self.agent()["detail"])

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        path = self.root / "log" / "events.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if row["type"].startswith(kind)]

    def prompts(self, text: str = "") -> list[dict[str, Any]]:
        """Turns in which the model was asked this, each once however often it was asked again for it."""
        with self.server.script.lock:
            rows = [r for r in self.server.script.log if not r["side"] and not r["tool_result"]]
        turns = {(r["user"], len(r["said"])): r for r in reversed(rows)}
        return [r for r in turns.values() if text in r["user"]]

    def raw(self) -> list[list[str]]:
        """What the user said in the longest conversation, turn by turn, to the letter."""
        with self.server.script.lock:
            rows = [r["raw"] for r in self.server.script.log if not r["side"]]
        return max(rows, key=len, default=[])

    def until(self, true: Callable[[], object], what: str, timeout: float = 90.0) -> None:
        end = time.monotonic() + patience(timeout)
        while not true():
            if time.monotonic() > end:
                told = "\n".join(f"{e['type']} {e['reason']}" for e in self.events()[-25:])
                raise AssertionError(
                    f"not within {timeout:.0f} s: {what}\n{self.detail()}\n{told}\n{self.screen()}"
                )
            time.sleep(0.3)

    def log_beats(self, count: int) -> int:
        """Wait until the watchdog has looked that often; how many looks were seen."""
        heart = self.root / "log" / "state" / "heartbeat"
        beats = {heart.stat().st_mtime_ns}
        self.until(lambda: beats.add(heart.stat().st_mtime_ns) or len(beats) > count, f"{count} looks")
        return len(beats)

    def settles(self, timeout: float = 120.0) -> None:
        self.until(lambda: self.detail() == "IDLE", "idle", timeout)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={self.prefix}a:")

    def pid(self) -> int:
        return int(self.tmux("list-panes", "-t", f"={self.prefix}a:", "-F", "#{pane_pid}").strip() or 0)

    def command(self) -> str:
        return self.tmux("list-panes", "-t", f"={self.prefix}a:", "-F", "#{pane_current_command}").strip()

    def tmux(self, *words: str) -> str:
        name = f"ao-{self.prefix.rstrip('-')}"
        command = ["tmux", "-L", name, *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False).stdout
