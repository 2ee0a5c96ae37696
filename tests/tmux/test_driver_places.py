"""Where a project lies and what its path is called changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tmux.project import ENGINE, Project, scripted, until

pytestmark = pytest.mark.tmux

HOSTILE = "it's a \"dir\" $(touch evil) #(touch evil) `touch evil`; %s {x} 'é✓"


def test_a_path_of_spaces_quotes_and_commands_is_only_a_path(make, tmp_path):
    """I42, E4: a whole life in it: up, message, heal, restart, logs, down."""
    p = make("", HOSTILE)
    p.write(scripted(p, "one", "steps = [{ write = 'made', text = 'x' }]"))
    p.agents("up")
    assert (p.root / "made").exists()
    assert p.json("send", "one", "$(touch evil) #(touch evil) `touch evil`")["ok"]
    os.kill(p.pid("one"), signal.SIGKILL)
    until(lambda: p.events("agent.ready", "one")[1:])
    assert p.json("restart", "one")["ok"]
    assert "Begin." in p.agents("logs", "one")
    assert p.json("status")["project"]["config"] == str(p.config)
    p.agents("down")
    assert not p._carried()
    assert not [*tmp_path.rglob("evil"), *ENGINE.glob("evil")]


@pytest.fixture
def vendored(tmp_path):
    """A git project with the engine below it, as a submodule has it."""
    root = tmp_path / "game"
    p = Project(root, "")
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ENGINE / "fleet", root / "engine" / "fleet", ignore=ignore)
    shutil.copy(ENGINE / "agents.py", root / "engine" / "agents.py")
    subprocess.run(["git", "init", "-q", str(root)], check=True, capture_output=True)
    yield p
    p.tear_down()


def test_the_engine_runs_as_a_submodule_from_the_projects_root_and_through_a_link(vendored):
    """R001, R011, R026, T04: no --config, any directory, one fleet."""
    p = vendored
    p.write('[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "demo"\ndir = "work"\n')
    (p.root / "work").mkdir()
    (p.root / "go").symlink_to("engine/agents.py")

    def run(*words: str, cwd=p.root) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=cwd, env=p.env(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("engine/agents.py", "up")
    assert os.readlink(f"/proc/{p.pid('a')}/cwd") == str(p.root / "work")
    dog = json.loads(run("go", "status", "--json"))["watchdog"]["pid"]
    assert str(p.root / "engine" / "agents.py") in Path(f"/proc/{dog}/cmdline").read_text()
    assert "RUNNING" in run("go", "status")
    assert "RUNNING" in run(
        "../engine/agents.py", "status", "--config", "../agents.toml", cwd=p.root / "work"
    )
    assert not (p.root / "engine" / ".ao-state").exists()
    run("go", "down")
    assert not p._carried()


def test_sessions_of_our_names_on_the_users_own_server_stop_up(make, tmp_path):
    """Somebody runs this fleet there already: named, and nothing is started."""
    p = make('[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "demo"\n')
    own = {"TMUX_TMPDIR": str(tmp_path / "sockets")}  # so that nobody's real default server is touched
    (tmp_path / "sockets").mkdir(mode=0o700)
    tmux = ["tmux", "-L", "default", "-f", "/dev/null"]
    env = p.env(own)
    subprocess.run([*tmux, "new-session", "-d", "-s", f"{p.prefix}a", "sleep 1000"], env=env, check=True)
    try:
        said = p.agents("up", code=1, env=own)
        assert f"{p.prefix}a" in said
        assert "session_prefix" in said
        assert not p.log_dir.exists()
        listed = subprocess.run([*tmux, "list-sessions"], env=env, capture_output=True, text=True, check=True)
        assert len(listed.stdout.splitlines()) == 1
    finally:
        subprocess.run([*tmux, "kill-server"], env=env, check=True)


def test_a_fleet_is_found_again_where_it_was_started_whatever_tmux_tmpdir_says_now(make, tmp_path):
    """T25: cron and systemd have another one."""
    p = make('[[agent]]\nname = "a"\nkind = "persistent"\nbackend = "demo"\n')
    first, later = tmp_path / "first", tmp_path / "later"
    for folder in (first, later):
        folder.mkdir(mode=0o700)
    p.agents("up", env={"TMUX_TMPDIR": str(first)})
    try:
        assert "RUNNING" in p.agents("status", env={"TMUX_TMPDIR": str(later)})
        assert "was running" in p.agents("up", env={"TMUX_TMPDIR": str(later)})
        socket = first / f"tmux-{os.getuid()}" / p.socket
        assert f"-S {socket}" in p.agents("attach", "a", "--print", env={"TMUX_TMPDIR": str(later)})
        assert not list(later.rglob(p.socket))
    finally:
        assert f"stopped {p.prefix}a" in p.agents("down", env={"TMUX_TMPDIR": str(later)})
    assert not p._carried()
