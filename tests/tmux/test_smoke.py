"""What a stranger runs first: it tells the whole story, and fails when a part of it does not come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.deadlines import patience
from tests.tmux.project import ENGINE

pytestmark = pytest.mark.tmux
STORY = (
    "the example is valid",
    "a builder, an adversary and their watchdog are up",
    "a claim is reviewed",
    "the first phase ends",
    "a claim is handed to the adversary",
    "a gate fails",
    "the builder has mended it, the gate passes",
    "the last phase ends, the sequence is complete",
    "the fleet is down",
    "no session is left",
    "no process is left",
)


def smoke(engine: Path, **env: str) -> tuple[int, list[str], str]:
    """Exit code, the story's lines without their times, and what was complained of."""
    with tempfile.TemporaryDirectory(prefix="ao-") as folder:  # a socket's path must be short
        done = subprocess.run(
            [str(engine / "smoke.sh")],
            env={**os.environ, "TMPDIR": folder, **env},
            capture_output=True,
            text=True,
            timeout=patience(200),
            check=False,
        )
        assert os.listdir(folder) == [], "the sandbox is gone, however it ends"
    return done.returncode, re.findall(r"(?m)^ *[0-9]+s  (.*)$", done.stdout), done.stderr


@pytest.mark.long
def test_the_whole_job_is_told_step_by_step_and_nothing_is_left():
    code, told, wrong = smoke(ENGINE)
    assert (code, tuple(told)) == (0, STORY), wrong


@pytest.mark.long
def test_a_step_that_does_not_come_is_named_and_fails(tmp_path):
    engine = tmp_path / "engine"
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "tests", "docs", "bench")
    shutil.copytree(ENGINE, engine, ignore=ignored)
    if (ENGINE / ".venv").is_dir():
        (engine / ".venv").symlink_to(ENGINE / ".venv")
    script = engine / "examples" / "scripts" / "builder.toml"
    text = script.read_text(encoding="utf-8")
    assert text.count("does not pass") == 1
    script.write_text(text.replace("does not pass", "no such words"), encoding="utf-8")
    code, told, wrong = smoke(engine, SMOKE_PATIENCE=str(int(patience(60))))
    assert (code, tuple(told)) == (1, STORY[:6])
    assert "the builder has mended it, the gate passes: this did not come" in wrong
