"""A deadline grows with the machine's slowness, and has an end."""

from __future__ import annotations

import os

import pytest

from tests import deadlines


@pytest.mark.parametrize(
    ("took", "slow"),
    [(0.0, 1.0), (deadlines.QUICK_S, 1.0), (3 * deadlines.QUICK_S, 3.0), (1000.0, deadlines.MOST)],
)
def test_a_machine_is_never_quicker_than_quick_nor_slower_than_a_fault(took, slow):
    assert deadlines.slowness(took) == pytest.approx(slow)


@pytest.mark.parametrize(
    ("slow", "crowd", "factor"), [("1", 1, 1), ("2.5", 1, 2.5), ("2", 3, 6), ("5", 4, 8)]
)
def test_patience_is_slowness_times_the_crowd_on_a_core(monkeypatch, slow, crowd, factor):
    monkeypatch.setenv(deadlines.NAME, slow)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(crowd * (os.cpu_count() or 1)))
    assert deadlines.patience(10) == pytest.approx(10 * factor)


def test_the_slowness_of_this_run_was_measured_before_its_first_test():
    assert 1.0 <= float(os.environ[deadlines.NAME]) <= deadlines.MOST
