"""A run ends with all its kinds of children, and nobody else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from fleet.core.seen import Proc
from fleet.host import procfs
from fleet.host.clock import RealClock
from fleet.host.ending import stop_all
from fleet.host.processes import ProcTable
from fleet.host.procfs import start_of
from fleet.host.waker import watch_death
from tests.outcomes import DONE
from tests.tmux.conftest import until

pytestmark = pytest.mark.tmux

# The leader starts each kind, writes "<kind> <pid>" for it, and stays. Eight kinds.
CHILD = """\
import os, signal, sys, time
kind = sys.argv[1]
if kind == "ignores-hangup": signal.signal(signal.SIGHUP, signal.SIG_IGN)
if kind == "handles-hangup": signal.signal(signal.SIGHUP, lambda *_: None)
if kind == "ignores-term": signal.signal(signal.SIGTERM, signal.SIG_IGN)
if kind == "setsid": os.setsid()
if kind == "own-group": os.setpgid(0, 0)
if kind == "daemon":
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
with open("kinds", "a") as f: f.write(f"{kind} {os.getpid()}\\n")
time.sleep(1000)
"""

KINDS = ("plain", "background", "nohup", "setsid", "ignores-hangup", "own-group", "handles-hangup", "daemon",
         "ignores-term")  # fmt: skip


def family(floor, session="a-one"):
    """An agent with one child of every kind; pid by kind."""
    state = os.path.join(floor.log_dir, "state")
    os.makedirs(state, exist_ok=True)
    with open(os.path.join(state, "child.py"), "w", encoding="ascii") as file:
        file.write(CHILD)
    start = f"{sys.executable} -IS child.py"
    lines = [f"{'nohup ' if kind == 'nohup' else ''}{start} {kind} >/dev/null 2>&1 &" for kind in KINDS[1:]]
    view = floor.start(session, "\n".join([*lines, f"exec {start} plain"]))
    path = os.path.join(state, "kinds")

    def all_there():
        if not os.path.exists(path):
            return None
        with open(path, encoding="ascii") as file:
            kinds = dict(line.split() for line in file.read().splitlines())
        return kinds if len(kinds) == len(KINDS) else None

    kinds = until(all_there)
    os.unlink(path)
    return view, {kind: int(pid) for kind, pid in kinds.items()}


def test_members_are_all_kinds_of_children_and_the_leader(floor):
    view, kinds = family(floor)
    assert kinds["plain"] == view.ref.pid
    members = ProcTable().members(view.ref.pid, view.ref.run)
    assert {p.pid for p in members} == set(kinds.values())


def test_stopping_ends_every_kind_of_child_and_no_innocent(floor):
    """I29, I30, P1."""
    view, kinds = family(floor)
    other = floor.start("a-other", "exec sleep 1000")
    decoy = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    procs = [p for p in ProcTable().members(view.ref.pid, view.ref.run) if p.pid in kinds.values()]
    try:
        assert stop_all(ProcTable(), RealClock(), [(view.ref.pid, view.ref.run)], grace=1.0) == ()
        table = ProcTable()
        assert [p for p in procs if table.alive(p)] == []
        assert start_of(decoy.pid)
        assert start_of(other.ref.pid)
    finally:
        decoy.kill()
        decoy.wait()


def test_orphans_are_found_after_the_leader_and_the_server_are_gone(floor):
    """P1, I33: after a kill -9 of the server the run id alone must find what is left."""
    view, kinds = family(floor)
    os.kill(view.ref.server.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it hangs up when its terminal goes with the server
        os.kill(view.ref.pid, signal.SIGKILL)
    until(lambda: not start_of(view.ref.pid))
    table = ProcTable()
    left = {p.pid for p in table.members(view.ref.pid, view.ref.run)}
    assert {kinds[k] for k in ("nohup", "setsid", "ignores-hangup", "handles-hangup", "daemon")} <= left
    assert stop_all(table, RealClock(), [(view.ref.pid, view.ref.run)], grace=0.5) == ()
    assert not [k for k, pid in kinds.items() if start_of(pid)]


def test_an_agent_that_wiped_its_environment_is_still_found_by_its_session(floor):
    view = floor.start(
        "a-one", f"exec env -i {sys.executable} -ISc 'import os,time; os.fork(); time.sleep(1000)'"
    )
    until(lambda: procfs.run_of(view.ref.pid) == "")
    members = until(lambda: (m := ProcTable().members(view.ref.pid, view.ref.run)) and len(m) == 2 and m)
    assert members[0].pid == view.ref.pid


def test_a_stranger_that_inherited_the_number_of_a_dead_leader_is_no_member(floor):
    """I30: the number alone proves nothing once a run id is known."""
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        assert ProcTable().members(stranger.pid, "run-of-a-dead-agent") == ()
        assert [p.pid for p in ProcTable().members(stranger.pid, "")] == [stranger.pid]
    finally:
        stranger.kill()
        stranger.wait()


def test_a_signal_for_a_process_of_another_start_is_not_sent():
    child = subprocess.Popen(["sleep", "1000"])
    try:
        row = procfs.row(child.pid)
        past = Proc(child.pid, row.start - 1, row.ppid, row.sid, row.name)
        table = ProcTable()
        assert table.signal([past], signal.SIGKILL) == ()
        assert not table.alive(past)
        now = Proc(child.pid, row.start, row.ppid, row.sid, row.name)
        assert table.alive(now)
        assert table.signal([now], signal.SIGKILL) == (now,)
    finally:
        child.kill()
        child.wait()


def test_a_zombie_is_not_alive_and_not_a_member():
    child = subprocess.Popen(["sleep", "1000"], env={"AO_RUN_ID": "zombie-run", "PATH": os.environ["PATH"]})
    table = ProcTable()
    (proc,) = table.members(child.pid, "zombie-run")
    child.kill()
    until(lambda: procfs.row(child.pid).zombie)
    assert not table.alive(proc)
    assert table.members(child.pid, "zombie-run") == ()
    assert ProcTable().tree(child.pid) == ()
    child.wait()


def test_a_frozen_agent_can_be_stopped(floor):
    view = floor.start("a-one", "exec sleep 1000")
    os.kill(view.ref.pid, signal.SIGSTOP)
    assert stop_all(ProcTable(), RealClock(), [(view.ref.pid, view.ref.run)], grace=10.0) == ()
    assert not start_of(view.ref.pid)


def test_we_never_end_ourselves(monkeypatch):
    table = ProcTable()
    mine = table.tree(os.getpid())[0]
    assert table.signal([mine], signal.SIGTERM) == ()
    assert os.getpid() not in {p.pid for p in table.members(os.getsid(0), "")}


def test_a_tree_tells_what_really_runs_and_what_has_the_terminal(floor):
    view = floor.start("a-one", "sleep 1000; true")
    tree = until(lambda: (t := ProcTable().tree(view.ref.pid)) and len(t) == 2 and t[1].exe == "sleep" and t)
    assert tree[0].pid == view.ref.pid
    assert tree[1].ppid == view.ref.pid


def test_an_environment_is_read_once_in_a_settled_processes_life(monkeypatch):
    reads: list[int] = []
    real = procfs.run_of
    monkeypatch.setattr(procfs, "run_of", lambda pid: (reads.append(pid), real(pid))[1])
    table = ProcTable()
    table.members(0, "x")
    first = set(reads)
    reads.clear()
    table.members(0, "x")
    here = procfs.table()
    young = {pid for pid, row in here.items() if row.start > procfs.ticks_ago(30)}
    assert first
    assert set(reads) & here.keys() <= young  # whoever has left by now was a short-lived one


def test_death_is_told_by_a_descriptor(floor):
    import select

    view = floor.start("a-one", "exec sleep 1000")
    fd = watch_death(view.ref.pid)
    if fd is None:
        pytest.skip("this kernel has no pidfd")
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(0) == []
    os.kill(view.ref.pid, signal.SIGKILL)
    assert poll.poll(10_000)
    os.close(fd)


def test_a_hundred_runs_end_together(floor):
    """I51, T34: all are asked at once; nobody waits for the one that does not listen."""
    names = [f"a-{n}" for n in range(40)]
    stubborn = (
        f"exec {sys.executable} -ISc 'import signal,time; signal.signal(15,signal.SIG_IGN); time.sleep(1000)'"
    )
    launches = [floor.launch(n, stubborn if n == "a-7" else "sleep 1000 & exec sleep 1000") for n in names]
    assert set(floor.server.create(launches).values()) == {DONE}
    panes = floor.server.listing().panes
    assert stop_all(ProcTable(), RealClock(), [(p.ref.pid, p.ref.run) for p in panes], grace=2.0) == ()
    assert not [p for p in panes if start_of(p.ref.pid)]


def test_many_trees_and_many_dead_cost_one_reading_of_the_table_a_look(monkeypatch):
    """A hundred dead that wait for their turn must not read the table a hundred times."""
    reads: list[float] = []
    real = procfs.table
    monkeypatch.setattr(procfs, "table", lambda: (reads.append(0.0), real())[1])
    monkeypatch.setattr("fleet.host.processes._SAME_LOOK", 60.0)
    table = ProcTable()
    for look in (1, 2):
        table.begin_look()
        for n in range(50):
            assert table.tree(os.getpid())
            assert table.count(0, f"run-of-nobody-{n}") == 0
        assert len(reads) == look
