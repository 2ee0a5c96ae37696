"""Open files run out, and a tmux server that does not answer: the fleet is lost to no verb."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest

from fleet.host import procfs
from fleet.host.tmux.client import resolve_socket
from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'


def crowd(count: int) -> str:
    return "".join(DEMO.format(f"a{n}") for n in range(count))


def limited(p: Project, soft: int, hard: int, *words: str) -> tuple[int, str]:
    """Run a verb where so many files may be open: its exit code and all it said."""
    done = subprocess.run(
        [
            *("sh", "-c", f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$@"', "sh"),
            *(sys.executable, str(ENGINE / "agents.py"), *words, "--config", str(p.config)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(120),
        env=p.env(),
        cwd=p.root,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    return done.returncode, said


def soft_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def server_pid(p: Project) -> int:
    return int(p.tmux("display-message", "-p", "#{pid}"))


def sessions(p: Project) -> set[str]:
    return {s for s in p.tmux("list-sessions", "-F", "#{session_name}").split() if s.startswith(p.prefix)}


def of_ours(p: Project) -> list[int]:
    """Living processes that carry a run id of this fleet."""
    runs = set(p.runs())
    return [row.pid for row in procfs.table().values() if not row.zombie and procfs.run_of(row.pid) in runs]


def is_gone(pid: int) -> bool:
    row = procfs.row(pid)
    return row is None or row.zombie


def test_a_fleet_too_large_for_the_limit_is_refused_with_the_numbers_and_one_that_fits_answers(make):
    p = make(crowd(20))
    code, said = limited(p, 100, 100, "up")
    assert code == 1, said
    assert "22 sessions need 108 open files" in said
    assert "may have 100" in said
    assert "prlimit --pid $$ --nofile=108" in said
    assert not sessions(p)
    code, said = limited(p, 100, 100, "doctor")
    assert code == 1, said
    assert "fail  open files: 22 sessions need 108" in said
    p.write(crowd(16))  # with the watchdog and its anchor this needs exactly 100
    code, said = limited(p, 100, 100, "up")
    assert code == 0, said
    assert [r["state"] for r in p.json("status")["agents"]] == ["RUNNING"] * 16
    os.kill(p.pid("a3"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a3"))
    p.write(crowd(17))  # the server that runs cannot be given more
    said = p.agents("up", code=1)
    assert f"the tmux server (process {server_pid(p)}) may have 100" in said
    assert "agents.py down, then agents.py up" in said
    assert len(sessions(p)) == 17
    said = p.agents("doctor", code=1)
    assert f"need 102 open files, and the tmux server (process {server_pid(p)}) may have 100" in said
    p.agents("down")
    assert not of_ours(p)


def test_a_low_soft_limit_is_raised_for_the_server_and_stays_as_it_is_for_the_agents(make):
    p = make(crowd(2))
    code, said = limited(p, 60, 4096, "up")
    assert code == 0, said
    assert soft_limit(server_pid(p)) == 4096
    assert soft_limit(p.json("status")["watchdog"]["pid"]) == 4096
    assert soft_limit(p.pid("a0")) == 60
    os.kill(p.pid("a0"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a0"))
    assert soft_limit(p.pid("a0")) == 60
    resource.prlimit(server_pid(p), resource.RLIMIT_NOFILE, (60, 4096))
    p.write(crowd(3))
    p.agents("up")  # a server that runs is given more too
    assert soft_limit(server_pid(p)) >= 70
    p.agents("down")


def test_down_ends_a_server_that_does_not_answer_and_leaves_nothing(make):
    p = make(crowd(2))
    p.agents("up")
    server, dog = server_pid(p), p.json("status")["watchdog"]["pid"]
    os.kill(server, signal.SIGSTOP)
    held = fill_the_queue(resolve_socket(p.socket))
    try:
        begun = time.monotonic()
        said = p.agents("down", code=None)
        assert time.monotonic() - begun < patience(40)
        assert f"(process {server}) did not answer, and was ended" in said
    finally:
        for one in held:
            one.close()
        if not is_gone(server):
            os.kill(server, signal.SIGCONT)
    assert is_gone(server)
    assert is_gone(dog)
    assert not of_ours(p)
    assert {r["desired"] for r in p.json("status")["agents"]} == {"down"}


def fill_the_queue(path: str) -> list[socket.socket]:
    """As many clients as a server takes without looking: what a night of verbs and a watchdog leaves."""
    held = []
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        held.append(one)
        try:
            one.connect(path)
        except BlockingIOError:
            return held


def test_a_server_that_does_not_answer_is_left_when_others_run_in_it_and_the_agents_end_all_the_same(make):
    p = make(crowd(1))
    p.agents("up")
    server = server_pid(p)
    p.tmux("new-session", "-d", "-s", "guest", "exec sleep 1000")
    guest = int(p.tmux("list-panes", "-t", "=guest:", "-F", "#{pane_pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        said = p.agents("doctor", code=1)
        assert "fail  tmux server: tmux did not answer" in said
        assert "-> agents.py down" in said
        said = p.agents("down", "--json", code=1)
        assert '"server": "shared"' in said
        assert f"kill -9 {server}" in said
        assert not of_ours(p)
        assert not is_gone(server)
        assert not is_gone(guest)
    finally:
        os.kill(server, signal.SIGCONT)
    assert f"stopped {p.prefix}a0" in p.agents("down")
    assert not is_gone(guest)


def test_the_users_own_server_is_never_ended_though_it_does_not_answer(make, tmp_path, monkeypatch):
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))  # whose default server is this test's
    p = make(crowd(1), defaults='tmux_socket = "default"')
    p.socket = "default"
    p.agents("up")
    server = server_pid(p)
    os.kill(server, signal.SIGSTOP)
    try:
        said = p.agents("down", code=1)
        assert "your own tmux server does not answer" in said
        assert not of_ours(p)
        assert not is_gone(server)
    finally:
        os.kill(server, signal.SIGCONT)
    p.agents("down")
