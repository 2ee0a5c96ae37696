"""A fleet, strangers beside it, and everything that is needed to hurt it and to tell about it afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.chaos.checker import Story, unfold
from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project

HERE = Path(__file__).parent
AGENTS = ("a", "ab", "abc", "tui")  # names that are each other's beginnings
NAMES = (*AGENTS, "plain", "clock")
SCRIPT = 'boot = 0.1\nsteps = [{ say = "Ready." }]\n'


def declaration(script: str) -> str:
    """Scripted agents of both kinds, one that only sleeps, and a service."""
    text = '[backend.scripted]\nstall_idle = 60\n[backend."scripted-tui"]\nstall_idle = 60\n'
    for name in AGENTS:
        backend = "scripted-tui" if name == "tui" else "scripted"
        text += (
            f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "{backend}"\nprompt = "Begin."\n'
            f'watch = "heal"\nenv = {{ AO_SCRIPT = "{script}" }}\n'
        )
    text += '[[agent]]\nname = "plain"\nkind = "persistent"\nbackend = "demo"\nwatch = "heal"\n'
    return text + '[[service]]\nname = "clock"\ncommand = "while :; do date; sleep 1; done"\n'


class Arena:
    """The place where it happens. `deeds` and `verbs` are written as they happen."""

    def __init__(self, root: Path) -> None:
        self._sockets_before = os.environ.get("TMUX_TMPDIR")
        os.environ["TMUX_TMPDIR"] = str(root / "sockets")
        (root / "sockets").mkdir(parents=True)
        self.root = root
        self.project = Project(root / "project", "")
        self.project.write(declaration(self.project.script("all", SCRIPT)))
        self.good = self.project.config.read_bytes()
        self.socket = self._socket(self.project.socket)
        self.canary = self._socket("default")  # as if it were the user's own
        self.strangers = (f"{self.project.prefix}a-x", self.project.prefix.rstrip("-"))
        self._ear = ("sh", str(HERE / "ear.sh"), str(root / "guests"))
        self.deeds: list[dict[str, Any]] = []
        self.verbs: list[dict[str, Any]] = []
        self._pool = ThreadPoolExecutor(6)
        self._running: list[Future[int]] = []
        self._write = threading.Lock()
        self._observer: subprocess.Popen[bytes] | None = None

    def _socket(self, name: str) -> str:
        return str(self.root / "sockets" / f"tmux-{os.getuid()}" / name)

    # --- strangers ----------------------------------------------------------------------------------

    def guests(self) -> None:
        """The user's own server, with sessions whose names nearly are ours."""
        for name in (f"{self.project.prefix}a2", "work"):
            self.tmux("new-session", "-d", "-s", name, *self._ear, socket="default")

    def decoys(self) -> None:
        """Strangers on the fleet's server; a server that was killed took them along."""
        for name in self.strangers:
            self.tmux("new-session", "-d", "-s", name, *self._ear)

    def tmux(self, *words: str, socket: str = "") -> str:
        """As a user would; a server that does not answer is not waited for."""
        argv = ["tmux", "-L", socket or self.project.socket, *words]
        try:
            env = self.project.env()
            done = subprocess.run(argv, capture_output=True, text=True, timeout=3, env=env, check=False)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.strip()

    # --- doing --------------------------------------------------------------------------------------

    def deed(self, kind: str, agent: str = "", **facts: Any) -> None:
        """Put on record what is about to be done."""
        with self._write:
            self.deeds.append({"t": time.time(), "kind": kind, "agent": agent, **facts})

    def verb(
        self, *words: str, names: tuple[str, ...] = (), text: str = "", timeout: float = 60.0
    ) -> Future[int]:
        """Run a verb beside everything else; its exit code and its times are on record."""
        future = self._pool.submit(self._verb, words, names, text, timeout)
        self._running = [f for f in self._running if not f.done()] + [future]
        return future

    def _verb(self, words: tuple[str, ...], names: tuple[str, ...], text: str, timeout: float) -> int:
        argv = [sys.executable, str(ENGINE / "agents.py"), *words, "--config", str(self.project.config)]
        told = {"verb": words[0], "names": list(names), "text": text, "code": None}
        told |= {"began": time.time(), "ended": 1e15}
        with self._write:
            self.verbs.append(told)
        out, env = subprocess.PIPE, self.project.env()
        with subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=self.root) as process:
            try:
                said = process.communicate(timeout=timeout)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[0].decode(errors="replace")
        told |= {"ended": time.time(), "code": process.returncode, "said": said[-400:]}
        if "Traceback" in said:
            told["traceback"] = said
        return process.returncode

    def later(self, seconds: float, do: Any) -> None:
        """Undo something after a while."""
        timer = threading.Timer(seconds, do)
        timer.daemon = True
        timer.start()

    def signal(self, pid: int, signum: int) -> bool:
        """To a process that may be gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid > 1:
                os.kill(pid, signum)
                return True
        return False

    def pane_pid(self, name: str) -> int:
        found = self.tmux("list-panes", "-t", f"={self.project.prefix}{name}:", "-F", "#{pane_pid}").split()
        return int(found[0]) if found else 0

    def server_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}") or 0)

    def dog_pid(self) -> int:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return int(json.loads((self.project.log_dir / "state" / "watchdog.lock").read_text())["pid"])
        return 0

    # --- watching -----------------------------------------------------------------------------------

    def watch(self) -> None:
        """Start the observer."""
        words = [self.socket, self.canary, self.project.prefix, os.path.realpath(self.project.config)]
        self._observer = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HERE / "observer.py"), *words, str(self.root / "history.jsonl")],
            stdin=subprocess.PIPE,
            env=self.project.env(),
        )

    def stop_watching(self) -> None:
        """End the observer, in order."""
        if self._observer is not None and self._observer.stdin is not None:
            self._observer.stdin.close()
            self._observer.wait(patience(30))

    def wait_for_verbs(self) -> None:
        """All of them, each within its own time."""
        for future in self._running:
            future.result(patience(120))

    # --- telling ------------------------------------------------------------------------------------

    def story(self, end: dict[str, Any]) -> Story:
        """Everything, for the checker."""
        project = self.project
        ears = {n: (self.root / f"ear-{n}") for n in AGENTS}
        return Story(
            prefix=project.prefix,
            names=NAMES,
            strangers=self.strangers,
            history=unfold(_lines(self.root / "history.jsonl")),
            deeds=self.deeds,
            verbs=self.verbs,
            events=project.events(),
            received={n: project.received(n) for n in AGENTS},
            ears={n: p.read_text() for n, p in ears.items() if p.exists()},
            guests=(self.root / "guests").read_text() if (self.root / "guests").exists() else "",
            open_modes=list(self._open_modes()),
            end=end,
        )

    def _open_modes(self) -> Any:
        for path in [self.project.log_dir, *self.project.log_dir.rglob("*")]:
            if "scripted" in path.parts or path.is_socket() or not path.exists():
                continue
            if path.stat().st_mode & 0o077:
                yield f"{path.relative_to(self.root)} has mode {path.stat().st_mode & 0o777:o}"

    def left(self) -> list[str]:
        """Who is still there though everything was taken down."""
        here = self.tmux("list-sessions", "-F", "#{session_name}").split()
        return [*(s for s in here if s in self._ours()), *self.project._carried()]

    def _ours(self) -> set[str]:
        return {f"{self.project.prefix}{n}" for n in (*NAMES, "watchdog")}

    def tear_down(self) -> None:
        """Nothing outlives the arena."""
        for name in ("default", self.project.socket):
            pid = self.tmux("display-message", "-p", "#{pid}", socket=name)
            if pid:
                self.signal(int(pid), signal.SIGCONT)
        with contextlib.suppress(OSError):
            self.project.tear_down()
        self.tmux("kill-server", socket="default")
        self._pool.shutdown(cancel_futures=True)
        if self._sockets_before is None:
            del os.environ["TMUX_TMPDIR"]
        else:
            os.environ["TMUX_TMPDIR"] = self._sockets_before


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return [r for r in rows if isinstance(r, dict)]
