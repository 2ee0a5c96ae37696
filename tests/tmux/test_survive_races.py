"""`down` against a watchdog that is just bringing an agent back: whatever comes first, nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, gated, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

POINTS = ("start.begun", "start.remove", "start.create", "start.created")
DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'
HEAD_START_S = 0.5  # for the verb to run into the watchdog; if it does not, the test proves less, not wrongly


def down(p: Project, *names: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ENGINE / "agents.py"), "down", *names, "--config", str(p.config)]
    return subprocess.Popen(command, env=p.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def healing(p: Project, name: str, gate: Path) -> None:
    """The watchdog has seen it die and stands in the middle of starting it."""
    until(lambda: p.events("agent.ready", name))
    os.kill(p.pid(name), signal.SIGKILL)
    until(lambda: Path(f"{gate}.reached").exists())


def looks(p: Project, seconds: float) -> None:
    beat = p.log_dir / "state" / "heartbeat"
    then = beat.stat().st_mtime
    until(lambda: beat.stat().st_mtime > then + seconds)


@pytest.mark.long
def test_down_of_one_wins_at_every_point_of_its_heal(make):
    """I25: the watchdog lives on and does not bring it back."""
    names = {point: f"a{n}" for n, point in enumerate(POINTS)}
    p = make("".join(DEMO.format(name) for name in names.values()))
    p.agents("up", *names.values())
    for point, name in names.items():
        with gated(p, point) as gate:
            healing(p, name, gate)
            verb = down(p, name)
            time.sleep(HEAD_START_S)
            gate.touch()
            said = verb.communicate(timeout=patience(60))[0]
            assert verb.returncode == 0, (point, said)
            assert not p.pid(name), point
            looks(p, 1.5)
            assert not p.pid(name), point
            assert p.prefix + name not in p.tmux("list-sessions", "-F", "#{session_name}").split(), point


def test_down_of_all_wins_in_the_middle_of_a_heal(make):
    """I25, T34: nothing with our stamp is left, watchdog included."""
    p = make(DEMO.format("a") + DEMO.format("b"))
    for point in POINTS[2:]:
        p.agents("up", "a", "b")
        with gated(p, point) as gate:
            until(lambda: {e["agent"] for e in p.events("agent.ready")} == {"a", "b"})
            os.kill(p.pid("a"), signal.SIGKILL)
            until(lambda g=gate: Path(f"{g}.reached").exists())
            verb = down(p)
            time.sleep(HEAD_START_S)
            gate.touch()
            said = verb.communicate(timeout=patience(60))[0]
            assert verb.returncode == 0, (point, said)
        assert p.tmux("list-sessions") == "", point
        assert not p._carried(), point
        (p.log_dir / "events.jsonl").unlink()


def test_a_verb_that_is_killed_in_its_middle_leaves_nobody_held_for_ever(make):
    """A hold ends with its process: the watchdog takes over what the verb began."""
    p = make(DEMO.format("a"))
    p.agents("up")
    mortal = Path(__file__).with_name("mortal.py")
    command = [sys.executable, str(mortal), "start.created", "restart", "a", "--config", str(p.config)]
    done = subprocess.run(command, env=p.env(), capture_output=True, check=False, timeout=patience(60))
    assert done.returncode == -signal.SIGKILL
    until(lambda: p.row("a")["detail"] not in {"HELD", "STARTING"} and p.row("a")["state"] == "RUNNING")
    assert len(p._carried()) == 2  # the agent and the watchdog: one run each
