"""The engine as pip installs it, laid out by hand. tests/tmux/test_wheel.py really builds and installs it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fleet import bootstrap, engine
from tools import packing

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A directory of packages that holds us and nothing else."""
    folder = tmp_path_factory.mktemp("site-packages")
    shutil.copytree(ROOT / "fleet", folder / "fleet", ignore=packing.MADE)
    packing.ship(str(ROOT), str(folder / "fleet"))
    return folder


@pytest.fixture
def agents(site, tmp_path):
    """Runs a verb of that engine, without any library, where another package is called fleet too."""
    evil = tmp_path / "fleet" / "__init__.py"
    evil.parent.mkdir()
    evil.write_text("raise SystemExit('the wrong fleet')", encoding="utf-8")

    def run(*words, code=0):
        argv = [sys.executable, "-S", "-P", "-m", "fleet", *words]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(site)}
        done = subprocess.run(
            argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path, env=env
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_an_installed_engine_calls_itself_as_it_is_called(agents, site, tmp_path):
    for words, code in (
        (["version"], 0),
        (["--help"], 0),
        (["up", "--help"], 0),
        (["completions", "--help"], 0),
        (["completions", "fish"], 0),
        (["nonsense"], 2),
        (["status"], 2),
        (["init", "new"], 0),
        (["status", "--config", "new/agents.toml"], 0),
    ):
        said = agents(*words, code=code)
        assert "agents.py" not in said, words
    assert "agents.py" not in (tmp_path / "new" / "agents.toml").read_text(encoding="utf-8")
    assert (tmp_path / "new" / "prompts" / "builder.md").read_bytes() == Path(
        ROOT, "prompts", "builder.md"
    ).read_bytes()
    assert agents("version").startswith("agents ")
    assert agents("nonsense", code=2).endswith("(try: agents --help)\n")
    assert str(site) in agents("doctor")


def test_the_self_test_is_the_same_installed(agents):
    here = subprocess.run(
        [sys.executable, ROOT / "agents.py", "selftest"], capture_output=True, text=True, check=True
    )
    assert agents("selftest") == here.stdout
    assert "checkout" in agents("selftest", "--live", "claude", code=1)


def test_an_installed_engine_builds_nothing_and_names_the_command_that_adds_a_library(agents, site, tmp_path):
    pip = f"{sys.executable} -m pip install"
    agents("init", "new")
    config = ("--config", "new/agents.toml")
    assert f"{pip} 'agent-fleet[top]'" in agents("top", *config, code=1)
    assert f"{pip} agent-fleet\n" in agents("validate", "--resolved", *config, code=1)
    subprocess.run(["git", "init", "-q", tmp_path / "new" / "work" / "builder"], check=True)
    told = agents("doctor", *config)  # of the libraries, and of the repositories that GitPython looks into
    assert told.count(f"{pip} agent-fleet\n") == 2, told
    assert sorted(path.name for path in site.iterdir()) == ["fleet"]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("agents.py", "agents"),
        ("(try: agents.py --help)", "(try: agents --help)"),
        ("agents.py down, then agents.py up", "agents down, then agents up"),
        ("`agents.py ensure` or `agentlog.py list`", "`agents ensure` or `agentlog list`"),
        ("run `agents.py`", "run `agents`"),
        ("engine/agents.py up", "engine/agents.py up"),
        ("./agents.py up", "./agents.py up"),
        ("my-agents.py up", "my-agents.py up"),
        ("agents.pyc", "agents.pyc"),
        ("agents.py/x", "agents.py/x"),
        ("agents.toml", "agents.toml"),
    ],
)
def test_a_sentence_names_the_commands_as_they_are_called_and_leaves_paths_alone(said, wanted):
    assert engine.spoken(said, "") == wanted
    assert engine.spoken(said, ".py") == said


def test_only_one_place_knows_how_this_engine_is_started():
    """A launcher's path in an argv is a start that an installed engine cannot do."""
    for path in sorted((ROOT / "fleet").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        joins = [call.args for call in calls if getattr(call.func, "attr", "") == "join"]
        words = {word.value for args in joins for word in args if isinstance(word, ast.Constant)}
        assert not words & {"agents.py", "agentlog.py"} or path.name == "engine.py", path


def test_every_extra_is_imported_and_every_missing_library_names_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == engine.PROJECT
    extras = {
        re.match(r"[\w-]+", line)[0].replace("-", "_"): extra
        for extra, lines in project["optional-dependencies"].items()
        for line in lines
        if extra != "dev"
    }
    assert bootstrap.EXTRAS.items() <= extras.items()
    product = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "fleet").rglob("*.py"))
    for module in extras:
        assert re.search(rf"(?m)^\s*(from|import) {module}\b", product), f"nothing imports {module}"
