"""What befalls the tmux server, the watchdog's session and the watchdog's lock, and what is left of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.host import procfs
from fleet.host.clock import RealClock
from fleet.host.locks import WatchdogLock
from tests.tmux.project import ENGINE, Project, scripted, until

pytestmark = pytest.mark.tmux

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'
TWO = DEMO.format("a") + DEMO.format("b")


def server_pid(p: Project) -> int:
    return int(p.tmux("display-message", "-p", "#{pid}"))


def dog_pid(p: Project) -> int:
    return int(p.json("status")["watchdog"]["pid"])


def looks(p: Project, seconds: float = 2.0) -> None:
    """Let the watchdog look for a while."""
    beat = p.log_dir / "state" / "heartbeat"
    then = beat.stat().st_mtime
    until(lambda: beat.stat().st_mtime > then + seconds)


def is_gone(pid: int) -> bool:
    row = procfs.row(pid)
    return row is None or row.zombie


def test_a_server_that_stands_still_is_unseen_and_not_gone(make):
    """P4, I1: nothing is healed while blind, and nobody is there twice afterwards."""
    p = make(TWO)
    p.agents("up")
    server, victim = server_pid(p), p.pid("a")
    os.kill(server, signal.SIGSTOP)
    try:
        os.kill(victim, signal.SIGKILL)
        until(lambda: [e for e in p.events("watchdog.degraded") if "tmux" in e["reason"]])
        facts = p.json("status")
        assert {r["state"] for r in facts["agents"]} == {"UNKNOWN"}
        assert any("tmux" in x for x in facts["problems"])
        assert not p.events("agent.died")
        assert len(p.events("agent.started")) == 2
    finally:
        os.kill(server, signal.SIGCONT)
    until(lambda: p.events("agent.healed", "a"), 60)
    until(lambda: p.events("watchdog.recovered"), 60)
    looks(p)
    assert len(p.events("agent.started", "a")) == 2
    assert len(p.events("agent.started", "b")) == 1
    assert not p.events("server.lost")
    sessions = [s for s in p.tmux("list-sessions", "-F", "#{session_name}").split() if s.startswith(p.prefix)]
    assert sorted(sessions) == [f"{p.prefix}{n}" for n in ("a", "b", "watchdog")]


def test_the_loss_of_a_server_brings_each_agent_back_once_and_its_orphans_are_gone_first(make):
    """I33, P1: five kinds of children outlive a server."""
    p = make()
    p.write(scripted(p, "one", "start = [{ spawn = true }]") + DEMO.format("b"))
    p.agents("up")
    old = {name: procfs.run_of(p.pid(name)) for name in ("one", "b")}
    os.kill(server_pid(p), signal.SIGKILL)
    until(lambda: p.events("server.lost"))
    until(lambda: len(p.events("agent.started", "one")) == 2 and len(p.events("agent.started", "b")) == 2, 60)
    looks(p)
    assert not {procfs.run_of(pid) for pid in procfs.table()} & set(old.values())
    assert len(p.events("agent.started", "one")) == 2
    assert [m["kind"] for m in p.received("one")].count("kickoff") == 2


def test_a_server_that_down_ends_is_not_lost_and_one_that_is_killed_is(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    looks(p)
    p.agents("down")
    p.agents("up")
    looks(p)
    assert not p.events("server.lost")
    assert len(p.events("server.founded")) == 2
    p.agents("down", "watchdog")
    os.kill(server_pid(p), signal.SIGKILL)
    p.agents("up")
    until(lambda: len(p.events("server.lost")) == 1)
    os.kill(server_pid(p), signal.SIGKILL)
    until(lambda: len(p.events("server.lost")) == 2)


def test_a_hangup_without_a_reason_is_survived_and_a_closed_session_is_obeyed(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    dog = dog_pid(p)
    os.kill(dog, signal.SIGHUP)
    looks(p)
    assert dog_pid(p) == dog
    p.tmux("kill-session", "-t", f"={p.prefix}watchdog:")
    until(lambda: is_gone(dog))
    assert p.events("watchdog.stopped")[-1]["reason"] == "its session was closed"
    assert p.pid("a")


@pytest.mark.long
def test_a_swept_state_directory_is_written_back_and_the_night_goes_on(make):
    """`git clean -fdx` by an agent takes everything that git ignores: logs, memory, locks, what is wanted."""
    p = make(TWO)
    p.agents("up")
    p.agents("down", "b")
    agent, dog = p.pid("a"), dog_pid(p)
    shutil.rmtree(p.log_dir, ignore_errors=True)  # the watchdog may write into it meanwhile
    until(lambda: p.events("state.restored"))
    assert dog_pid(p) == dog
    wanted = {"a": "up", "b": "down"}
    until(lambda: {r["name"]: r["desired"] for r in p.json("status")["agents"]} == wanted)
    os.kill(agent, signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    assert "delivered" in p.agents("send", "a", "are the logs written again?")
    until(lambda: b"written again?" in (p.log_dir / "logs" / f"{p.prefix}a.log").read_bytes())
    looks(p)
    assert not p.events("agent.started", "b")
    p.agents("down")


def test_a_lock_that_is_taken_away_is_taken_again_unless_somebody_else_has_it(make):
    """I27: who cannot prove that it is the only one, stops; what it looked after runs on."""
    p = make(DEMO.format("a"))
    p.agents("up")
    state, agent, dog = p.log_dir / "state", p.pid("a"), dog_pid(p)
    (state / "watchdog.lock").unlink()
    until(lambda: p.events("state.restored"))
    assert dog_pid(p) == dog
    os.kill(dog, signal.SIGSTOP)
    (state / "watchdog.lock").unlink()
    with WatchdogLock(str(state), RealClock()):
        os.kill(dog, signal.SIGCONT)
        until(lambda: is_gone(dog))
    assert f"held by process {os.getpid()}" in p.events("watchdog.stopped")[-1]["reason"]
    assert "started it" in p.agents("ensure")
    assert p.pid("a") == agent


def test_a_project_that_is_taken_away_whole_is_not_written_back(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    dog, text = dog_pid(p), p.config.read_text()
    os.kill(dog, signal.SIGSTOP)
    p.config.unlink()
    shutil.rmtree(p.log_dir)
    os.kill(dog, signal.SIGCONT)
    until(lambda: is_gone(dog))
    assert not (p.log_dir / "state" / "watchdog.lock").exists()
    p.config.write_text(text)


FIFTY = """
import os, sys
sys.path.insert(0, sys.argv[1])
import fleet.verbs.watchdog, fleet.supervisor.tick, fleet.config
import fleet.supervisor.loop, fleet.host.tmux.control
from fleet.verbs.main import main
gate, opened = os.pipe()
for n in range(50):
    if os.fork() == 0:
        os.close(opened)
        os.read(gate, 1)
        os.dup2(os.open(f"{sys.argv[3]}/said-{n}", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os._exit(main(["watchdog", "--config", sys.argv[2]]))
os.close(opened)
codes = {}
while len(codes) < 49:
    pid, status = os.wait()
    codes[pid] = os.waitstatus_to_exitcode(status)
print(sorted(codes.values()), flush=True)
os.wait()
"""


@pytest.mark.long
def test_of_fifty_watchdogs_at_once_one_acts_and_the_others_name_it(make, tmp_path):
    """I27, T35."""
    p = make(TWO)
    p.agents("up", "a", "b")
    os.kill(p.pid("a"), signal.SIGKILL)
    crowd = subprocess.Popen(
        [sys.executable, "-c", FIFTY, str(ENGINE), str(p.config), str(tmp_path)],
        stdout=subprocess.PIPE,
        env=p.env(),
        text=True,
    )
    try:
        assert crowd.stdout is not None
        assert crowd.stdout.readline().strip() == str([1] * 49)
        holder = dog_pid(p)
        told = [f.read_text() for f in Path(tmp_path).glob("said-*") if f.read_text()]
        assert len(told) == 49
        assert all(str(holder) in text for text in told)
        until(lambda: p.events("agent.healed", "a"))
        assert len(p.events("watchdog.started")) == 1
        assert len(p.events("agent.started", "a")) == 2
        p.agents("down")
        crowd.wait(30)
    finally:
        crowd.kill()
        crowd.wait()
