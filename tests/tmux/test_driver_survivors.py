"""What `down` cannot end it names, and exits with 1; what merely runs away it catches."""

from __future__ import annotations

import os
import signal

import pytest

from fleet.host import processes
from tests.tmux.inside import verb
from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

# Every generation lives for a moment, in a session of its own, and leaves a mark.
RUNAWAY = """\
import os, sys, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    with open("beat", "ab") as beat:
        beat.write(b"x")
    time.sleep(float(sys.argv[1]))
"""


def agent(command: str, name: str = "a") -> str:
    backend = f"[backend.{name}]\nprompt_delivery = 'exec'\nbin = '''{command}\nexec sleep 100000'''\n"
    return backend + f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "{name}"\n'


def noted(p: Project, name: str = "pid") -> int:
    path = p.root / name
    return int(until(lambda: path.exists() and path.read_text().strip()))


@pytest.mark.parametrize("pace", ["0.02", "0.002", "0"])
def test_one_that_becomes_another_process_faster_than_a_look_takes_is_caught(make, pace):
    """I29: by then it has another number, another parent and another session; the run it cannot shed."""
    p = make(agent(f"python3 -IS runaway.py {pace} &"))
    (p.root / "runaway.py").write_text(RUNAWAY)
    beat = p.root / "beat"
    p.agents("up", "a")
    until(lambda: beat.exists() and beat.stat().st_size > 20)
    assert p.json("down")["survivors"] == []
    then = beat.stat().st_size
    until(lambda: not p._carried())
    assert beat.stat().st_size == then


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as somebody else")
def test_a_process_of_another_user_is_left_alone_and_named(make):
    """Not ours to end, root or not; but nobody is told that nothing is left."""
    p = make(agent("setsid setpriv --reuid 65534 --clear-groups sleep 100000 & echo $! >pid"))
    p.agents("up", "a")
    stranger = noted(p)
    until(lambda: os.stat(f"/proc/{stranger}").st_uid == 65534)
    try:
        said = p.json("down", code=1)
        assert said["survivors"] == [{"pid": stranger, "name": "sleep"}]
        assert said["stopped"] == [f"{p.prefix}a"]
        assert os.path.exists(f"/proc/{stranger}")
        p.agents("up", "a")
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.kill(noted(p), signal.SIGKILL)


def test_one_that_nothing_can_end_is_named_and_blocks_only_its_own_agent(make, monkeypatch):
    """I29, T34: as in uninterruptible sleep, which cannot be had here: no signal reaches it."""
    p = make(agent("setsid sleep 100000 & echo $! >pid") + agent("true", "b"))
    verb(p.config, "up", "a", "b")
    immortal, old = noted(p), p.pid("b")
    send = processes._send
    monkeypatch.setattr(processes, "_send", lambda proc, signum: proc.pid != immortal and send(proc, signum))
    monkeypatch.setattr("fleet.core.agent.stopping.IN_PERSON_S", 0.2)
    monkeypatch.setattr("fleet.core.agent.stopping.HANG_UP_S", 0.1)
    monkeypatch.setattr("fleet.supervisor.deputy.START_S", 4.0)
    monkeypatch.setattr("fleet.supervisor.deputy.STOP_S", 4.0)
    code, said = verb(p.config, "restart", "a", "b", "--no-wait")
    assert code == 1
    assert f"process {immortal} (sleep) is still there" in said
    assert not p.pid("a")
    assert p.pid("b") not in {0, old}
    code, said = verb(p.config, "down")
    assert code == 1
    assert f"process {immortal} (sleep) is still there" in said
    os.kill(immortal, 0)  # it is there
    monkeypatch.undo()
    assert verb(p.config, "down")[0] == 0
    assert not p._carried()
