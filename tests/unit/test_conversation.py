"""Whether a start goes on in the conversation on record, and with which words: one row a case."""

from __future__ import annotations

import pytest

from fleet.core.memory import Run
from fleet.core.model import Backend, Member
from fleet.core.starts import UNSAID, continue_line, first_words, goes_on

CAN = Backend("can", "tool", supports_resume=True)
CANNOT = Backend("cannot", "tool")


def agent(kind="persistent", *, resume=True):
    return Member("a", "s-a", kind, "can", "/", "heal", resume=resume)


def last(**more):
    return Run("r1", "s-a", 1.0, **({"backend": "can"} | more))


CASES = {
    "a heal": (agent(), CAN, last(), False, True),
    "a restart": (agent(), CAN, last(), True, True),
    "the record of the run was lost, its id was not": (agent(), CAN, None, True, True),
    "the user said no": (agent(resume=False), CAN, last(), False, False),
    "the CLI cannot": (agent(), CANNOT, last(), False, False),
    "another backend's conversation": (agent(), CAN, last(backend="other"), True, False),
    "a task that died": (agent("task"), CAN, last(), False, True),
    "a task that is called for again": (agent("task"), CAN, last(), True, False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_start_goes_on(name):
    spec, backend, run, planned, want = CASES[name]
    assert goes_on(spec, backend, run, planned=planned) is want


HOLDS = last(brief="d1", told="p1")
WORDS = {
    "a new conversation gets its kickoff": ("Go.", "d1", HOLDS, "p1", False, "Go."),
    "one that holds it gets a line": ("Go.", "d1", HOLDS, "p1", True, continue_line("p1")),
    "one of which that is not known too": ("Go.", "d1", last(told="p1"), "p1", True, continue_line("p1")),
    "a new phase is told in full": ("Go.", "d1", HOLDS, "p2", True, "Go."),
    "an edited kickoff is said again": ("Go on.", "d2", HOLDS, "p1", True, "Go on."),
    "one that reached no one is said again": ("Go.", "d1", last(brief=UNSAID), "", True, "Go."),
    "outside of the loop": ("Go.", "d1", last(brief="d1"), "", True, continue_line("")),
    "outside of the loop, without a record": ("Go.", "d1", None, "", True, continue_line("")),
    "in the loop, without a record": ("Go.", "d1", None, "p1", True, "Go."),
}


@pytest.mark.parametrize("name", WORDS)
def test_its_first_words(name):
    prompt, brief, run, phase, resumed, want = WORDS[name]
    assert first_words(prompt, brief, run, phase=phase, resumed=resumed) == want
