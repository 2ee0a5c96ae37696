"""The simulated machine behaves as machines do, above all where they bite."""

from __future__ import annotations

import errno
import signal
from random import Random

import pytest

from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk
from tests.sim.entered import entered, functions, shares
from tests.sim.faults import DAILY, schedule
from tests.sim.nemesis import Nemesis
from tests.sim.processes import ProcessTable, SimProcesses


def disk(seed: int = 0) -> SimDisk:
    return SimDisk(lambda: 1.0, Random(seed), lambda _site: None)


def test_a_suspend_moves_the_wall_clock_only_and_a_boot_restarts_the_monotonic_one():
    clock = SimClock(1000.0)
    clock.advance_to(50.0)
    before = clock.mono()
    clock.jump(3600.0)
    assert (clock.wall(), clock.mono()) == (4650.0, before)
    clock.boot()
    assert clock.mono() == before - 50.0


def test_events_happen_in_order_and_may_cause_others():
    clock, seen = SimClock(0.0), []
    clock.after(2.0, lambda: seen.append("late"))
    clock.after(1.0, lambda: clock.after(0.5, lambda: seen.append("caused")))
    clock.after(1.9, lambda: seen.append("cancelled")).cancel()
    clock.advance_to(3.0)
    assert seen == ["caused", "late"]


def test_a_power_cut_keeps_what_was_synced_and_may_take_the_rest():
    kept = set()
    for seed in range(40):
        one = disk(seed)
        one.append("/j", b"first\n", sync=True)
        one.append("/j", b"second\n", sync=False)
        one.write("/d", b"durable")
        one.write("/d", b"only atomic", sync=False)
        one.power_cut()
        assert one.read("/j").startswith(b"first\n")
        kept.add((len(one.read("/j")) > 6, one.read("/d")))
    assert {k for k, _ in kept} == {True, False}
    assert {d for _, d in kept} == {b"durable", b"only atomic"}


def test_a_full_disk_refuses_writes_and_leaves_the_old_content():
    one = disk()
    one.write("/a", b"old")
    one.fault = errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        one.write("/a", b"new")
    assert one.read("/a") == b"old"


def test_pids_are_used_again_and_a_signal_never_reaches_the_wrong_one():
    clock = SimClock(0.0)
    table = ProcessTable(clock, Random(1), pid_max=205)
    port = SimProcesses(table, lambda _site: None, lambda _proc, _signum: None)
    first = table.spawn("first")
    first.run = "r1"
    view = port.tree(first.pid)[0]
    assert port.members(first.pid, "r1") == (view,)
    table.end(first, code=0)
    clock.advance_to(10.0)
    while (again := table.spawn("later")).pid != first.pid:
        table.end(again, code=0)
    assert port.signal([view], signal.SIGKILL) == ()
    assert again.alive
    again.run = "r2"
    assert port.members(first.pid, "r1") == ()


def test_children_that_shrug_off_a_hang_up_outlive_the_terminal():
    table = ProcessTable(SimClock(0.0), Random(1))
    leader = table.spawn("agent")
    plain, deaf = table.spawn("child", leader), table.spawn("daemon", leader)
    deaf.ignores = frozenset({signal.SIGHUP})
    table.hang_up(leader.pid)
    assert (leader.alive, plain.alive, deaf.alive) == (False, False, True)


def test_every_kind_of_fault_has_a_hand_and_the_schedule_follows_from_the_seed():
    assert not [kind for kind in DAILY if not callable(getattr(Nemesis, kind, None))]
    assert schedule(5, 86_400) == schedule(5, 86_400) != schedule(6, 86_400)
    assert {f.kind for s in range(30) for f in schedule(s, 86_400)} == set(DAILY)


def test_the_lines_that_a_seed_enters_are_those_of_its_functions():
    found = entered(3, 0.05, loop=False)
    tick = functions("supervisor/tick.py")["Supervisor.tick"]
    assert len(tick & found["supervisor/tick.py"]) > len(tick) / 2
    assert not functions("supervisor/tick.py")["Supervisor.close"] & found["supervisor/tick.py"]
    assert any(line.endswith("all rooms") for line in shares([found]))
