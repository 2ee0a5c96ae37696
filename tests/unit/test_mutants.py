"""The table of mutants stays true: each change has its place, and each test its name."""

from __future__ import annotations

import os

import pytest

from tests.mutants.table import MUTANTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _text(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def test_there_are_at_least_twenty_five_and_each_has_its_own_name():
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 25


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_a_mutant_finds_the_line_it_breaks_and_the_test_that_must_notice(mutant):
    assert _text(mutant.file).count(mutant.old) == 1
    file, _, test = mutant.test.partition("::")
    assert f"def {test}(" in _text(file)


# The verbs that change something, or on whose word a script goes on.
VERBS = ("up", "down", "restart", "pause", "unpause", "send", "reset", "phase", "gate", "wait", "ensure")


def test_each_rule_of_agents_and_loop_and_each_verb_that_acts_has_a_mutant():
    rules = {
        f"fleet/core/{room}/{name}"
        for room in ("agent", "loop")
        for name in os.listdir(os.path.join(ROOT, "fleet", "core", room))
        if name.endswith(".py") and name != "__init__.py"
    }
    wanted = rules | {f"fleet/verbs/{verb}.py" for verb in VERBS}
    assert wanted - {m.file for m in MUTANTS} == set()
