"""The share of the deciding code that seeds and stories enter, and the reasons for what they do not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sim.entered import APART, FLEET, NEVER, ROOT, SELDOM, STORIES, functions, watched


@pytest.mark.parametrize("key", NEVER | SELDOM)
def test_a_reason_names_a_function_that_is_there(key):
    name, _, function = key.partition(": ")
    assert name in watched()
    assert function in functions(name), "a stale reason"
    assert (NEVER | SELDOM)[key]


def test_every_file_that_is_not_counted_and_every_file_of_stories_is_there():
    assert [name for name in APART if not os.path.exists(os.path.join(FLEET, name))] == []
    assert [f for f in STORIES if not os.path.exists(os.path.join(ROOT, "tests", "sim", f))] == []


@pytest.mark.long
def test_seeds_and_stories_enter_what_is_promised():
    words = ("-m", "tests.sim", "--entered", "--seeds", "2", "--hours", "4")
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
