"""`wait`, `ensure` and `gate`: what they find decides what they say and do, without a tmux."""

from __future__ import annotations

import io as streams
from types import SimpleNamespace
from typing import Self

import pytest

from fleet.config import parse
from fleet.core.desired import Desire, Desired, Want
from fleet.core.loop.loop_case import GateResult, LoopSeen, Place
from fleet.core.words import EventType, WatchdogState
from fleet.ports import Held
from fleet.verbs import ensure, gate, wait
from fleet.verbs.io import Io
from fleet.verbs.main import parse as parse_words

CONFIG = """
[defaults]
session_prefix = "t-"
log_dir = "state"
backend = "scripted"

[[agent]]
name = "a"
kind = "loop"
role = "builder"

[[service]]
name = "clean"
command = "sleep 9"

[loop]
kickoff_template = "k.md"
roles_dir = "."

[[loop.phases]]
id = "p1"
plan = "p1.md"
status = "s1.md"
gates = [{ run = "one" }, { run = "two" }, { run = "three" }]

[[loop.phases]]
id = "p2"
plan = "p2.md"
status = "s2.md"
"""


class Clock:
    """Time passes only where a verb waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def mono(self) -> float:
        return self.now

    wall = mono

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def fleet(tmp_path):
    return parse(CONFIG, str(tmp_path / "agents.toml"), is_file=lambda _path: True)


def said(module, line: str, fleets: object = None) -> tuple[int, str, Clock]:
    clock, out = Clock(), streams.StringIO()
    _, args = parse_words(tuple(line.split()))
    return module.run(args, Io(out, out, fleets, clock)), out.getvalue(), clock


def facts(state: str = "IDLE", *, index: int | None = 0, complete: bool = False) -> dict[str, object]:
    loop = {"id": f"p{(index or 0) + 1}", "index": index, "complete": complete}
    row = {"name": "a", "state": "RUNNING", "detail": state}
    return {"loop": loop, "agents": [row], "services": [{"name": "clean", "state": "STOPPED", "detail": ""}]}


# --- wait -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "looks", "code"),
    [
        ("--agent a --state IDLE", [facts()], 0),
        ("--agent a --state idle", [facts()], 0),
        ("--agent a --state RUNNING", [facts()], 0),
        ("--agent clean --state RUNNING", [facts()], 1),
        ("--agent clean --agent a --state STOPPED", [facts()], 1),  # each of them
        ("--agent a --state IDLE", [facts("WORKING"), facts("WORKING"), facts()], 0),
        ("--agent a --state ASKING", [facts("WORKING")], 1),
        ("--phase p1", [facts()], 0),
        ("--phase p2", [facts()], 1),
        ("--phase p2", [facts(), facts(index=1)], 0),
        ("--phase p1", [facts(index=1)], 0),  # or a later one
        ("--phase p1", [facts(index=None)], 1),  # its position is not known
        ("--phase p2", [facts(index=None, complete=True)], 0),
        ("--complete", [facts(index=1)], 1),
        ("--complete", [facts(index=1), facts(index=2, complete=True)], 0),
    ],
)
def test_wait_ends_when_all_is_as_asked_for_or_its_time_is_over(fleet, monkeypatch, line, looks, code):
    shown = iter(looks)
    last = [looks[0]]

    def look(_fleet, _clock):
        last[0] = next(shown, last[0])
        return last[0]

    monkeypatch.setattr(wait, "running_fleet", lambda *_: fleet)
    monkeypatch.setattr(wait, "gather", look)
    answer, text, clock = said(wait, f"wait {line} --timeout 5")
    assert answer == code
    assert ("timed out after 5 s" in text) is bool(code)
    assert clock.now - 1000.0 == (5.0 if code else (len(looks) - 1) * wait.POLL_S)


# --- ensure ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "dog", "why", "done", "code"),
    [
        ({}, WatchdogState.STOPPED, "", [], 0),
        ({"a": "down", "clean": "down"}, WatchdogState.STOPPED, "", [], 0),
        ({"gone": "up"}, WatchdogState.STOPPED, "", [], 0),  # the file does not name it any more
        ({"a": "up"}, WatchdogState.RUNNING, "", [], 0),
        ({"clean": "up"}, WatchdogState.STOPPED, "", ["start", EventType.WATCHDOG_ENSURED], 0),
        ({"a": "up"}, WatchdogState.STALE, "", ["stop", "start", EventType.WATCHDOG_ENSURED], 0),
        ({"a": "up"}, WatchdogState.STOPPED, "no tmux", ["start"], 1),
    ],
)
def test_ensure_starts_the_watchdog_only_where_it_is_wanted_and_missing(
    fleet, monkeypatch, wanted, dog, why, done, code
):
    acts: list[str] = []
    operator = SimpleNamespace(
        end_lost_clients=lambda: None,
        make_room=lambda: None,
        stop_watchdog=lambda: acts.append("stop"),
        start_watchdog=lambda _argv: acts.append("start") or why,
        house=SimpleNamespace(
            events=SimpleNamespace(record=lambda kind, reason: acts.append(kind)),
            desired=SimpleNamespace(load=lambda: Desired(1, {n: Desire(Want(w)) for n, w in wanted.items()})),
        ),
    )
    fleets = SimpleNamespace(running=lambda *_, trust: fleet, operator=lambda _fleet: operator)
    monkeypatch.setattr(ensure, "_beat", lambda _operator: SimpleNamespace(state=dog, pid=7))
    answer, text, _clock = said(ensure, "ensure", fleets)
    assert (answer, acts) == (code, done)
    assert why in text


# --- the watchdog that `up` and `restart` find ----------------------------------------------------------

NOW = 10_000.0


class Found:
    """An operator whose watchdog began and ticked then; keeps what a verb does to it."""

    def __init__(self, since: float | None, last: float | None) -> None:
        self.did: list[str] = []
        clock = SimpleNamespace(wall=lambda: NOW, mono=lambda: 0.0, sleep=lambda seconds: None)
        file = SimpleNamespace(mtime_ns=int(last * 1e9)) if last is not None else None
        disk = SimpleNamespace(stat=lambda path: file, read=self._read)
        self.world = SimpleNamespace(clock=clock, disk=disk)
        self.house = SimpleNamespace(path=lambda name: name, state_dir="state")
        self.locks = SimpleNamespace(holder=lambda: Held("", 7, 1, since) if since is not None else None)
        self.fleet = SimpleNamespace(watchdog=SimpleNamespace(signal_interval=2.0), config_path="agents.toml")

    def _read(self, path: str, cap: int) -> bytes:
        raise FileNotFoundError(path)

    def stop_watchdog(self) -> bool:
        self.did.append("stop")
        return True

    def start_watchdog(self, argv: list[str]) -> str:
        self.did.append("start")
        return ""


@pytest.mark.parametrize(
    ("since", "last", "did", "said"),
    [
        (NOW - 60, NOW - 1, ["start"], ""),
        (NOW - 60, NOW - 50, ["stop", "start"], "has not ticked for 50 s: `up` replaces it"),
        # another `up` has just started it: the heartbeat is of the watchdog before it
        (NOW - 1, NOW - 3600, ["start"], ""),
        (None, NOW - 3600, ["start"], ""),
    ],
)
def test_up_replaces_a_watchdog_that_hangs_and_no_other(since, last, did, said):
    operator, err = Found(since, last), streams.StringIO()
    assert ensure.start_watchdog(operator, Io(streams.StringIO(), err), 0.0, quiet=True) == ""
    assert operator.did == did
    assert said in err.getvalue()
    assert bool(said) == bool(err.getvalue())


def test_a_verb_that_starts_no_watchdog_says_what_it_found():
    said = []
    for since, last in ((None, None), (NOW - 60, NOW - 50), (NOW - 1, NOW - 3600)):
        err = streams.StringIO()
        ensure.say_of_watchdog(Found(since, last), Io(streams.StringIO(), err))
        said.append(err.getvalue())
    assert said[0].startswith("no watchdog runs: no agent is restarted")
    assert "(process 7) has not ticked for 50 s: no agent is restarted" in said[1]
    assert said[2] == ""


# --- gate -----------------------------------------------------------------------------------------------


class Runner:
    """Gates that say what was agreed upon."""

    def __init__(self, passes: str) -> None:
        self.passes = passes
        self.ran = ""

    def with_tree(self, seen: LoopSeen) -> LoopSeen:
        return seen

    def run(self, step: int) -> GateResult:
        self.ran += str(step)
        return GateResult("p1", step, "", "", ok=self.passes[step] == "y", said="so")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("line", "passes", "ran", "code"),
    [
        ("gate", "yyy", "012", 0),
        ("gate", "yny", "01", 1),
        ("gate --all", "yny", "012", 1),
        ("gate", "yyn", "012", 1),
    ],
)
def test_gate_stops_at_the_first_that_fails_and_passes_only_if_all_do(
    fleet, monkeypatch, line, passes, ran, code
):
    runner = Runner(passes)
    monkeypatch.setattr(gate, "running_fleet", lambda *_, trust: fleet)
    monkeypatch.setattr(gate, "_position", lambda *_: (Place(0, "p1"), LoopSeen()))
    monkeypatch.setattr(gate, "_Runner", lambda *_: runner)
    monkeypatch.setattr(gate, "plan_gate", lambda _phase, index, *_: index)
    answer, text, _clock = said(gate, line)
    assert (answer, runner.ran) == (code, ran)
    assert ("FAIL" in text) is bool(code)
    assert ("not run" in text) is (len(ran) < 3)
