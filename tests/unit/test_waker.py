"""What ends a sleep, and what must not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from fleet.host.locks import nudge
from fleet.host.waker import Waker
from fleet.ports import Hint, PaneDied

LONG = 30.0
BUILDER = PaneDied("builder")


@pytest.fixture
def waker(tmp_path):
    made = Waker(str(tmp_path))
    yield made
    made.close()


def test_nothing_happening_ends_with_the_time_and_no_key(waker):
    assert waker.wait(0.0) == frozenset()


def test_a_death_wakes_once(waker):
    child = subprocess.Popen(["sleep", "1000"])
    waker.watch_pid(BUILDER, child.pid)
    assert waker.wait(0.0) == frozenset()
    child.kill()
    child.wait()
    assert waker.wait(LONG) == {BUILDER}
    waker.watch_pid(BUILDER, child.pid)
    assert waker.wait(0.0) == frozenset()


def test_a_process_that_died_before_it_was_watched_still_wakes(waker):
    child = subprocess.Popen(["true"])
    child.wait()
    waker.watch_pid(BUILDER, child.pid)
    assert waker.wait(LONG) == {BUILDER}


def test_a_new_process_under_the_same_key_replaces_the_old_one(waker):
    first, second = subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["sleep", "1000"])
    waker.watch_pid(BUILDER, first.pid)
    waker.watch_pid(BUILDER, second.pid)
    first.kill()
    first.wait()
    assert waker.wait(0.0) == frozenset()
    second.kill()
    second.wait()
    assert waker.wait(LONG) == {BUILDER}


def test_a_nudge_wakes_whoever_listens_and_says_so(tmp_path, waker):
    assert nudge(str(tmp_path))
    assert nudge(str(tmp_path))
    assert waker.wait(LONG) == {Hint.NUDGE}
    assert waker.wait(0.0) == frozenset()
    assert os.stat(tmp_path / "wake").st_mode & 0o777 == 0o600


def test_a_nudge_with_nobody_listening_is_answered_with_no(tmp_path):
    assert not nudge(str(tmp_path))
    Waker(str(tmp_path)).close()
    assert not nudge(str(tmp_path))
    os.unlink(tmp_path / "wake")
    (tmp_path / "wake").write_text("not a pipe", encoding="ascii")
    assert not nudge(str(tmp_path))
    Waker(str(tmp_path)).close()


def test_a_poke_from_another_thread_ends_the_sleep(waker):
    threading.Timer(0.05, waker.poke, [Hint.INTERRUPT]).start()
    assert waker.wait(LONG) == {Hint.INTERRUPT}


def test_a_descriptor_closed_and_reused_by_its_owner_does_not_confuse_us(waker):
    reader, writer = os.pipe()
    waker.watch_fd(Hint.TMUX, reader)
    os.close(reader)
    again, other = os.pipe()
    assert again == reader
    os.write(other, b"x")
    assert waker.wait(0.0) == frozenset()
    waker.watch_fd(Hint.TMUX, again)
    assert waker.wait(LONG) == {Hint.TMUX}
    waker.watch_fd(Hint.TMUX, -1)
    assert waker.wait(0.0) == frozenset()
    for fd in (again, other, writer):
        os.close(fd)


@pytest.mark.parametrize("library", [True, False])
def test_a_file_replaced_or_a_signal_dropped_wakes_with_its_key(tmp_path, waker, monkeypatch, library):
    if library:
        pytest.importorskip("watchfiles")
    else:
        monkeypatch.setitem(sys.modules, "watchfiles", None)  # as where it is not installed
        monkeypatch.setattr("fleet.host.waker._POLL_S", 0.05)
    signals, config = tmp_path / "signals", tmp_path / "agents.toml"
    (signals / "builder").mkdir(parents=True)
    config.write_text("a", encoding="ascii")
    waker.watch_files([(Hint.CONFIG, str(config)), (Hint.SIGNALS, str(signals))])
    seen: set[object] = set()
    for _ in range(200):  # the thread may not listen yet: change until it hears
        fresh = tmp_path / "fresh"
        fresh.write_text("b", encoding="ascii")
        os.replace(fresh, config)
        (signals / "builder" / "1.json").write_text("{}", encoding="ascii")
        seen |= waker.wait(0.2)
        if seen == {Hint.CONFIG, Hint.SIGNALS}:
            break
    assert seen == {Hint.CONFIG, Hint.SIGNALS}
