"""What a killed watchdog, a hung one or a half-made start leaves keeps no `up` and no `down` from working."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.host import procfs
from fleet.host.tmux.client import resolve_socket
from tests.tmux.project import Project, gated, scripted, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'


def control_clients(p: Project) -> list[int]:
    """Processes that speak to the fleet's server in control mode, by their command lines."""
    found = []
    for pid in procfs.table():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"-C" in words and any(word.endswith(p.socket.encode()) for word in words):
            found.append(pid)
    return found


def gone(pid: int) -> bool:
    row = procfs.row(pid)
    return row is None or row.zombie


@pytest.mark.parametrize("words", [("up", "--no-wait"), ("down",)])
def test_a_control_client_without_its_watchdog_does_not_hold_up_a_server_that_ends(make, words):
    """The server waits for each client to leave; one of ours that hangs is ended."""
    p = make(DEMO.format("a"))
    p.agents("up")
    client = until(lambda: control_clients(p))[0]
    server = int(p.tmux("display-message", "-p", "#{pid}"))
    os.kill(client, signal.SIGSTOP)  # as it hangs in the wild: it neither reads nor leaves
    p.kill_watchdog()
    p.tmux("kill-server")
    try:
        assert not gone(server), "the server did not wait, so the test proves nothing"
        p.agents(*words)
        assert gone(client)
        until(lambda: gone(server))
        assert bool(p.pid("a")) == (words[0] == "up")
        p.agents("down")
        assert not p._carried()
    finally:
        for pid in (client, server):
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


def test_the_control_client_of_a_watchdog_that_lives_is_left_alone(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    clients = until(lambda: control_clients(p))
    p.agents("up")
    p.agents("down", "a")
    assert control_clients(p) == clients


def test_down_works_beside_a_watchdog_that_hangs(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    dog = p.json("status")["watchdog"]["pid"]
    os.kill(dog, signal.SIGSTOP)
    said = p.json("down")
    assert said["ok"]
    assert said["watchdog"]
    assert gone(dog)
    assert not p._carried()
    assert p.row("a")["desired"] == "down"


def test_down_is_done_and_recorded_although_a_watchdog_hangs_with_the_state_in_its_hands(make):
    p = make(DEMO.format("a"))
    p.agents("up", "a")
    with gated(p, "start.create") as gate:
        until(lambda: p.events("agent.ready", "a"))
        os.kill(p.pid("a"), signal.SIGKILL)
        until(lambda: Path(f"{gate}.reached").exists())
        assert p.json("down")["ok"]
    assert not p._carried()
    assert p.row("a")["desired"] == "down"


def test_a_service_that_failed_for_good_is_reset(make):
    """What the watchdog answered is what the verb reports."""
    p = make()
    tool = p.root / "tool"
    p.write('[[service]]\nname = "s"\ncommand = "./tool"\n' + DEMO.format("a"))
    p.agents("up", "--no-wait")
    until(lambda: p.row("s")["state"] == "FATAL")
    tool.write_text("#!/bin/sh\nexec sleep 1000\n")
    tool.chmod(0o700)
    said = p.json("reset", "s")
    assert said["ok"]
    assert said["reset"] == ["s"]
    until(lambda: p.row("s")["state"] == "RUNNING")
    os.kill(p.json("status")["watchdog"]["pid"], signal.SIGSTOP)
    said = p.agents("reset", "s", "--timeout", "1", "--json", code=1)
    document = json.loads(said[said.index("{") : said.rindex("}") + 1])
    assert document["refused"]["s"]["outcome"] == "not_in_time"
    assert document["reset"] == []


def stale_lock(p: Project) -> None:
    told = {"pid": 999999, "start": 1, "since": 1.0}
    (p.log_dir / "state" / "watchdog.lock").write_text(json.dumps(told))
    (p.log_dir / "state" / "state.lock").write_text(json.dumps(told))


def locks_of_nobody(p: Project) -> None:
    (p.log_dir / "state" / "watchdog.lock").write_bytes(b"\0\xff half a li")
    (p.log_dir / "state" / "state.lock").unlink(missing_ok=True)


def half_a_state(p: Project) -> None:
    shutil.rmtree(p.log_dir)
    (p.log_dir / "state").mkdir(parents=True)


def an_empty_log_dir(p: Project) -> None:
    shutil.rmtree(p.log_dir)
    p.log_dir.mkdir()


def broken_documents(p: Project) -> None:
    for name in ("desired.json", "desired.json.prev", "fleet.json", "view.json", "last-good.json"):
        (p.log_dir / "state" / name).write_bytes(b'{"half": ')
    for folder in ("runs", "agents"):
        for file in (p.log_dir / "state" / folder).glob("*.json"):
            file.write_bytes(b"")


def temporary_files(p: Project) -> None:
    for folder in (p.log_dir, p.log_dir / "state", p.log_dir / "state" / "runs"):
        (folder / ".desired.json.0123456789ab.tmp").write_bytes(b"half")


def a_dead_socket(p: Project) -> None:
    """A server that was killed leaves its socket."""
    p.tmux("new-session", "-d", "-s", "founder", "sleep 1000")
    pid = int(p.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    assert os.path.exists(resolve_socket(p.socket))


def a_recorded_socket_of_nobody(p: Project) -> None:
    (p.log_dir / "state" / "socket").write_text("")


def requests_and_receipts(p: Project) -> None:
    for folder in ("requests", "receipts"):
        (p.log_dir / "state" / folder).mkdir(exist_ok=True)
        (p.log_dir / "state" / folder / "00000000000001-aa.json").write_bytes(b"{")


LEFTOVERS: tuple[Callable[[Project], None], ...] = (
    stale_lock,
    locks_of_nobody,
    half_a_state,
    an_empty_log_dir,
    broken_documents,
    temporary_files,
    a_dead_socket,
    a_recorded_socket_of_nobody,
    requests_and_receipts,
)


def test_no_leftover_keeps_up_or_down_from_working(make):
    p = make(DEMO.format("a"))
    p.agents("up", "a", "--no-wait")
    for leftover in LEFTOVERS:
        leftover(p)
        assert p.json("down")["ok"], leftover.__name__
        assert not p._carried(), leftover.__name__
        leftover(p)
        p.agents("up", "a", "--no-wait")
        assert p.pid("a"), leftover.__name__


def test_down_without_a_state_directory_a_watchdog_or_a_file(make):
    p = make()
    p.write(scripted(p, "one"))
    p.agents("up", "one")
    shutil.rmtree(p.log_dir)
    p.config.unlink()
    assert f"stopped {p.prefix}one" in p.agents("down")
    assert not p._carried()
