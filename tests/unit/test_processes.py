"""The process table, as procfs shows it and as psutil shows it where there is no procfs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from fleet.core.seen import Proc
from fleet.host import procfs
from fleet.host.processes import ProcTable
from fleet.supervisor.operator import Operator


@pytest.fixture
def without_procfs(monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(procfs, "HAS_PROCFS", False)


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, procfs.RUN_VARIABLE: "run-of-the-child"})
    yield process
    process.kill()
    process.wait()


def test_psutil_shows_what_procfs_shows(child, monkeypatch):
    pytest.importorskip("psutil")
    here = procfs.row(child.pid)
    monkeypatch.setattr(procfs, "HAS_PROCFS", False)
    there = procfs.row(child.pid)
    assert (there.pid, there.ppid, there.sid, there.name) == (here.pid, here.ppid, here.sid, here.name)
    assert procfs.table()[child.pid].ppid == os.getpid()
    assert procfs.run_of(child.pid) == "run-of-the-child"
    assert 0 <= procfs.age(there) < 3600


@pytest.mark.usefixtures("without_procfs")
def test_without_procfs_a_run_is_found_and_ended(child):
    table = ProcTable()
    (member,) = table.members(0, "run-of-the-child")
    assert member.pid == child.pid
    assert table.alive(member)
    assert table.signal([member], signal.SIGKILL) == (member,)
    child.wait()
    assert not table.alive(member)
    assert procfs.row(child.pid) is None


@pytest.mark.usefixtures("without_procfs")
def test_a_record_without_a_start_is_known_by_its_pid(child):
    table = ProcTable()
    assert table.start_of(child.pid) == 0
    assert table.alive(Proc(child.pid, 0, 0, 0, "sleep"))
    assert not table.alive(Proc(child.pid, 1, 0, 0, "sleep"))


@pytest.mark.usefixtures("without_procfs")
def test_without_procfs_a_watchdog_is_waited_for_only_until_it_has_ended(child):
    """`down` knows it by its pid alone there."""
    clock = Counted()
    operator = SimpleNamespace(world=SimpleNamespace(clock=clock), table=ProcTable())
    assert Operator._end(operator, Proc(child.pid, 0, 0, 0, "sleep"), patience=50.0)
    assert clock.slept < 50.0
    assert child.wait() == -signal.SIGTERM


class Counted:
    """A clock on which each short sleep is a long one."""

    slept = 0.0

    def mono(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.slept += 10 * seconds


def test_a_process_that_ended_has_no_start_even_before_it_is_collected(child):
    started = procfs.start_of(child.pid)
    assert started == procfs.row(child.pid).start > 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays uncollected
    assert procfs.start_of(child.pid) == 0
    assert not ProcTable().alive(Proc(child.pid, started, 0, 0, "sleep"))
