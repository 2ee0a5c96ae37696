"""Tokens per phase, counted by the real watchdog from what scripted agents leave in their transcripts."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

LOOP = """
[loop]
log_tokens = true
kickoff_template = "prompts/kickoff.md"
roles_dir = "prompts"

[loop.handoff]
repo = "."

[[loop.phases]]
id = "one"
plan = "plan.md"
status = "STATUS-one.md"

[[loop.phases]]
id = "two"
plan = "plan.md"
status = "STATUS-two.md"
"""


def test_each_phase_leaves_exactly_one_record_of_its_own_tokens(tmp_path):
    """R036, R037, R040."""
    home = tmp_path / "claude"
    p = Project(tmp_path / "project", "")
    try:
        subprocess.run(["git", "init", "-q", str(p.root)], check=True)
        (p.root / "prompts").mkdir()
        (p.root / "prompts" / "kickoff.md").write_text("Phase {phase_id}: {status}.\n")
        (p.root / "prompts" / "builder.md").write_text("Build.\n")
        (p.root / "plan.md").write_text("Do it.\n")
        script = p.script(
            "builder",
            '[[on]]\nkickoff = "Phase (?P<phase>\\\\w+):"\nsteps = [\n'
            "  { usage = 100, output = 10, cache_read = 1000 },\n"
            '  { write = "STATUS-{phase}.md", text = "## DONE\\n" },\n]\n',
        )
        p.write(
            '[[agent]]\nname = "builder"\nkind = "loop"\nrole = "builder"\nbackend = "scripted"\n'
            f'env = {{ AO_SCRIPT = "{script}", CLAUDE_CONFIG_DIR = "{home}" }}\n{LOOP}'
        )
        p.agents("up", "--no-wait")  # its phases end at once
        until((p.log_dir / "SEQUENCE-COMPLETE").exists, 60)
        log = p.log_dir / "token-log.jsonl"
        until(lambda: log.exists() and len(log.read_text().splitlines()) >= 2, 60)
        records = [json.loads(line) for line in log.read_text().splitlines()]
        assert [r["phase"] for r in records] == ["one", "two"]
        assert [r["total"] for r in records] == [1110, 1110]
        table = p.agents("tokens")
        assert "1,110" in table
    finally:
        p.tear_down()
