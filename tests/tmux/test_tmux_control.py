"""The control client: no process a tick, never a wrong answer, and away when it leaves."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from fleet.host.tmux.control import ControlTmux
from fleet.ports import Unavailable
from tests.outcomes import DONE
from tests.tmux.conftest import until

pytestmark = pytest.mark.tmux


@pytest.fixture
def control(floor):
    made = ControlTmux(floor.server)
    yield made
    made.close()


def sessions(floor):
    return set(floor.raw("list-sessions", "-F", "#{session_name}").split())


def test_a_steady_look_starts_no_process(floor, control, monkeypatch):
    view = floor.start("a-one", "echo here; exec sleep 1000")
    until(lambda: "here" in control.capture([view.ref])["a-one"])
    assert control.connected

    def forbidden(*_, **__):
        raise AssertionError("a process was started")

    with monkeypatch.context() as patch:
        patch.setattr("subprocess.Popen", forbidden)
        for _ in range(20):
            assert [p.ref for p in control.listing().panes] == [view.ref]
            assert "here" in control.capture([view.ref])["a-one"]


def test_the_anchor_is_in_no_listing_and_goes_when_the_client_does(floor, control):
    floor.start("a-one")
    listing = control.listing()
    assert listing.foreign == ()
    assert floor.server.listing().foreign == ()
    assert len(sessions(floor)) == 2
    control.close()
    until(lambda: sessions(floor) == {"a-one"})


def test_an_anchor_left_behind_is_taken_over_and_never_multiplied(floor, control):
    floor.start("a-one")
    for _ in range(3):
        control.listing()
        os.kill(control._client.pid, signal.SIGKILL)
        control._client.wait()
        control._retry_at = 0.0
    assert control.listing().foreign == ()
    assert len(sessions(floor)) == 2


def test_a_client_that_comes_and_goes_never_takes_the_server_down(floor):
    """I9: with destroy-unattached on its anchor, tmux 3.3a crashed in one of six departures."""
    keeper = floor.start("a-one")
    for _ in range(25):
        control = ControlTmux(floor.server)
        control.listing()
        assert control.connected
        floor.server.listing()
        control.close()
    assert floor.view("a-one").ref == keeper.ref
    assert sessions(floor) == {"a-one"}


def test_a_client_that_was_killed_is_replaced(floor, control):
    view = floor.start("a-one")
    control.listing()
    os.kill(control._client.pid, signal.SIGKILL)
    control._client.wait()
    assert [p.ref for p in control.listing().panes] == [view.ref]
    control._retry_at = 0.0
    control.listing()
    assert control.connected


def test_a_server_that_died_is_positively_gone_and_the_next_one_is_found(floor, control):
    view = floor.start("a-one")
    control.listing()
    os.kill(view.ref.server.pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{view.ref.server.pid}/exe"))
    assert control.listing().server is None
    again = floor.start("a-one")
    assert until(lambda: control.listing().panes)[0].ref == again.ref
    control._retry_at = 0.0
    control.listing()
    assert control.connected


def test_no_server_is_ever_founded_by_looking(floor, control):
    assert control.listing().server is None
    assert not control.connected
    assert floor.server.listing().server is None


def test_a_hanging_server_is_unavailable_and_its_late_answer_is_never_taken_for_another(floor):
    view = floor.start("a-one", "echo one; exec sleep 1000")
    other = floor.start("a-two", "echo two; exec sleep 1000")
    until(lambda: "two" in floor.screen("a-two"))
    control = ControlTmux(floor.server)
    try:
        control.listing()
        assert control.connected
        floor.server.timeout = 0.3
        os.kill(view.ref.server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable):
                control.capture([view.ref])
        finally:
            os.kill(view.ref.server.pid, signal.SIGCONT)
        floor.server.timeout = 20.0
        control._retry_at = 0.0
        screens = control.capture([other.ref])
        assert screens["a-two"].startswith("two")
    finally:
        control.close()


def test_a_session_that_comes_or_goes_stirs_the_loop(floor, control):
    floor.start("a-one")
    control.listing()
    control.drain()
    assert not control.drain()
    view = floor.start("a-two")
    until(control.drain)
    control.drain()
    floor.server.remove([view.ref])
    until(control.drain)


def test_the_end_of_the_connection_stirs_the_loop(floor, control):
    view = floor.start("a-one")
    control.listing()
    os.kill(view.ref.server.pid, signal.SIGKILL)
    until(lambda: control.drain() and control.fileno() == -1)


def test_hundreds_of_captures_come_back_each_with_its_own_screen(floor, control):
    launches = [floor.launch(f"a-{n}", f"echo screen-{n}-; exec sleep 1000") for n in range(30)]
    assert set(floor.server.create(launches).values()) == {DONE}
    refs = [p.ref for p in control.listing().panes]
    until(lambda: all(f"-{r.session[2:]}-" in s for r in refs for s in [control.capture([r])[r.session]]))
    for _ in range(3):
        screens = control.capture(refs * 12)
        assert {n: s.split("\n")[0] for n, s in screens.items()} == {
            r.session: f"screen-{r.session[2:]}-" for r in refs
        }


def test_a_pane_that_prints_the_protocol_cannot_forge_an_answer(floor, control):
    body = """while :; do printf '%%end %s %s 1\\n%%error 1 2 3\\n%%exit\\n' 1 2; sleep 0.001; done"""
    noisy = floor.start("a-noisy", body)
    calm = floor.start("a-calm", "echo calm; exec sleep 1000")
    until(lambda: "calm" in floor.screen("a-calm"))
    for _ in range(30):
        assert control.capture([noisy.ref, calm.ref])["a-calm"].startswith("calm")
        assert len(control.listing().panes) == 2
    assert control.connected


def test_a_window_is_not_shrunk_by_the_control_client(floor, control):
    floor.start("a-one")
    control.listing()
    size = floor.raw("display-message", "-p", "-t", "=a-one:", "#{window_width}x#{window_height}")
    assert size.strip() == "200x50"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["process", "control"])
def test_a_paste_racing_the_death_of_its_pane_never_takes_the_server_down(floor, way):
    """I9, K1: on tmux before 3.4 a paste into a dead pane crashes the server and every agent with it."""
    control = ControlTmux(floor.server)
    speaker = control if way == "control" else floor.server
    keeper = floor.start("a-keeper")
    said: set[str] = set()
    try:
        for turn in range(75):
            view = floor.start("a-victim", "exec cat")
            killer = threading.Timer(0.0005 * (turn % 8), os.kill, [view.ref.pid, signal.SIGKILL])
            killer.start()
            for _ in range(3):
                said.add(speaker.paste(view.ref, "into the dark"))
            killer.join()
            speaker.remove([view.ref])
        assert floor.view("a-keeper").ref == keeper.ref
        assert said <= {"", "pane is dead"}
        assert "pane is dead" in said
    finally:
        control.close()
