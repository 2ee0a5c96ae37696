"""`status` of a watched fleet shows what the watchdog wrote down, and the file once that has changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.tmux.project import ENGINE, Project, until

pytestmark = pytest.mark.tmux

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\nmodel = "{}"\n'


def loaded(p: Project, config: str = "") -> set[str]:
    """The modules that `status` loads."""
    words = ["-X", "importtime", str(ENGINE / "agents.py"), "status", "--config", config or str(p.config)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=p.env(), check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}


def shown(p: Project) -> list[tuple[str, str]]:
    return [(r["name"], r["model"]) for r in p.json("status")["agents"]]


def test_status_reads_the_file_only_when_it_has_changed(tmp_path):
    p = Project(tmp_path / "p", DEMO.format("one", "m1"))
    try:
        assert shown(p) == [("one", "m1")]
        assert "fleet.config" in loaded(p), "without a watchdog there is nothing written to read"
        p.agents("up")
        until(lambda: "fleet.config" not in loaded(p))
        assert not {"tomllib", "fleet.core.model", "fleet.core.memory"} & loaded(p)
        facts = p.json("status")
        assert [(r["name"], r["state"]) for r in facts["agents"]] == [("one", "RUNNING")]
        assert facts["project"]["config"] == str(p.config)

        (p.root / "link.toml").symlink_to(p.config)
        assert "fleet.config" in loaded(p, str(p.root / "link.toml")), "another name is not the file's own"

        dog = json.loads((p.log_dir / "state" / "watchdog.lock").read_text())["pid"]
        os.kill(dog, signal.SIGSTOP)
        try:
            p.write(DEMO.format("one", "m1") + DEMO.format("two", "m2"))
            assert shown(p) == [("one", "m1"), ("two", "m2")], "the watchdog has not read it yet"
            broken = p.config.read_text().replace('"m2"', "m2")
            p.config.write_text(broken)
            assert "agents.toml:" in p.agents("status", "--check", code=1), "told at once"
        finally:
            os.kill(dog, signal.SIGCONT)
        p.agents("down")
    finally:
        p.tear_down()


def test_a_config_that_is_a_link_is_found_after_the_link_is_gone(tmp_path):
    p = Project(tmp_path / "p", DEMO.format("one", "m1"))
    link = p.config
    real = tmp_path / "elsewhere.toml"
    try:
        link.rename(real)
        link.symlink_to(real)
        p.agents("up")
        link.unlink()
        assert shown(p) == [("one", "m1")]
        p.agents("down")
    finally:
        p.tear_down()
