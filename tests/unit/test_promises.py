"""Every promise names a test that exists, every invariant and every failure has a row."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.documents import ROOT

TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", TEXT)))
ROWS = [line for line in TEXT.splitlines() if re.match(r"\| (I\d|\d)", line)]
COLLECTED = ("unit", "sim", "contract", "tmux", "live", "chaos")


@cache
def collected_from(path: str) -> frozenset[str]:
    """Functions that pytest collects from a file: module level, or methods of a Test class."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    classes = (c for c in tree.body if isinstance(c, ast.ClassDef) and c.name.startswith("Test"))
    inner = [f for c in classes for f in c.body]
    found = (n for n in (*tree.body, *inner) if isinstance(n, ast.FunctionDef))
    return frozenset(f.name for f in found if not any("skip" in ast.dump(d) for d in f.decorator_list))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda word: word)
def test_the_test_that_a_promise_names_exists_and_runs(path, name):
    assert path.partition("/")[0] in COLLECTED
    assert name in collected_from(path)


def test_every_row_names_a_proof():
    bare = [row for row in ROWS if "::test_" not in row and "swarm" not in row and "storm" not in row]
    assert len(ROWS) > 100
    assert bare == []


def test_what_the_oracles_guard_is_promised():
    """A number that an oracle of the simulation or of the storm knows has its row."""
    promised = set(re.findall(r"(?m)^\| (I\d+) \|", TEXT))
    for path in ("tests/sim/oracles.py", "tests/sim/liveness.py", "tests/chaos/checker.py"):
        guarded = set(re.findall(r'["\s](I\d+)[:"]', (ROOT / path).read_text(encoding="utf-8")))
        assert guarded <= promised, path


def test_every_invariant_has_its_row():
    assert {int(n) for n in re.findall(r"(?m)^\| I(\d+) \|", TEXT)} == set(range(1, 53))


def test_every_known_failure_has_a_row_or_a_reason():
    ledger = TEXT.partition("## What has gone wrong elsewhere")[2]
    numbers = {int(n) for row in re.findall(r"(?m)^\| ([\d, ]+) \|", ledger) for n in row.split(",")}
    missing = ledger.rpartition("The numbers that are missing")[2]
    reasons = {int(n) for n in re.findall(r"\b(\d\d)\b", missing)}
    assert numbers | reasons >= set(range(1, 69))
    assert numbers <= set(range(1, 69))
