"""A disk that refuses: what cannot be recorded is not done, it is said so, and all goes on afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.programs import need
from tests.tmux.project import Project, scripted, until

pytestmark = pytest.mark.tmux


@pytest.fixture
def small(tmp_path):
    """A project whose log_dir is a file system of a few hundred kilobytes."""
    need("mount", "umount")
    p = Project(tmp_path / "project", "")
    p.log_dir.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k,mode=700", "tmpfs", str(p.log_dir)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may make a small file system")
    try:
        yield p
    finally:
        p.tear_down()
        subprocess.run(["umount", "-l", str(p.log_dir)], check=True)


def fill(p: Project) -> Path:
    """Not a byte is left."""
    path = p.log_dir / "filler"
    with open(path, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            while True:
                try:
                    file.write(b"x" * size)
                except OSError:
                    break
    return path


@contextmanager
def read_only(p: Project) -> Iterator[None]:
    """As after an error of the disk: nothing can be opened for writing, open files stay what they are."""
    here = str(p.log_dir)
    subprocess.run(["mount", "--bind", here, here], check=True)
    try:
        remount = ["mount", "-o", "remount,bind,ro", here]  # busy while a file is being written
        until(lambda: subprocess.run(remount, capture_output=True, check=False).returncode == 0)
        yield
    finally:
        subprocess.run(["umount", "-l", here], check=True)


def test_a_full_disk_loses_nothing_and_is_recovered_from(small):
    """I35: degraded by name, no crash loop, no effect twice, well again once there is room."""
    p = small
    p.write(scripted(p, "one") + scripted(p, "two"))
    p.agents("up")
    dog = p.json("status")["watchdog"]["pid"]
    filler = fill(p)
    os.kill(p.pid("one"), signal.SIGKILL)
    beat = p.log_dir / "state" / "heartbeat"
    then = beat.stat().st_mtime
    until(lambda: beat.stat().st_mtime > then + 3)  # it goes on looking
    p.agents("send", "two", "while it is full", "--timeout", "3", code=1)
    p.agents("down", "two", code=None)  # may be refused; must not be a traceback
    facts = p.json("status")
    assert facts["watchdog"]["state"] == "running"
    assert any("the disk is full" in x for x in facts["problems"]), facts["problems"]
    filler.unlink()
    until(lambda: p.events("agent.healed", "one"), 60)
    until(lambda: p.events("watchdog.recovered"), 60)
    assert p.json("status")["watchdog"]["pid"] == dog
    assert len(p.events("agent.started", "one")) == 2
    until(lambda: len(p.received("one")) > 1)  # healed on record, and still on its way up
    assert [m["kind"] for m in p.received("one")].count("kickoff") == 2
    assert [m["text"] for m in p.received("two") if m["kind"] != "kickoff"] == []
    p.agents("up", "two")
    assert p.json("send", "two", "now there is room")["ok"]
    assert not p.events("state.quarantined")
    lines = Counter((p.log_dir / "events.jsonl").read_bytes().split(b"\n"))
    assert not [line for line, count in lines.items() if count > 1 and line]


def test_a_read_only_disk_loses_nothing_and_is_recovered_from(small):
    """I35: the same for a file system that was remounted under us."""
    p = small
    p.write(scripted(p, "one") + scripted(p, "two"))
    p.agents("up")
    dog, two = p.json("status")["watchdog"]["pid"], p.pid("two")
    with read_only(p):
        os.kill(p.pid("one"), signal.SIGKILL)
        until(lambda: p.pid("one") == 0)
        said = p.agents("send", "two", "while it is read-only", "--timeout", "3", code=1)
        assert "read-only" in said.lower(), said
        said = p.agents("down", "two", code=1)
        assert "read-only" in said.lower(), said
        facts = p.json("status")
        assert facts["watchdog"]["pid"] == dog
        assert any("read-only" in x for x in facts["problems"]), facts["problems"]
        assert p.pid("two") == two, "what could not be recorded was done"
        assert p.pid("one") == 0, "what could not be recorded was done"
    until(lambda: p.events("agent.healed", "one"), 60)
    until(lambda: p.events("watchdog.recovered"), 60)
    until(lambda: p.row("one")["state"] == "RUNNING" and not p.json("status")["problems"])
    assert p.json("status")["watchdog"]["pid"] == dog
    assert p.pid("two") == two
    assert len(p.events("agent.started", "one")) == 2
    assert [m["text"] for m in p.received("two") if m["kind"] != "kickoff"] == []
    assert p.json("send", "two", "now it can be written")["ok"]
    assert not p.events("state.quarantined")


@pytest.mark.long
def test_logs_come_back_after_a_full_disk(small):
    """I35: what an agent prints is in its log again, and the gap is on record."""
    p = small
    p.write('[[service]]\nname = "clock"\ncommand = "while :; do date +tick-%s; sleep 0.1; done"\n')
    p.agents("up")
    log = p.log_dir / "logs" / f"{p.prefix}clock.log"
    until(lambda: "tick-" in log.read_text())
    filler = fill(p)
    pane = ("display-message", "-p", "-t", f"={p.prefix}clock:", "#{pane_pipe}")
    until(lambda: fill(p) and p.tmux(*pane).strip() == "0")
    size = log.stat().st_size
    filler.unlink()
    until(lambda: log.stat().st_size > size)
    until(lambda: p.events("agent.log_resumed", "clock"))


@pytest.mark.parametrize("refusal", ["full", "read-only"])
def test_a_fleet_can_be_taken_down_although_nothing_can_be_written(small, refusal):
    """Agents that cost money end; that their end could not be recorded is said."""
    p = small
    p.write(scripted(p, "one") + '[[service]]\nname = "s"\ncommand = "sleep 1000"\n')
    p.agents("up")
    filler = fill(p) if refusal == "full" else None
    with read_only(p) if filler is None else nullcontext():
        said = p.agents("down", code=1 if filler is None else None)  # a byte may have become free
        assert f"stopped {p.prefix}one" in said
        assert "could not be recorded" in said or filler is not None
        assert not p._carried()
    if filler is not None:
        filler.unlink()
    assert "nothing was running" in p.agents("down")
    assert {p.row(n)["desired"] for n in ("one", "s")} == {"down"}
