"""`pause --freeze` holds every process of a run, tmux or not, and whatever comes after it still works."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fleet.host import freezer, procfs
from fleet.host.clock import RealClock
from fleet.host.ending import stop_all
from fleet.host.processes import ProcTable
from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

# The leader counts, and so does a child that left its session: both must stand still.
COUNTING = """
[backend.counting]
prompt_delivery = "exec"
bin = '''
setsid sh -c 'while :; do echo x >>child; sleep 0.02; done' &
while :; do echo x >>leader; sleep 0.02; done'''

[[agent]]
name = "a"
kind = "persistent"
backend = "counting"
"""
FILES = ("leader", "child")


@pytest.fixture
def counting(tmp_path):
    project = Project(tmp_path / "project", COUNTING)
    project.agents("up")
    until(lambda: all((project.root / f).exists() for f in FILES))
    yield project
    project.tear_down()


def sizes(p: Project) -> tuple[int, ...]:
    return tuple((p.root / f).stat().st_size for f in FILES)


def moves(p: Project) -> bool:
    """Do both go on counting?"""
    before = sizes(p)
    until(lambda: all(now > then for now, then in zip(sizes(p), before, strict=True)))
    return True


def groups() -> set[str]:
    """Frozen groups of ours on this machine, wherever they are."""
    found = set()
    for tree in freezer.trees():
        for row in procfs.table().values():
            group = tree.group_of(row.pid)
            if os.path.basename(group).startswith(freezer.PREFIX):
                found.add(group)
    return found


def can_freeze(p: Project) -> bool:
    said = p.json("pause", "a", "--freeze", code=None)
    if not said["ok"]:
        assert "only paused" in p.agents("pause", "a", "--freeze", code=1)
        pytest.skip(f"control groups are not ours to make here: {said['not_frozen']}")
    return True


def test_a_frozen_agent_stands_still_until_it_is_let_go(counting):
    p = counting
    assert moves(p)
    can_freeze(p)
    beat = p.log_dir / "state" / "heartbeat"
    still, then = sizes(p), beat.stat().st_mtime
    until(lambda: beat.stat().st_mtime > then + 2)  # the watchdog has looked at it meanwhile
    assert sizes(p) == still
    row = p.row("a")
    assert (row["state"], row["detail"]) == ("RUNNING", "FROZEN")
    pid = row["pid"]
    assert p.json("pause", "a")["ok"]  # to pause what is frozen leaves it frozen
    assert sizes(p) == still
    assert p.json("unpause", "a")["ok"]
    assert moves(p)
    assert p.row("a")["pid"] == pid
    assert len(p.events("agent.started", "a")) == 1


def test_up_lets_a_frozen_agent_go(counting):
    p = counting
    can_freeze(p)
    assert p.json("up", "a")["agents"][0]["result"] == "was running"
    assert moves(p)
    until(lambda: p.row("a")["detail"] not in {"FROZEN", "PAUSED"})


def test_a_frozen_agent_can_be_taken_down_and_its_group_goes_too(counting):
    p = counting
    can_freeze(p)
    mine = {tree.group_of(p.row("a")["pid"]) for tree in freezer.trees()} & groups()
    assert mine
    assert p.json("down")["survivors"] == []
    assert not p._carried()
    assert not [g for g in mine if os.path.exists(g)]


def test_a_control_group_holds_and_lets_go(tmp_path):
    if not any(os.access(tree.group_of(os.getpid()) or "/nowhere", os.W_OK) for tree in freezer.trees()):
        pytest.skip("no control group of ours here")
    p = Project(tmp_path / "project", COUNTING)
    try:
        p.agents("up", "a")
        until(lambda: all((p.root / f).exists() for f in FILES))
        table, pid = ProcTable(), p.row("a")["pid"]
        run = procfs.run_of(pid)
        assert table.freeze(pid, run) == ""
        still = sizes(p)
        time.sleep(0.5)
        assert sizes(p) == still
        table.signal(table.members(pid, run), signal.SIGCONT)
        assert moves(p)
        assert table.freeze(pid, run) == ""
        assert not stop_all(table, RealClock(), [(pid, run)], grace=5.0)
    finally:
        p.tear_down()


def test_without_control_groups_nothing_is_half_frozen_and_the_reason_is_given(counting, monkeypatch):
    """tmux continues a stopped child of its own: then the other processes are continued as well."""
    p = counting
    monkeypatch.setattr(freezer, "trees", list)
    table, pid = ProcTable(), p.row("a")["pid"]
    why = table.freeze(pid, procfs.run_of(pid))
    assert "tmux continues" in why
    assert moves(p)


def test_signals_hold_a_process_whose_parent_lets_them(monkeypatch):
    """Where the parent does not interfere, stop signals are a freeze."""
    monkeypatch.setattr(freezer, "trees", list)
    run = f"aotest{os.getpid()}"
    child = subprocess.Popen(["sleep", "1000"], env={**os.environ, procfs.RUN_VARIABLE: run})
    try:
        table = ProcTable()
        assert table.freeze(child.pid, run) == ""
        assert procfs.row(child.pid).state == "T"
        table.signal(table.members(child.pid, run), signal.SIGCONT)
        until(lambda: procfs.row(child.pid).state != "T")
    finally:
        child.kill()
        child.wait()


def test_a_run_without_processes_is_not_called_frozen():
    assert freezer.freeze("nobody", list, lambda *_: None, lambda _seconds: None)


def test_trees_of_version_2_are_found_in_any_mount_table(tmp_path):
    table = Path(tmp_path / "mountinfo")
    table.write_text(
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer\n"
        "41 31 0:38 /here /sys/fs/cgroup\\040two rw,relatime - cgroup2 cgroup2 rw\n"
    )
    assert freezer.trees(str(table)) == [freezer.Tree("/sys/fs/cgroup two", "/here")]
    assert freezer.trees(str(tmp_path / "none")) == []
