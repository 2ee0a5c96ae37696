"""One watchdog, one writer at a time, and locks that end with their process (I27)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fleet.core.words import WatchdogState
from fleet.host.clock import RealClock
from fleet.host.locks import WatchdogLock, alone, beat_of, state_lock, watchdog_holder
from fleet.host.procfs import start_of
from fleet.ports import Held, LockError

ROOT = Path(__file__).parents[2]

HOLDER = """
import sys
from fleet.host.locks import WatchdogLock
from fleet.ports import Held
from fleet.host.clock import RealClock
try:
    lock = WatchdogLock(sys.argv[1], RealClock())
    lock.acquire()
    print("mine", flush=True)
except Held as held:
    print(f"held by {held.pid}", flush=True)
sys.stdin.read()
"""


def another(state):
    """A process that tries to take the lock and keeps it until its input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return child, child.stdout.readline().strip()


def end(child):
    child.stdin.close()
    child.wait()
    child.stdout.close()


def test_the_second_watchdog_is_told_who_holds_the_lock(tmp_path):
    """T35, REL-5."""
    child, said = another(tmp_path)
    assert said == "mine"
    with pytest.raises(Held, match=f"process {child.pid} since") as caught:
        WatchdogLock(str(tmp_path), RealClock()).acquire()
    assert (caught.value.pid, caught.value.start) == (child.pid, start_of(child.pid))
    assert watchdog_holder(str(tmp_path)).pid == child.pid
    end(child)


def test_a_killed_holder_leaves_no_lock_behind(tmp_path):
    child, _ = another(tmp_path)
    child.kill()
    end(child)
    assert watchdog_holder(str(tmp_path)) is None
    with WatchdogLock(str(tmp_path), RealClock()) as lock:
        assert lock.still_ours()


def test_of_many_starts_at_once_exactly_one_wins(tmp_path):
    children = [
        subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], cwd=ROOT, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(8)
    ]  # fmt: skip
    said = [c.stdout.readline().strip() for c in children]
    for child in children:
        end(child)
    assert said.count("mine") == 1
    assert sum(s.startswith("held by") for s in said) == 7


def test_a_lock_file_taken_away_or_replaced_is_noticed(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    lock = WatchdogLock(str(state), RealClock())
    lock.acquire()
    (state / "watchdog.lock").unlink()
    assert not lock.still_ours()
    (state / "watchdog.lock").touch()
    assert not lock.still_ours()
    lock.release()
    lock.acquire()
    assert lock.still_ours()
    shutil.move(state, tmp_path / "moved")
    assert not lock.still_ours()
    lock.release()


def test_a_released_lock_names_nobody(tmp_path):
    with WatchdogLock(str(tmp_path), RealClock()):
        assert watchdog_holder(str(tmp_path)).pid == os.getpid()
    assert watchdog_holder(str(tmp_path)) is None


def test_asking_who_holds_it_creates_nothing(tmp_path):
    """R141."""
    assert watchdog_holder(str(tmp_path / "none")) is None
    assert list(tmp_path.iterdir()) == []


def test_a_child_does_not_inherit_the_lock(tmp_path):
    """P9."""
    lock = WatchdogLock(str(tmp_path), RealClock())
    lock.acquire()
    with state_lock(str(tmp_path), RealClock()):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    lock.release()
    try:
        with WatchdogLock(str(tmp_path), RealClock()), state_lock(str(tmp_path), RealClock(), timeout=0):
            pass
    finally:
        child.kill()
        child.wait()


WRITER = """
import sys
from fleet.host.locks import state_lock
from fleet.host.clock import RealClock
path = sys.argv[1] + "/count"
for _ in range(50):
    with state_lock(sys.argv[1], RealClock(), timeout=60):
        with open(path) as file:
            number = int(file.read())
        with open(path, "w") as file:
            file.write(str(number + 1))
"""


def test_writers_under_the_state_lock_never_overlap(tmp_path):
    (tmp_path / "count").write_text("0")
    both = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT) for _ in range(3)]
    assert [p.wait() for p in both] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "150"


def test_the_state_lock_gives_up_after_its_time_and_names_the_holder(tmp_path):
    held = "import sys\nfrom fleet.host.locks import state_lock\nfrom fleet.host.clock import RealClock\n"
    held += "with state_lock(sys.argv[1], RealClock()):\n    print('in', flush=True)\n    sys.stdin.read()\n"
    child = subprocess.Popen([sys.executable, "-c", held, str(tmp_path)], cwd=ROOT, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    child.stdout.readline()
    with (
        pytest.raises(Held, match=f"process {child.pid}"),
        state_lock(str(tmp_path), RealClock(), timeout=0.05),
    ):
        pytest.fail("two holders")
    end(child)


def test_the_state_lock_may_be_taken_again_by_its_holder(tmp_path):
    with state_lock(str(tmp_path), RealClock()), state_lock(str(tmp_path), RealClock(), timeout=0):
        pass
    with state_lock(str(tmp_path), RealClock(), timeout=0):
        pass


@pytest.mark.parametrize(
    "take",
    [lambda p: WatchdogLock(p, RealClock()).acquire(), lambda p: state_lock(p, RealClock()).__enter__()],
)
def test_a_directory_that_is_not_there_or_not_writable_is_said_plainly(take, tmp_path):
    with pytest.raises(LockError, match="does not exist"):
        take(str(tmp_path / "none"))
    (tmp_path / "watchdog.lock").symlink_to("/etc/hostname")
    (tmp_path / "state.lock").mkdir()
    with pytest.raises(LockError, match="cannot lock"):
        take(str(tmp_path))


def test_a_holder_that_ended_and_was_not_collected_holds_nothing(tmp_path):
    """tmux leaves some dead children uncollected; their pid and start time are still to be seen."""
    child = subprocess.Popen(["sleep", "1000"])
    told = {"pid": child.pid, "start": start_of(child.pid), "since": 1.0}
    (tmp_path / "watchdog.lock").write_text(json.dumps(told))
    assert watchdog_holder(str(tmp_path)).pid == child.pid
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert watchdog_holder(str(tmp_path)) is None
    child.wait()


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_one_at_a_time_and_the_second_says_that_it_waits(tmp_path, kind):
    path = str(tmp_path if kind == "directory" else tmp_path / "work.lock")
    order, waiting, done = [], threading.Event(), threading.Event()

    def second():
        with alone(path, waiting.set):
            order.append("second")
        done.set()

    with alone(path):
        threading.Thread(target=second).start()
        assert waiting.wait(10)
        order.append("first")
    assert done.wait(10)
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("since", "last", "state", "age"),
    [
        (900.0, 998.0, WatchdogState.RUNNING, 2.0),
        (900.0, 910.0, WatchdogState.STALE, 90.0),
        (999.0, 10.0, WatchdogState.RUNNING, 1.0),  # it has begun, and the heartbeat is of the one before it
        (999.0, None, WatchdogState.RUNNING, 1.0),
        (900.0, None, WatchdogState.STALE, 100.0),  # it has never ticked
    ],
)
def test_a_watchdog_is_stale_when_neither_its_start_nor_its_last_tick_is_recent(since, last, state, age):
    beat = beat_of(Held("", pid=7, start=1, since=since), last, 2.0, 1000.0)
    assert (beat.state, beat.pid, beat.age) == (state, 7, age)
    assert beat_of(None, last, 2.0, 1000.0).state is WatchdogState.STOPPED
