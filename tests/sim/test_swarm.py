"""Days of everything that can go wrong, and each ends well. `./tests/run.sh sim` runs as many as you like."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.mark.sim
@pytest.mark.slow
def test_forty_days_keep_every_promise():
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--seeds", "40", "--hours", "24"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.sim
def test_a_seed_runs_the_same_twice():
    command = [sys.executable, "-m", "tests.sim", "--seeds", "1", "--first", "7", "--hours", "3", "--trace"]
    first, second = (subprocess.run(command, cwd=ROOT, capture_output=True, check=True) for _ in range(2))
    assert first.stdout.splitlines()[0].startswith(b"Report(seed=7")
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0]
