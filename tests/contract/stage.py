"""Two stages for one suite: a simulated tmux and a real one on a socket of its own.

A stage gives the Tmux port under test and the few things people and fate do to a server. Programs are
named by the shell text of their launch script; the simulated stage knows those few texts by heart.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Protocol

from fleet.core.seen import PaneView
from fleet.ports import Launch, Tmux
from tests.deadlines import patience
from tests.sim.clock import SimClock
from tests.sim.processes import ProcessTable
from tests.sim.tmux import Program, SimSession, SimTmux, TmuxMachine

PROJECT = "0123456789abcdef"
SLEEP = "exec sleep 1000\n"
CAT = "exec cat\n"
EXIT = "exit 3\n"


def tmuxes() -> dict[str, str]:
    """Every tmux this run can find, by its version: those that AO_TMUX lists, and the one on PATH."""
    listed = [path for path in os.environ.get("AO_TMUX", "").split(os.pathsep) if path]
    found = {}
    for path in filter(None, (*listed, shutil.which("tmux"))):
        asked = [path, "-V"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=patience(20), check=True)
        found.setdefault(said.stdout.split()[-1], os.path.abspath(path))
    return found


def on_path(path: str, folder: str) -> str:
    """A PATH on which `tmux` is that one."""
    os.symlink(path, os.path.join(folder, "tmux"))
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


class Stage(Protocol):
    """What a test may use."""

    tmux: Tmux

    def launch(self, session: str, program: str, run: str = "") -> Launch: ...

    def until(self, holds: Callable[[], bool]) -> None: ...

    def kill(self, pane: PaneView, signum: int, *, after: float = 0.0) -> None: ...

    def user_session(self, name: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def copy_mode(self, name: str) -> None: ...

    def kill_server(self) -> None: ...

    def hang(self) -> None: ...

    def unhang(self) -> None: ...

    def user_sessions(self) -> set[str]: ...


class _Echo:
    """cat in a terminal: what is typed is shown, and shown again when the line is complete."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line = ""

    def screen(self) -> str:
        return "\n".join([*self.lines, self.line]) + "\n"

    def cursor(self) -> tuple[int, int]:
        return (len(self.line), len(self.lines))

    def activity(self) -> float:
        return 0.0

    def paste(self, text: str) -> None:
        self.line += text

    def key(self, name: str) -> None:
        if name == "Enter":
            self.lines += [self.line, self.line]
            self.line = ""


class SimStage:
    """The simulated server, as the watchdog's simulation uses it."""

    def __init__(self) -> None:
        self.clock = SimClock(1_700_000_000.0)
        rng = Random(7)
        self.table = ProcessTable(self.clock, rng)
        self.machine = TmuxMachine(self.clock, rng, self.table, self._program, lambda _name: None)
        self.tmux: Tmux = SimTmux(self.machine, PROJECT, lambda _site: None, lambda *_act: None)
        self._texts: dict[str, str] = {}

    def _program(self, session: SimSession, launch: Launch) -> Program:
        text = self._texts[launch.script]
        if text == EXIT:
            self.clock.after(0.01, lambda: self.table.end(session.proc, code=3))
        return _Echo()

    def launch(self, session: str, program: str, run: str = "") -> Launch:
        path = f"/state/launch-{session}.sh"
        self._texts[path] = program
        return Launch(session, path, run or f"run-{session}", f"{session}.log", {})

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(100):
            if holds():
                return
            self.clock.advance_to(self.clock.t + 0.1)
        raise AssertionError("it never came true")

    def kill(self, pane: PaneView, signum: int, *, after: float = 0.0) -> None:
        """Simulated time stands still between two calls: a little later is now."""
        self.table.kill(self.table.by_pid[pane.ref.pid], signum)

    def user_session(self, name: str) -> None:
        self.machine.open(name, "bash")

    def rename(self, old: str, new: str) -> None:
        server = self.machine.server
        assert server is not None
        self.machine.rename(server.sessions[old], new)

    def copy_mode(self, name: str) -> None:
        server = self.machine.server
        assert server is not None
        server.sessions[name].in_mode = True

    def kill_server(self) -> None:
        self.machine.kill_server()
        self.clock.advance_to(self.clock.t + 2)

    def hang(self) -> None:
        self.machine.hang()

    def unhang(self) -> None:
        self.machine.unhang()

    def user_sessions(self) -> set[str]:
        return set(self.machine.server.sessions) if self.machine.server else set()


class RealStage:
    """A real server on a socket of its own; `make` gives the port over it."""

    def __init__(self, root: str, socket: str, make: Callable[[str, str, str], Tmux]) -> None:
        self._socket = socket
        self._stopped = 0
        self._state = os.path.join(root, "log", "state")
        os.makedirs(self._state)
        self.tmux = make(socket, root, PROJECT)

    def launch(self, session: str, program: str, run: str = "") -> Launch:
        path = os.path.join(self._state, f"launch-{session}.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        os.chmod(path, 0o600)
        return Launch(session, path, run or f"run-{session}", f"{session}.log", {"PATH": os.environ["PATH"]})

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + patience(20)
        while not holds():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)

    def kill(self, pane: PaneView, signum: int, *, after: float = 0.0) -> None:
        if after:
            threading.Timer(after, os.kill, [pane.ref.pid, signum]).start()
        else:
            os.kill(pane.ref.pid, signum)

    def user_session(self, name: str) -> None:
        self._run("new-session", "-d", "-s", name, "sleep", "1000")

    def rename(self, old: str, new: str) -> None:
        self._run("rename-session", "-t", f"={old}:", new)

    def copy_mode(self, name: str) -> None:
        self._run("copy-mode", "-t", f"={name}:")

    def kill_server(self) -> None:
        pid = int(self._run("display-message", "-p", "#{pid}"))
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: not os.path.exists(f"/proc/{pid}"))

    def hang(self) -> None:
        self._stopped = int(self._run("display-message", "-p", "#{pid}"))
        os.kill(self._stopped, signal.SIGSTOP)

    def unhang(self) -> None:
        os.kill(self._stopped, signal.SIGCONT)
        self._stopped = 0

    def user_sessions(self) -> set[str]:
        return set(self._run("list-sessions", "-F", "#{session_name}").split())

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self._stopped:
            self.unhang()
        self.tmux.close()
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE")}
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=patience(20),
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.strip()
