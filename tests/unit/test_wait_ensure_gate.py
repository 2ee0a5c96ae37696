"""`wait`, `ensure` and `gate`: what they find decides what they say and do, without a tmux."""

from __future__ import annotations

import io as streams
from types import SimpleNamespace
from typing import Self

import pytest

from fleet.config import parse
from fleet.core.loop.loop_case import GateResult, LoopSeen, Place
from fleet.core.words import EventType, WatchdogState
from fleet.verbs import ensure, gate, wait
from fleet.verbs.common import Io
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


def said(module, line: str) -> tuple[int, str, Clock]:
    clock, out = Clock(), streams.StringIO()
    _, args = parse_words(tuple(line.split()))
    return module.run(args, Io(out, out, clock=clock)), out.getvalue(), clock


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
        end_strays=lambda: None,
        make_room=lambda: None,
        stop_watchdog=lambda: acts.append("stop"),
        start_watchdog=lambda _argv: acts.append("start") or why,
        house=SimpleNamespace(events=SimpleNamespace(record=lambda kind, reason: acts.append(kind))),
    )
    monkeypatch.setattr(ensure, "running_fleet", lambda *_: fleet)
    monkeypatch.setattr(ensure, "require_trust", lambda _fleet: None)
    monkeypatch.setattr(ensure, "pulse", lambda *_: SimpleNamespace(state=dog, pid=7))
    monkeypatch.setattr(ensure, "wants", lambda _dir: wanted)
    monkeypatch.setattr(ensure, "Operator", lambda _fleet: operator)
    answer, text, _clock = said(ensure, "ensure")
    assert (answer, acts) == (code, done)
    assert why in text


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
    monkeypatch.setattr(gate, "running_fleet", lambda *_: fleet)
    monkeypatch.setattr(gate, "require_trust", lambda _fleet: None)
    monkeypatch.setattr(gate, "_position", lambda *_: (Place(0, "p1"), LoopSeen()))
    monkeypatch.setattr(gate, "_Runner", lambda *_: runner)
    monkeypatch.setattr(gate, "plan_gate", lambda _phase, index, *_: index)
    answer, text, _clock = said(gate, line)
    assert (answer, runner.ran) == (code, ran)
    assert ("FAIL" in text) is bool(code)
    assert ("not run" in text) is (len(ran) < 3)
