"""A wheel in an empty environment: everything that a checkout can do, from any directory."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.bootstrap import OFFLINE
from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

KEPT = ("PATH", "LANG", "TMUX_TMPDIR", "AOTEST_RUN", "XDG_STATE_HOME")  # the marks of this run of tests
INDEX = (*KEPT, "HOME", "https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY", "SSL_CERT_FILE", "no_proxy")


def sources(to: Path) -> Path:
    """A copy of what git knows, for a build to do with what it likes."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(listed, cwd=ENGINE, capture_output=True, text=True, check=True).stdout
    for name in known.splitlines():
        if (ENGINE / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ENGINE / name, to / name)
    return to


def pip(python: str | Path, *words: object) -> str:
    """Run pip as a user does; skip the test, with the reason, where it needs an index that is not there."""
    env = {k: v for k, v in os.environ.items() if k in INDEX or k.startswith("PIP_")}
    argv = [str(w) for w in (python, "-m", "pip", *words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env, cwd="/")
    said = done.stdout + done.stderr
    if done.returncode and any(word in said for word in OFFLINE):
        pytest.skip(f"pip needs a package index: {said.strip().splitlines()[-1]}")
    assert done.returncode == 0, said
    return said


def can_build() -> bool:
    """Whether this Python builds wheels without fetching anything."""
    if not all(map(importlib.util.find_spec, ("pip", "setuptools"))):
        return False
    return int(importlib.metadata.version("setuptools").partition(".")[0]) >= 77


class Installed:
    """An environment that holds nothing but us, and a person somewhere else who uses it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / "a venv"
        self.python = self.venv / "bin" / "python"
        self.desk = root / "desk"
        self.desk.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", str(self.venv)], check=True, capture_output=True)

    @property
    def packages(self) -> Path:
        return next(self.venv.glob("lib/python*/site-packages"))

    def run(self, name: str, *words: object, code: int = 0, cwd: Path | None = None) -> str:
        """One command with a clean environment; what it said."""
        own = {"HOME": str(self.root), "TMPDIR": str(self.root)}
        env = {k: v for k, v in os.environ.items() if k in KEPT} | own
        argv = [str(w) for w in (self.venv / "bin" / name, *words)]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env=env, cwd=cwd or self.desk,
            stdin=subprocess.DEVNULL, timeout=patience(400),
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{said}"
        assert "Traceback" not in said
        return done.stdout if not code else said


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


def listing(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if "__pycache__" not in p.parts}


def test_a_wheel_does_everything_from_any_directory_and_its_build_leaves_nothing(installed, tmp_path):
    """Without its libraries: so it needs no index where setuptools is at hand."""
    copy = sources(tmp_path / "checkout")
    before = listing(copy)
    options = ["wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels", copy]
    if can_build():
        pip(sys.executable, *options, "--no-build-isolation")
    else:
        pip(installed.python, *options)
    assert listing(copy) == before
    shutil.rmtree(copy)
    wheel = next((tmp_path / "wheels").glob("agent_fleet-*.whl"))
    pip(installed.python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    there = listing(installed.packages)
    run = installed.run

    assert run("agents", "version").startswith("agents ")
    assert "usage: agents up" in run("agents", "up", "--help")
    assert "0 failed" in run("agents", "selftest")
    assert "-m pip install agent-fleet\n" in run("agents", "doctor")
    assert "complete -c agents " in run("agents", "completions", "fish")
    subprocess.run(["bash", "-n"], input=run("agents", "completions", "bash"), text=True, check=True)

    name = f"aotest{secrets.token_hex(3)}"
    project = Project(installed.desk / name, "")  # takes it down, whatever happens
    project.config.unlink()
    project.prefix, project.socket = f"{name}-", f"ao-{name}"
    try:
        assert "wrote" in run("agents", "init", name)
        shadow = project.root / "fleet" / "__init__.py"  # an agent's own package of our name
        shadow.parent.mkdir()
        shadow.write_text("raise SystemExit('the wrong fleet')\n", encoding="utf-8")
        config = ("--config", project.config)
        assert "fine" in run("agents", "validate", *config)
        run("agents", "up", cwd=project.root)
        facts = json.loads(run("agents", "status", "--json", *config))
        assert facts["watchdog"]["state"] == "running"
        assert {row["state"] for row in facts["agents"]} == {"RUNNING"}
        assert "delivered" in run("agents", "send", "builder", "hello", *config)
        os.kill(project.pid("builder"), 9)
        until(lambda: project.events("agent.healed", "builder"))
        # the event is on record a moment before the view shows it
        until(lambda: "RUNNING" in run("agents", "explain", "builder", cwd=project.root))
        assert json.loads(run("agentlog", "list", "--json", *config)) == []
        run("agents", "down", *config)
        assert not project.tmux("list-sessions")
    finally:
        project.tear_down()

    story = run("agents", "demo")
    assert "All phases are done" in story
    assert story.endswith("cleaning up\n")
    assert not list(tmp_path.glob("fleet-demo-*"))
    assert listing(installed.packages) == there


def test_pip_brings_the_libraries_and_an_sdist_is_as_good_as_a_checkout(installed, tmp_path):
    copy = sources(tmp_path / "checkout")
    before = listing(copy)
    pip(installed.python, "install", "--quiet", "build")
    made = [installed.python, "-m", "build", "--sdist", "--outdir", tmp_path / "dist", copy]
    env = {k: v for k, v in os.environ.items() if k in INDEX or k.startswith("PIP_")}
    subprocess.run([str(w) for w in made], check=True, capture_output=True, env=env)
    assert listing(copy) == before
    sdist = next((tmp_path / "dist").glob("agent_fleet-*.tar.gz"))
    pip(installed.python, "install", "--quiet", f"{sdist}[top]")
    assert "libraries: importable" in installed.run("agents", "doctor")
    assert "0 failed" in installed.run("agents", "selftest")
    installed.run("agents", "init", "p")
    assert "[defaults]" in installed.run("agents", "validate", "--resolved", "--config", "p/agents.toml")
    said = installed.run("agents", "top", "--config", "p/agents.toml", code=1)
    assert said == "error: top needs a terminal: stdin or stdout is not one (try: agents status)\n"
