"""A third opinion: what libtmux, which shares no line with us, says of the same server.

The other suite holds two of our own clients and the simulation against one another; a misreading that all of
them share would pass there. libtmux answers what it can: sessions, panes, pids, deaths, screens.
"""

from __future__ import annotations

import os
import signal

import libtmux
import pytest

from tests.contract.stage import CAT, EXIT, SLEEP
from tests.contract.test_tmux_contract import (
    TMUXES,
    _by_control_client,
    _by_processes,
    dead,
    panes,
    real_stage,
    up,
)

pytestmark = pytest.mark.tmux


@pytest.fixture(
    params=[(way, version) for version in TMUXES for way in (_by_processes, _by_control_client)],
    ids=lambda param: f"{param[0].__name__.removeprefix('_by_')}-{param[1]}",
)
def stage(request, tmp_path, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    way, version = request.param
    made = real_stage(tmp_path, monkeypatch, version, way)
    try:
        yield made
    finally:
        made.close()


def theirs(stage) -> dict[str, libtmux.Pane]:
    """The panes of the fleet's sessions, by session, as libtmux lists them."""
    server = libtmux.Server(socket_name=stage._socket)
    return {
        pane.session_name: pane for pane in server.panes if str(pane.session_name).startswith(("x-", "y-"))
    }


def test_libtmux_lists_the_same_sessions_and_processes(stage):
    up(stage, "x-a", "x-b", "x-c")
    stage.user_session("y-mine")
    ours = panes(stage)
    seen = theirs(stage)
    assert set(seen) == {*ours, "y-mine"}
    assert "y-mine" in stage.tmux.listing().foreign
    assert {name: int(seen[name].pane_pid) for name in ours} == {n: p.ref.pid for n, p in ours.items()}
    assert all(os.path.exists(f"/proc/{p.ref.pid}") for p in ours.values())
    stage.rename("x-b", "x-z")
    assert set(theirs(stage)) - {"y-mine"} == set(panes(stage)) == {"x-a", "x-z", "x-c"}
    stage.tmux.remove([panes(stage)["x-a"].ref])
    assert set(theirs(stage)) - {"y-mine"} == set(panes(stage)) == {"x-z", "x-c"}


def test_libtmux_knows_the_same_deaths(stage):
    stage.tmux.create(
        [stage.launch("x-exit", EXIT), stage.launch("x-kill", SLEEP), stage.launch("x-live", SLEEP)]
    )
    stage.kill(panes(stage)["x-kill"], signal.SIGKILL)
    for name in ("x-exit", "x-kill"):
        dead(stage, name)
    ours, seen = panes(stage), theirs(stage)
    assert {n: seen[n].pane_dead == "1" for n in ours} == {n: p.dead for n, p in ours.items()}
    assert int(seen["x-exit"].pane_dead_status) == ours["x-exit"].exit_code == 3
    assert ours["x-kill"].exit_signal == signal.SIGKILL


def test_libtmux_reads_the_same_screen_and_types_what_we_read(stage):
    ref = up(stage, "x-a", program=CAT)["x-a"].ref
    assert stage.tmux.paste(ref, "written by us") == ""
    stage.until(lambda: "written by us" in "\n".join(theirs(stage)["x-a"].capture_pane()))
    theirs(stage)["x-a"].send_keys(" and by them", enter=True)
    stage.until(lambda: stage.tmux.capture([ref])["x-a"].count("written by us and by them") == 2)
    ours = [line.rstrip() for line in stage.tmux.capture([ref])["x-a"].splitlines() if line.strip()]
    assert ours == [line.rstrip() for line in theirs(stage)["x-a"].capture_pane() if line.strip()]
