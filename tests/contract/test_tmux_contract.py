"""One suite over the simulated and every real tmux there is: the simulation may not lie about the port.

`AO_TMUX=/one/tmux:/another/tmux` names more of them than the one on PATH.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from random import Random

import pytest

from fleet.core.seen import PaneView, ServerId
from fleet.ports import Tmux, Unavailable
from tests.contract.stage import CAT, EXIT, PROJECT, SLEEP, RealStage, SimStage, Stage, on_path, tmuxes
from tests.deadlines import patience
from tests.outcomes import DONE, EXISTS

SHORT = 1.5  # seconds a real client waits here before it gives up on a stopped server


def _by_processes(socket: str, root: str, project: str) -> Tmux:
    tmux = pytest.importorskip("fleet.host.tmux.client")
    return tmux.TmuxServer(socket, project, os.path.join(root, "log"), timeout=patience(SHORT))


def _by_control_client(socket: str, root: str, project: str) -> Tmux:
    control = pytest.importorskip("fleet.host.tmux.control")
    return control.ControlTmux(_by_processes(socket, root, project))


TMUXES = tmuxes()
REAL = [pytest.param(version, marks=pytest.mark.tmux) for version in TMUXES] or [
    pytest.param("", marks=[pytest.mark.tmux, pytest.mark.skip(reason="there is no tmux")])
]


@pytest.fixture(
    params=[
        "simulated",
        *(
            pytest.param((way, version), marks=pytest.mark.tmux, id=f"{way}-{version}")
            for version in TMUXES
            for way in ("processes", "control")
        ),
    ]
)
def stage(request, tmp_path, monkeypatch) -> Iterator[Stage]:
    if request.param == "simulated":
        yield SimStage()
        return
    way, version = request.param
    make = _by_processes if way == "processes" else _by_control_client
    real = real_stage(tmp_path, monkeypatch, version, make)
    try:
        yield real
    finally:
        real.close()


def real_stage(tmp_path, monkeypatch, version: str, make: Callable[[str, str, str], Tmux]) -> RealStage:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", on_path(TMUXES[version], str(folder)))
    return RealStage(str(tmp_path), f"aotest-{uuid.uuid4().hex[:10]}", make)


def panes(stage: Stage) -> dict[str, PaneView]:
    return {p.ref.session: p for p in stage.tmux.listing().panes}


def up(stage: Stage, *names: str, program: str = SLEEP) -> dict[str, PaneView]:
    answers = stage.tmux.create([stage.launch(n, program) for n in names])
    assert answers == dict.fromkeys(names, DONE)
    return panes(stage)


def dead(stage: Stage, name: str) -> PaneView:
    """Wait until the pane is dead and its status is known."""

    def gone() -> bool:
        stage.tmux.reap()
        pane = panes(stage)[name]
        return pane.dead and (pane.exit_code is not None or pane.exit_signal is not None)

    stage.until(gone)
    return panes(stage)[name]


def test_no_server_is_said_positively(stage):
    listing = stage.tmux.listing()
    assert listing.server is None
    assert listing.panes == ()


def test_what_was_created_is_listed_with_run_stamp_and_pid(stage):
    pane = up(stage, "x-a")["x-a"]
    assert (pane.ref.run, pane.project, pane.dead) == ("run-x-a", PROJECT, False)
    assert pane.ref.pid > 0
    assert pane.ref.server == stage.tmux.listing().server


def test_a_taken_name_says_exists_and_the_first_one_is_untouched(stage):
    first = up(stage, "x-a")["x-a"]
    assert stage.tmux.create([stage.launch("x-a", SLEEP, run="other")]) == {"x-a": EXISTS}
    assert panes(stage)["x-a"].ref == first.ref


def test_a_taken_name_does_not_spoil_the_rest_of_the_batch(stage):
    up(stage, "x-b")
    answers = stage.tmux.create([stage.launch(n, SLEEP) for n in ("x-a", "x-b", "x-c")])
    assert answers == {"x-a": DONE, "x-b": EXISTS, "x-c": DONE}
    assert set(panes(stage)) == {"x-a", "x-b", "x-c"}


def test_an_exit_code_stays_to_be_read(stage):
    stage.tmux.create([stage.launch("x-a", EXIT)])
    pane = dead(stage, "x-a")
    assert (pane.exit_code, pane.exit_signal) == (3, None)


def test_a_killing_signal_stays_to_be_read(stage):
    pane = up(stage, "x-a")["x-a"]
    stage.kill(pane, signal.SIGKILL)
    assert dead(stage, "x-a").exit_signal == signal.SIGKILL


def test_the_dead_are_known_by_the_pid_they_had(stage):
    alive = up(stage, "x-a")["x-a"]
    stage.kill(alive, signal.SIGKILL)
    assert dead(stage, "x-a").ref == alive.ref


def test_nothing_is_typed_into_the_dead_and_the_server_lives(stage):
    up(stage, "x-b")
    stage.tmux.create([stage.launch("x-a", EXIT)])
    pane = dead(stage, "x-a")
    assert stage.tmux.paste(pane.ref, "hello") != ""
    assert stage.tmux.press(pane.ref, ["Enter"]) != ""
    assert not panes(stage)["x-b"].dead


def test_the_dead_can_be_removed(stage):
    up(stage, "x-b")
    stage.tmux.create([stage.launch("x-a", EXIT)])
    assert stage.tmux.remove([dead(stage, "x-a").ref]) == {"x-a": ""}
    assert set(panes(stage)) == {"x-b"}


def test_removing_takes_the_exact_name_and_no_other(stage):
    before = up(stage, "x-a", "x-ab", "x-")
    assert stage.tmux.remove([before["x-a"].ref]) == {"x-a": ""}
    assert stage.tmux.remove([before["x-a"].ref])["x-a"] != ""
    assert set(panes(stage)) == {"x-ab", "x-"}


def test_a_pane_that_dies_while_it_is_typed_into_is_never_another_one(stage):
    """Tmux hears of a death in two steps: between them the guard lets a paste pass, and tmux refuses it."""
    said = set()
    for turn in range(24):
        name = f"x-{turn}"
        pane = up(stage, name, program=CAT)[name]
        stage.kill(pane, signal.SIGKILL, after=0.0005 * (turn % 8))
        said |= {stage.tmux.paste(pane.ref, "into the dark") for _ in range(3)}
        dead(stage, name)
        assert stage.tmux.remove([pane.ref]) == {name: ""}
    assert said <= {"", "pane is dead"}


@pytest.mark.parametrize("stale", ["run", "pid", "pane", "server"])
def test_a_stale_ref_is_refused_and_nothing_happens(stage, stale):
    pane = up(stage, "x-a", program=CAT)["x-a"]
    changes = {
        "run": {"run": "older"},
        "pid": {"pid": pane.ref.pid + 1},
        "pane": {"pane": "%77"},
        "server": {"server": ServerId(1, 1)},
    }
    ref = pane.ref._replace(**changes[stale])
    assert stage.tmux.paste(ref, "hello") != ""
    assert stage.tmux.press(ref, ["Enter"]) != ""
    assert stage.tmux.remove([ref])["x-a"] != ""
    assert "hello" not in stage.tmux.capture([pane.ref])["x-a"]
    assert not panes(stage)["x-a"].dead


def test_text_and_key_arrive(stage):
    pane = up(stage, "x-a", program=CAT)["x-a"]
    assert stage.tmux.paste(pane.ref, "make it so; $(now) #{pid}") == ""
    stage.until(lambda: "make it so; $(now) #{pid}" in stage.tmux.capture([pane.ref])["x-a"])
    assert stage.tmux.press(pane.ref, ["Enter"]) == ""
    stage.until(lambda: stage.tmux.capture([pane.ref])["x-a"].count("make it so; $(now) #{pid}") == 2)


def test_a_pane_that_is_gone_is_left_out_of_the_captures(stage):
    before = up(stage, "x-a", "x-b", "x-c")
    stage.tmux.remove([before["x-b"].ref])
    assert set(stage.tmux.capture([before[n].ref for n in ("x-a", "x-b", "x-c")])) == {"x-a", "x-c"}


def test_sessions_of_other_people_are_foreign_and_left_alone(stage):
    up(stage, "x-a")
    stage.user_session("x-mine")
    listing = stage.tmux.listing()
    assert [p.ref.session for p in listing.panes] == ["x-a"]
    assert "x-mine" in listing.foreign
    assert stage.tmux.create([stage.launch("x-mine", SLEEP)]) == {"x-mine": EXISTS}
    assert "x-mine" in stage.user_sessions()


def test_a_renamed_session_is_still_listed_as_ours_with_its_run(stage):
    pane = up(stage, "x-a")["x-a"]
    stage.rename("x-a", "elsewhere")
    renamed = panes(stage)["elsewhere"]
    assert (renamed.ref.run, renamed.ref.pid) == (pane.ref.run, pane.ref.pid)
    assert stage.tmux.create([stage.launch("x-a", SLEEP, run="new")]) == {"x-a": DONE}


def test_copy_mode_is_seen_and_nothing_is_typed_into_it(stage):
    pane = up(stage, "x-a", program=CAT)["x-a"]
    stage.copy_mode("x-a")
    assert panes(stage)["x-a"].in_mode
    assert stage.tmux.paste(pane.ref, "hello") != ""
    assert stage.tmux.press(pane.ref, ["Enter"]) != ""


def test_a_new_server_has_another_identity_and_refuses_old_refs(stage):
    old = up(stage, "x-a", "x-b")
    stage.kill_server()
    assert stage.tmux.listing().server is None
    new = up(stage, "x-b")
    assert new["x-b"].ref.server != old["x-b"].ref.server
    assert stage.tmux.remove([old["x-b"].ref])["x-b"] != ""
    assert stage.tmux.paste(old["x-b"].ref, "hello") != ""
    assert set(panes(stage)) == {"x-b"}


def test_a_stopped_server_is_unavailable_and_not_gone(stage):
    pane = up(stage, "x-a")["x-a"]
    stage.hang()
    with pytest.raises(Unavailable):
        stage.tmux.listing()
    stage.unhang()
    stage.until(lambda: _answers(stage))
    assert panes(stage)["x-a"].ref == pane.ref


def test_a_create_that_timed_out_happened_once_or_not_at_all(stage):
    up(stage, "x-a")
    stage.hang()
    with pytest.raises(Unavailable):
        stage.tmux.create([stage.launch("x-b", SLEEP, run="first")])
    stage.unhang()
    stage.until(lambda: _answers(stage))
    taken = "x-b" in panes(stage)
    answer = stage.tmux.create([stage.launch("x-b", SLEEP, run="second")])["x-b"]
    assert answer in ((EXISTS,) if taken else (DONE, EXISTS))
    assert panes(stage)["x-b"].ref.run == ("first" if answer == EXISTS else "second")


def _answers(stage: Stage) -> bool:
    try:
        stage.tmux.listing()
    except Unavailable:
        return False
    return True


@pytest.mark.parametrize("version", REAL)
@pytest.mark.parametrize("seed", range(4))
def test_random_sequences_end_in_the_same_world(tmp_path, monkeypatch, seed, version):
    real = real_stage(tmp_path, monkeypatch, version, _by_processes)
    try:
        _walk_together(SimStage(), real, Random(seed))
    finally:
        real.close()


NAMES = ("x-a", "x-ab", "x-b", "x-", "y")


def _walk_together(sim: SimStage, real: RealStage, rng: Random) -> None:
    known: dict[str, tuple[PaneView, PaneView]] = {}  # name -> the newest panes either side ever showed
    for step in range(40):
        verb = rng.choice(
            ("create", "create", "remove", "paste", "press", "kill", "user", "rename", "capture")
        )
        name = rng.choice(NAMES)
        outcomes = []
        for side, stage in enumerate((sim, real)):
            pane = known[name][side] if name in known else None
            outcomes.append(_do(stage, verb, name, pane, f"run{step}"))
        assert outcomes[0] == outcomes[1], (step, verb, name)
        left, right = _settled(sim, real)
        assert _shape(left) == _shape(right), (step, verb, name)
        for both in left:
            known[both] = (left[both], right[both])


def _do(stage: Stage, verb: str, name: str, pane: PaneView | None, run: str) -> object:
    if verb == "create":
        return stage.tmux.create([stage.launch(name, CAT, run=run)])
    if verb == "user" and name not in stage.user_sessions():
        return stage.user_session(name)
    if verb == "rename" and name in panes(stage) and f"{name}r" not in stage.user_sessions():
        return stage.rename(name, f"{name}r")
    if pane is None:
        return None
    if verb == "remove":
        return stage.tmux.remove([pane.ref])[name] == ""
    if verb == "paste":
        return stage.tmux.paste(pane.ref, "abc") == ""
    if verb == "press":
        return stage.tmux.press(pane.ref, ["x"]) == ""
    if verb == "capture":
        return name in stage.tmux.capture([pane.ref])
    alive = panes(stage).get(name)
    if verb == "kill" and alive is not None and not alive.dead:
        stage.kill(alive, signal.SIGKILL)
        dead(stage, name)
    return None


def _settled(sim: Stage, real: Stage) -> tuple[dict[str, PaneView], dict[str, PaneView]]:
    """Both worlds, once they agree; a real server may need a moment to show what was done to it."""
    deadline = time.monotonic() + patience(2)
    while (both := (panes(sim), panes(real))) and time.monotonic() < deadline:
        if _shape(both[0]) == _shape(both[1]):
            break
        time.sleep(0.02)
    return both


def _shape(found: dict[str, PaneView]) -> dict[str, tuple[str, bool, int | None]]:
    return {n: (p.ref.run, p.dead, p.exit_signal) for n, p in found.items()}
