"""A deadline grows with the machine's slowness, and has an end."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import deadlines


@pytest.mark.parametrize(
    ("took", "slow"),
    [(0.0, 1.0), (deadlines.QUICK_S, 1.0), (3 * deadlines.QUICK_S, 3.0), (1000.0, deadlines.MOST)],
)
def test_a_machine_is_never_quicker_than_quick_nor_slower_than_a_fault(took, slow):
    assert deadlines.slowness(took) == pytest.approx(slow)


@pytest.mark.parametrize(
    ("slow", "crowd", "line", "factor"),
    [
        ("1", 1, 0, 1),
        ("2.5", 1, 0, 2.5),
        ("2", 3, 0, 6),
        ("5", 4, 0, 8),
        ("1", 1, 5, 5),
        ("2", 3, 5, 6),
        ("1", 1, 50, 8),
    ],
)
def test_patience_is_slowness_times_the_crowd_on_a_core_or_the_line_before_it(
    monkeypatch, slow, crowd, line, factor
):
    cores = os.cpu_count() or 1
    monkeypatch.setenv(deadlines.NAME, slow)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(crowd * cores))
    monkeypatch.setattr(os, "getloadavg", lambda: (line * cores, 0.0, 0.0))
    assert deadlines.patience(10) == pytest.approx(10 * factor)


def test_the_slowness_of_this_run_was_measured_before_its_first_test():
    assert 1.0 <= float(os.environ[deadlines.NAME]) <= deadlines.MOST


WAITS = frozenset({"run", "communicate", "wait", "check_output", "check_call"})


def _bare(path: Path) -> Iterator[int]:
    """Lines that wait for so many seconds, however slow the machine is."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            limits = [k.value for k in node.keywords if k.arg == "timeout"]
        elif isinstance(node, ast.BinOp) and ast.unparse(node.left) == "time.monotonic()":
            limits = [node.right]
        else:
            continue
        if any(isinstance(limit, ast.Constant) for limit in limits):
            yield node.lineno


def test_no_test_waits_by_a_number_of_its_own():
    tests = Path(deadlines.__file__).parent
    own = {tests / name for name in ("chaos", "mutants", "sim")}  # their time is another matter
    files = [path for path in sorted(tests.rglob("*.py")) if not own & set(path.parents)]
    found = [f"{path.relative_to(tests)}:{line}" for path in files for line in _bare(path)]
    assert not found, "a deadline is patience(seconds)"
