"""Whose environment a run starts with, and how tmux is asked for it."""

from __future__ import annotations

import pytest

from fleet.core.memory import Run
from fleet.core.starts import ORIGINS, origin, source
from fleet.core.words import Origin
from fleet.host.tmux.language import variables


def run(made: Origin | None, id_: str = "r2") -> Run:
    return Run(id_, "t-a", 0.0, origin=made)


@pytest.mark.parametrize(
    ("last", "kept", "by_person", "whose"),
    [
        (None, "", True, Origin.CALLER),
        (run(Origin.CALLER), "r2", True, Origin.CALLER),
        (None, "", False, Origin.WATCHDOG),
        (run(Origin.CALLER), "r2", False, Origin.HANDED_ON),
        (run(Origin.HANDED_ON), "r2", False, Origin.HANDED_ON),
        (run(None), "r2", False, Origin.HANDED_ON),
        (run(Origin.CALLER), "", False, Origin.WATCHDOG),
        pytest.param(
            run(Origin.WATCHDOG), "r2", False, Origin.WATCHDOG, id="the-watchdogs-own-stays-its-own"
        ),
        pytest.param(run(Origin.CALLER), "r1", False, Origin.WATCHDOG, id="a-person-has-started-it-since"),
        pytest.param(run(Origin.HANDED_ON), "r1", False, Origin.HANDED_ON, id="a-heal-came-to-nothing"),
    ],
)
def test_a_heal_has_what_the_last_start_by_a_person_had(last, kept, by_person, whose):
    assert origin(last, kept, by_person=by_person) is whose


@pytest.mark.parametrize(
    ("whose", "as_declared", "taken"),
    [
        (Origin.CALLER, True, {"KEY": "own", "MORE": "own"}),
        (Origin.WATCHDOG, False, {"KEY": "own", "MORE": "own"}),
        pytest.param(Origin.HANDED_ON, True, {"KEY": "kept"}, id="what-the-person-did-not-have-is-not-added"),
        pytest.param(
            Origin.HANDED_ON, False, {"KEY": "kept", "MORE": "own"}, id="another-backend-had-other-names"
        ),
    ],
)
def test_where_the_variables_of_a_run_are_taken_from(whose, as_declared, taken):
    own, kept = {"KEY": "own", "MORE": "own"}, {"KEY": "kept"}
    assert source(whose, own, kept, as_declared=as_declared) == taken


def test_each_origin_has_its_sentence():
    assert set(ORIGINS) == {None, *Origin}


def test_any_value_that_tmux_tells_is_read_as_it_is():
    told = (
        'A="it\\"s \\`x\\` \\$HOME \\\\n"; export A;\n'
        'B="one\nC=\\"no\\"; export C;\ntwo"; export B;\n'
        "unset DISPLAY;\n"
        'D="\ufffd"; export D;\n'
        'E=""; export E;'
    )
    assert variables(told) == {"A": 'it"s `x` $HOME \\n', "B": 'one\nC="no"; export C;\ntwo', "E": ""}
