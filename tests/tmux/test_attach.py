"""`attach` hands a person's terminal over to the right session, from outside and from inside another tmux."""

from __future__ import annotations

import os
import pty
import secrets
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.tmux.conftest import until
from tests.tmux.project import ENGINE, Project

pytestmark = pytest.mark.tmux


@pytest.fixture
def project(tmp_path):
    made = Project(
        tmp_path, '[[agent]]\nname = "builder"\nkind = "persistent"\nprompt = "go"\nbackend = "demo"\n'
    )
    yield made
    made.tear_down()


@contextmanager
def person(project, *words, **environ):
    """Somebody at a terminal who runs `agents.py attach`."""
    argv = [sys.executable, str(ENGINE / "agents.py"), "attach", *words, "--config", str(project.config)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, project.env({"TERM": "xterm", **environ}))
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def clients(project):
    return project.tmux("list-clients", "-F", "#{client_pid} #{session_name} #{client_readonly}").splitlines()


def test_the_terminal_becomes_a_client_of_exactly_that_session(project):
    project.agents("up", "builder", "--no-wait")
    project.tmux(
        "new-session", "-d", "-s", f"{project.prefix}builder2", "sleep", "1000"
    )  # a longer name nearby
    with person(project, "builder") as pid:
        until(lambda: f"{pid} {project.prefix}builder 0" in clients(project))
    with person(project, "-r", "builder") as pid:
        until(lambda: f"{pid} {project.prefix}builder 1" in clients(project))
    project.agents("down", "builder")
    said = project.agents("attach", "builder", code=1)
    assert f"has no session {project.prefix}builder now" in said


def test_inside_another_tmux_it_nests_and_inside_the_same_one_it_switches(project, tmp_path):
    project.agents("up", "builder", "--no-wait")
    outer = f"aotest-{secrets.token_hex(4)}"
    env = project.env()
    try:
        subprocess.run(
            ["tmux", "-L", outer, "-f", "/dev/null", "new-session", "-d", "-s", "work", "sleep", "1000"],
            env=env,
            check=True,
        )
        path = subprocess.run(
            ["tmux", "-L", outer, "display-message", "-p", "#{socket_path}"],
            env=env, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        with person(project, "builder", TMUX=f"{path},1,0") as pid:
            until(lambda: f"{pid} {project.prefix}builder 0" in clients(project))
    finally:
        subprocess.run(["tmux", "-L", outer, "kill-server"], env=env, check=True)
    ours = project.tmux("display-message", "-p", "#{socket_path}").strip()
    done = project.agents("attach", "--print", "builder", env={"TMUX": f"{ours},1,0"})
    assert done == f"tmux -L {project.socket} switch-client -t ={project.prefix}builder:\n"
