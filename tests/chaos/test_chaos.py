"""A storm and a crowd, short enough for every change; hours of both are run by hand."""

from __future__ import annotations

import os

import pytest

from tests.chaos import __main__ as storm
from tests.chaos import load

pytestmark = [pytest.mark.tmux, pytest.mark.slow]

MINUTES = float(os.environ.get("CHAOS_MINUTES", "3"))
SEED = int(os.environ["CHAOS_SEED"])


def test_no_promise_is_broken_in_a_storm_on_real_tmux(tmp_path):
    """I1 I2 I5 I8 I11 I12 I21 I25 I27 I29 I33 I41 I46 I47 I50."""
    broken = storm.run(tmp_path, MINUTES, SEED)
    again = f"python -m tests.chaos --minutes {MINUTES:g} --seed {SEED}"
    assert not broken, "\n".join([*broken, f"again: {again}"])


def test_a_hundred_agents_are_looked_at_within_two_looks_and_cost_no_more_with_time(tmp_path):
    """I34, I51, I52."""
    found = load.run(tmp_path / "project", 100, 60 * MINUTES * 2 / 3)
    assert not found.broken(), found.text()
