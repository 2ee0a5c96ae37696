"""Every example, offline, to its end (R162-R168)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.examples.play import ALL, LOOPS, Played

pytestmark = [pytest.mark.tmux, pytest.mark.slow]


@pytest.mark.parametrize("name", ALL)
def test_the_whole_story_is_told_and_nothing_is_left(name, tmp_path):
    p = Played(tmp_path, name)
    try:
        p.play()
        kinds = p.kinds()
        assert "agent.limited" in kinds, "somebody ran into a limit"
        assert "agent.resumed" in kinds, "and went on after it"
        assert "agent.waiting" in kinds, "somebody waited by its own word"
        if name in LOOPS:
            _loop(p, name)
        else:
            _pit(p)
        p.agents("down")
        assert p.tmux("list-sessions") == ""
        assert not p._carried()
    finally:
        p.tear_down()


def _loop(p, name):
    assert json.loads((p.log_dir / "SEQUENCE-COMPLETE").read_text())["count"] == len(
        p.events("phase.advanced")
    )
    assert p.events("gate.failed"), "a gate failed once"
    builder = p.root / ".offline" / "builder"
    log = subprocess.run(
        ["git", "-C", str(builder), "log", "--format=%s", "origin/main"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "claim(" in log
    if name != "builder-solo":
        assert "FAIL" in log, "a review refused once"
        assert "PASS" in log
        assert p.events("handoff.claimed")
        assert p.events("handoff.reviewed")
    made = subprocess.run(
        [sys.executable, "-m", "calc", "2 ^ 3 ^ 2 - -1"],
        cwd=builder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stdout) == (0, "513\n"), "what they built works"
    assert not {e["agent"] for e in p.events("agent.died")}


def _pit(p):
    pit = p.root / ".offline" / "pit"
    assert len(list((pit / "done").iterdir())) == 6
    assert [f.name[4:] for f in (pit / "waste").iterdir()] == ["halting.md"]
    assert [e["agent"] for e in p.events("agent.died")] == ["snake-2"], "killed once, and healed"
