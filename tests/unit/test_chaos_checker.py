"""The chaos checker finds what it is there for, and nothing else."""

from __future__ import annotations

import pytest

from tests.chaos.checker import CHECKS, Story, check, unfold
from tests.chaos.nemesis import WEIGHTS, Nemesis

T = 1_794_800_000.0
WELL = {"converged": 1.0, "left": []}


def look(at: float, *, runs=None, panes=(), server=100, dogs=(7,), canary=("1", "2")) -> dict:
    return {
        "t": T + at,
        "server": server,
        "panes": list(panes),
        "canary": list(canary) if canary is not None else None,
        "runs": runs or {},
        "dogs": list(dogs),
    }


def event(at: float, kind: str, agent: str = "", reason: str = "", **facts) -> dict:
    return {"ts": T + at, "type": kind, "agent": agent, "reason": reason, "facts": facts}


def verb(name: str, began: float, ended: float, *names: str, code: int = 0, text: str = "") -> dict:
    times = {"began": T + began, "ended": T + ended}
    return {"verb": name, "names": list(names), "code": code, "text": text, **times}


def story(*history, **more) -> Story:
    kept = {"strangers": ("p-a-x",), "end": WELL}
    return Story("p-", ("a", "ab"), list(history), **{**kept, **more})


def started(*runs: str) -> list[dict]:
    return [event(0, "agent.started", "a", run=run) for run in runs]


def stranger(pid: str) -> list[str]:
    return ["p-a-x", "%5", pid, "0", "", ""]


LIMITED = event(10, "agent.limited", "a", "usage limit, resets 2026-11-16T03:35:00+00:00")
RESET = 1_794_800_100.0 - T
HEALS = [event(n * 20.0, "agent.healed", "a") for n in range(11)]
FLEET = [event(n, "agent.healed", f"x{n}") for n in range(11)]
ENTER = {"kind": "human_enter", "agent": "a", "text": "HUMAN words", "t": T}
TWO = {"p-a": {"r1": [1], "r2": [2]}}
ONE = {"p-a": {"r1": [1]}}

BROKEN = {
    "two process sets": ("I1", story(look(0, runs=TWO), look(0.1, runs=TWO), events=started("r1", "r2"))),
    "a stranger gone": ("I2", story(look(0, panes=[stranger("55")]), look(1))),
    "a stranger replaced": ("I2", story(look(0, panes=[stranger("55")]), look(1, panes=[stranger("56")]))),
    "the user's server touched": ("I2", story(look(0), look(1, canary=("1",)))),
    "a stranger typed into": ("I2", story(guests="words\n")),
    "started inside a limit": ("I5", story(events=[LIMITED, event(50, "agent.started", "a", run="r")])),
    "typed into a shell": ("I8", story(ears={"a": "Begin.\n"})),
    "an Enter for a shell": ("I8", story(ears={"a": "\n"})),
    "an Enter beside a person's": ("I8", story(ears={"a": "\n\n"}, deeds=[ENTER])),
    "an Enter where a person pressed theirs elsewhere": ("I8", story(ears={"ab": "\n"}, deeds=[ENTER])),
    "said twice": ("I11", story(received={"a": [{"kind": "message", "text": "NOTE 1", "pid": 3}] * 2})),
    "reported but not heard": ("I11", story(verbs=[verb("send", 0, 1, "a", text="NOTE 1")])),
    "a draft mixed": (
        "I12",
        story(
            deeds=[{"kind": "human_draft", "agent": "a", "text": "HUMAN words"}],
            received={"a": [{"kind": "message", "text": "HUMAN wordsNOTE 1"}]},
        ),
    ),
    "submitted for a person": (
        "I12",
        story(
            deeds=[
                {"kind": "human_draft", "agent": "a", "text": "HUMAN words"},
                {"kind": "human_enter", "agent": "a", "text": "HUMAN words", "t": 9.0},
            ],
            received={"a": [{"kind": "message", "text": "NOTE 1HUMAN words", "at": 5.0}]},
        ),
    ),
    "healed too often": ("I21", story(events=HEALS)),
    "the fleet too often": ("I21", story(events=FLEET)),
    "the fleet, and one was brought up": ("I21", story(events=FLEET, verbs=[verb("up", 4, 5, "a")])),
    "back after down": (
        "I25",
        story(look(5, runs=ONE), look(5.1, runs=ONE), verbs=[verb("down", 0, 1, "a")], events=started("r1")),
    ),
    "back after down of all": (
        "I25",
        story(
            look(5, runs=ONE),
            look(5.1, runs=ONE),
            verbs=[verb("down", 0, 1), verb("up", 9, 10)],
            events=started("r1"),
        ),
    ),
    "two watchdogs stay": ("I27", story(*(look(n, dogs=(7, 8)) for n in range(12)))),
    "a run without a cause": ("I46", story(look(0, runs=ONE))),
    "a tick that failed": ("fault", story(events=[event(0, "watchdog.step_failed", reason="KeyError('x')")])),
    "a verb with a traceback": ("fault", story(verbs=[verb("up", 0, 1) | {"traceback": "Traceback ..."}])),
    "a file for everybody": ("I41", story(open_modes=["state/x has mode 644"])),
    "never well again": ("I50", story(end={"converged": None, "waited": 120, "problems": ["a: dead"]})),
    "something left": ("I29", story(end=WELL | {"left": ["p-a"]})),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found_by_its_number(name):
    number, told = BROKEN[name]
    found = check(told)
    assert found
    assert {text.partition(":")[0] for text in found} == {number}, found


FINE = {
    "one look is not one instant": story(look(0, runs=TWO), look(0.1, runs=ONE), events=started("r1", "r2")),
    "the server took the stranger along": story(look(0, panes=[stranger("55")]), look(1, server=200)),
    "the server was not seen": story(
        look(0, panes=[stranger("55")]), look(1, server=None), look(2, panes=[stranger("55")])
    ),
    "started after the limit": story(events=[LIMITED, event(RESET + 1, "agent.started", "a", run="r")]),
    "the operator wanted it": story(
        events=[LIMITED, event(50, "agent.started", "a", run="r")], verbs=[verb("restart", 48, 51, "a")]
    ),
    "a person wrote on behind our words and submitted both": story(
        deeds=[
            {"kind": "human_draft", "agent": "a", "text": "HUMAN words"},
            {"kind": "human_enter", "agent": "a", "text": "HUMAN words", "t": 9.0},
        ],
        received={"a": [{"kind": "message", "text": "NOTE 1HUMAN words", "at": 9.2}]},
    ),
    "a person typed": story(ears={"a": "HUMAN words 3\n"}),
    "a person's Enter found a shell": story(ears={"a": "\n"}, deeds=[ENTER]),
    "said again to another run": story(
        received={"a": [{"kind": "message", "text": "NOTE 1", "pid": p} for p in (3, 4)]}
    ),
    "pardoned": story(events=HEALS, verbs=[verb("reset", 90, 91, "a")]),
    "the fleet pardoned by a bare up": story(events=FLEET, verbs=[verb("up", 4, 5)]),
    "after the loss of a server": story(events=[event(-1, "server.lost"), *HEALS]),
    "brought up again": story(
        look(5, runs=ONE),
        look(5.1, runs=ONE),
        verbs=[verb("down", 0, 1, "a"), verb("up", 2, 3, "a")],
        events=started("r1"),
    ),
    "two watchdogs met": story(*(look(n, dogs=(7, 8) if n < 5 else (7,)) for n in range(20))),
    "cut short after it was announced": story(
        look(0, runs=ONE), events=[event(1, "effect.begun", "a", effect="start", run="r1")]
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_what_may_happen_is_not_called_broken(name):
    assert check(FINE[name]) == []


def test_every_check_is_proved_to_be_able_to_fail():
    silent = [one.__name__ for one in CHECKS if not any(list(one(told)) for _, told in BROKEN.values())]
    assert silent == []


def test_looks_without_news_are_spelled_out():
    rows = unfold([{"t": 1, "dogs": [1]}, {"t": 2, "same": True}])
    assert rows == [{"t": 1, "dogs": [1]}, {"t": 2, "dogs": [1]}]


def test_every_fault_of_the_nemesis_has_a_hand():
    assert not [kind for kind in WEIGHTS if not callable(getattr(Nemesis, kind, None))]
