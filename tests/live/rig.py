"""The real CLIs in real panes, against the loopback model server, with a home of their own.

Nothing of the user's is read or written: each CLI gets a temporary HOME with the settings that make it come
up unattended, an environment made from nothing, and panes on a private tmux socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping

from tests.deadlines import patience

Json = dict[str, object]

# The releases the profiles are proved against.
PINNED = {
    "claude": ("@anthropic-ai/claude-code", "2.1.325"),
    "opencode": ("opencode-ai", "1.18.33"),
    "codex": ("@openai/codex", "0.166.0"),
}
KEY = "dummy-key-0123456789abcdefghij"


def cache_dir() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("AO_LIVE_CACHE") or os.path.join(base, "agent-fleet-live")


def installed(cli: str) -> str:
    """The pinned binary, installed on first use; a sentence starting with "no " says why there is none."""
    package, version = PINNED[cli]
    given = os.environ.get(f"{cli.upper()}_BIN")
    if given:
        return given
    prefix = os.path.join(cache_dir(), f"{cli}-{version}")
    binary = os.path.join(prefix, "node_modules", ".bin", cli)
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        return binary if os.path.exists(binary) else "no npm or node on this machine"
    os.makedirs(cache_dir(), exist_ok=True)
    with open(f"{prefix}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if os.path.exists(os.path.join(prefix, "whole")):
            return binary
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", prefix, f"{package}@{version}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience(900), check=False)
        if done.returncode or not os.path.exists(binary):
            shutil.rmtree(prefix, ignore_errors=True)
            return f"no {package}@{version}: {(done.stderr.strip().splitlines() or ['npm failed'])[-1]}"
        with open(os.path.join(prefix, "whole"), "w", encoding="utf-8") as mark:
            mark.write(version)
    return binary


class Home:
    """A temporary HOME in which all three CLIs start without asking anything."""

    def __init__(self, root: str, url: str) -> None:
        self.root, self.url = root, url
        self.work = os.path.join(root, "work")
        os.makedirs(self.work, exist_ok=True)

    def write(self, path: str, text: str) -> None:
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def prepare(self, *directories: str) -> None:
        """Seed the settings of the three CLIs for work in these directories."""
        trusted = {path: {"hasTrustDialogAccepted": True} for path in directories or (self.work,)}
        answers = {"approved": [KEY[-20:]], "rejected": []}
        self.write(
            ".claude.json",
            json.dumps(
                {"hasCompletedOnboarding": True, "customApiKeyResponses": answers, "projects": trusted}
            ),
        )
        self.write(".claude/settings.json", json.dumps({"skipDangerousModePermissionPrompt": True}))
        model = {"name": "Loop Model", "limit": {"context": 200000, "output": 8192}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Loop",
            "options": {"baseURL": f"{self.url}/v1", "apiKey": "dummy"},
            "models": {"loop-model": model},
        }
        opencode = {"autoupdate": False, "share": "disabled", "model": "loop/loop-model"}
        opencode |= {"small_model": "loop/loop-model", "provider": {"loop": provider}}
        self.write(".config/opencode/opencode.json", json.dumps(opencode))
        projects = "".join(f'[projects."{path}"]\ntrust_level = "trusted"\n' for path in trusted)
        self.write(
            ".codex/config.toml",
            'model = "loop-model"\nmodel_provider = "loop"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.loop]\nname = "loop"\nbase_url = "{self.url}/v1"\nwire_api = "responses"\n'
            f'env_key = "LOOP_KEY"\n{projects}',
        )

    def close(self) -> None:
        """End what outlives its pane. Codex leaves daemons behind; whoever has this HOME is ours."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + patience(3.0)
            while (left := self.inhabitants()) and time.monotonic() < end:
                for pid in left:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signum)
                time.sleep(0.2)

    def inhabitants(self) -> list[int]:
        """Processes that live in this home."""
        mark = f"HOME={self.root}".encode()
        found = []
        for pid in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(pid))
        return found

    def environment(self, *, subscription: bool = False) -> dict[str, str]:
        """Everything the CLIs need and nothing else; with a made-up login instead of a key if asked."""
        login = (
            {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"} if subscription else {"ANTHROPIC_API_KEY": KEY}
        )
        return {
            "PATH": os.environ["PATH"],
            "HOME": self.root,
            "TERM": "tmux-256color",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": self.url,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "LOOP_KEY": "dummy",
            **login,
        }


class Panes:
    """One private tmux server; panes are sessions of it."""

    def __init__(self, socket: str = "") -> None:
        self.socket = socket or f"aotest-live-{uuid.uuid4().hex[:8]}"

    def tmux(self, *words: str, text: str = "") -> str:
        env = {k: v for k, v in os.environ.items() if k not in {"TMUX", "TMUX_PANE"}}
        command = ["tmux", "-L", self.socket, "-f", "/dev/null", *words]
        done = subprocess.run(command, env=env, input=text, capture_output=True, text=True, check=False)
        return done.stdout

    def start(
        self, name: str, argv: list[str], env: Mapping[str, str], cwd: str, size: tuple[int, int] = (200, 50)
    ) -> None:
        words = ["env", "-i", *(f"{k}={v}" for k, v in env.items()), *argv]
        width, height = map(str, size)
        self.tmux("new-session", "-d", "-s", name, "-x", width, "-y", height, "-c", cwd, *words,
                  ";", "set-option", "-t", f"={name}:", "remain-on-exit", "on")  # fmt: skip

    def screen(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-t", f"={name}:")

    def paste(self, name: str, text: str) -> None:
        buffer = uuid.uuid4().hex
        self.tmux("load-buffer", "-b", buffer, "-", text=text)
        self.tmux("paste-buffer", "-d", "-p", "-b", buffer, "-t", f"={name}:")

    def press(self, name: str, *keys: str) -> None:
        self.tmux("send-keys", "-t", f"={name}:", *keys)

    def say(self, name: str, text: str, gap: float = 0.4) -> None:
        self.paste(name, text)
        time.sleep(gap)  # a program that gets text and Enter in one read takes the Enter for a newline
        self.press(name, "Enter")

    def until(
        self, name: str, true: Callable[[str], object], timeout: float = 30.0, poll: float = 0.2
    ) -> str:
        """The first screen for which this holds; the last one seen, in the error, when none did."""
        end = time.monotonic() + patience(timeout)
        while True:
            screen = self.screen(name)
            if true(screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"{name}: not seen within {timeout:.0f} s; the screen was:\n{screen}")
            time.sleep(poll)

    def close(self) -> None:
        self.tmux("kill-server")
