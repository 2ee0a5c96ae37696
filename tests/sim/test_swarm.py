"""Days of everything that can go wrong, and each ends well. `./tests/run.sh sim` runs as many as you like."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sim.simulation import Simulation

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.mark.sim
def test_days_keep_every_promise():
    """One day; `.ci/run` takes more, and `./tests/run.sh sim` asks that everything happened in them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--seeds", "1", "--hours", "24", "--no-marks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.sim
def test_hours_with_a_loop_keep_every_promise():
    report = Simulation(3, 5.0, loop=True).run()
    assert report.failure == ""
    assert report.rules["turnover"]


@pytest.mark.sim
def test_a_seed_runs_the_same_twice():
    command = [sys.executable, "-m", "tests.sim", "--seeds", "1", "--first", "7", "--hours", "3", "--trace"]
    first, second = (subprocess.run(command, cwd=ROOT, capture_output=True, check=True) for _ in range(2))
    assert first.stdout.splitlines()[0].startswith(b"Report(seed=7")
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0]


@pytest.mark.sim
@pytest.mark.parametrize(
    "which",
    [("--seeds", "2"), pytest.param(("--seeds", "4", "--long"), marks=pytest.mark.long)],
    ids=["two", "four"],
)
def test_seeds_are_what_they_were(which):
    """The first two without and with a loop; four, and days of them, in the long layer.

    `tests/run.sh all` compares all of them, which takes six minutes of two cores. A change of what is done or
    recorded renews them: `python -m tests.sim --goldens --long --renew`.
    """
    command = [sys.executable, "-m", "tests.sim", "--goldens", *which]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
