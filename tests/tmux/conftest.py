"""A private tmux server a test, and the promise that nothing of it outlives the test.

Every process these tests start carries a run id with the test's own tag in its environment; the reaper ends
exactly those, and the leak check fails the test that left a server behind.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fleet.core.seen import PaneView
from fleet.host import procfs
from fleet.host.clock import RealClock
from fleet.host.ending import stop_all
from fleet.host.processes import ProcTable
from fleet.host.tmux.client import TmuxServer, resolve_socket
from fleet.host.tmux.control import ControlTmux
from fleet.ports import Launch
from tests.deadlines import patience
from tests.outcomes import DONE
from tests.tmux.project import Project


def until(condition: Callable[[], object], seconds: float = 15.0) -> object:
    """Wait for a condition; what it returned when it held."""
    seconds = patience(seconds)
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {seconds} s: {condition}")
        time.sleep(0.01)
    return result


@dataclass
class Floor:
    """One private server with its directories; `start` makes a session that runs some shell."""

    server: TmuxServer
    log_dir: str
    tag: str
    socket: str
    runs: list[str] = field(default_factory=list)

    def launch(self, session: str, body: str, env: Mapping[str, str] | None = None) -> Launch:
        state = os.path.join(self.log_dir, "state")
        os.makedirs(state, mode=0o700, exist_ok=True)
        script = os.path.join(state, f"launch-{session}.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(body + "\n")
        run = f"{self.tag}-{len(self.runs)}"
        self.runs.append(run)
        base = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        return Launch(session, script, run, f"{session}.log", {**base, **(env or {})})

    def start(
        self, session: str, body: str = "exec sleep 1000", env: Mapping[str, str] | None = None
    ) -> PaneView:
        assert self.server.create([self.launch(session, body, env)]) == {session: DONE}
        return self.view(session)

    def view(self, session: str) -> PaneView:
        return next(pane for pane in self.server.listing().panes if pane.ref.session == session)

    def raw(self, *words: str) -> str:
        """A plain tmux command on this server, for what a user or a stranger would do."""
        argv = ["tmux", "-S", self.socket, "-f", "/dev/null", "-u", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patience(10)).stdout

    def screen(self, session: str) -> str:
        return self.server.capture([self.view(session).ref]).get(session, "")


@pytest.fixture(autouse=True)
def outside_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("TMUX_PANE", raising=False)


@pytest.fixture(scope="session", autouse=True)
def canary() -> Iterator[str]:
    """A stranger on this run's default server: whoever forgets to name a socket, or to leave TMUX, meets it.

    Only where the run has a socket directory of its own: the machine's default server is a person's.
    """
    name = f"canary-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
    if "AOTEST_RUN" not in os.environ:
        yield name
        return
    foreign = {key: value for key, value in os.environ.items() if key not in {"TMUX", "TMUX_PANE"}}

    def tmux(*words: str) -> str:
        argv = ["tmux", "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=foreign).stdout

    tmux("new-session", "-d", "-s", name, "sleep", "3600")
    born = tmux("list-sessions", "-F", "#{session_name} #{pid} #{session_created} #{session_windows}")
    yield name
    now = tmux("list-sessions", "-F", "#{session_name} #{pid} #{session_created} #{session_windows}")
    tmux("kill-session", "-t", f"={name}:")
    mine = [row for row in born.splitlines() if row.startswith(f"{name} ")]
    assert mine, "the canary could not be made"
    assert mine[0] in now.splitlines(), f"a test touched the default tmux server: {now!r}"


def make_floor(root: str, project: str = "p1") -> Floor:
    tag = f"aotest{secrets.token_hex(4)}"
    name = f"aotest-{tag[6:]}"
    log_dir = os.path.join(root, "fleet")
    server = TmuxServer(name, project, log_dir, timeout=20.0)
    return Floor(server, log_dir, tag, resolve_socket(name))


def tear_down(floor: Floor) -> None:
    floor.raw("kill-server")
    table = ProcTable()
    tagged = {run for run in map(procfs.run_of, procfs.table()) if run.startswith(floor.tag)}
    survivors = stop_all(table, RealClock(), [(0, run) for run in {*floor.runs, *tagged}], grace=0.0)
    if os.path.exists(floor.socket):
        os.unlink(floor.socket)
    assert not survivors, f"the test left processes behind: {survivors}"


@pytest.fixture
def floor(tmp_path) -> Iterator[Floor]:
    made = make_floor(str(tmp_path))
    yield made
    tear_down(made)


@pytest.fixture(params=["process", "control"])
def speaker(request, floor) -> Iterator[TmuxServer | ControlTmux]:
    """Both ways of speaking to the same server: every promise holds for both."""
    if request.param == "process":
        yield floor.server
        return
    control = ControlTmux(floor.server)
    yield control
    if floor.raw("list-sessions"):
        control._retry_at = 0.0
        control.listing()
        assert control.connected, "the test ran by processes and proved nothing about the control client"
    control.close()


@pytest.fixture
def make(tmp_path) -> Iterator[Callable[..., Project]]:
    """Builds projects; nothing of them outlives the test."""
    made: list[Project] = []

    def build(text: str = "", name: str = "project", **more: Any) -> Project:
        made.append(Project(tmp_path / name, text, **more))
        return made[-1]

    yield build
    for project in made:
        project.tear_down()
