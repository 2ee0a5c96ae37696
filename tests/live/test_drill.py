"""The real CLIs, in real panes, read by their profiles, from start to end: no network, no key."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import drill
from rig import installed

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.mark.parametrize("cli", drill.WAYS)
def test_every_line_of_the_profile_holds_for_the_pinned_release(cli):
    """R175: comes up unattended, works, queues, is limited, asks, fails, quits and resumes."""
    binary = installed(cli)
    if binary.startswith("no ") or not shutil.which("tmux"):
        pytest.skip(f"{cli}: {binary if binary.startswith('no ') else 'no tmux'}")
    results = drill.run(cli, lambda r: print("ok  " if r.ok else "FAIL", r.name, r.got, flush=True))
    assert [f"{r.name}: {r.got}" for r in results if not r.ok] == []
    assert len(results) >= 11
