"""The suite needs nothing that a minimal system lacks, sees nothing of its caller, and says what it skips."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import BEYOND, COMMON

ROOT = Path(__file__).resolve().parents[2]
STARTERS = {f"subprocess.{name}" for name in ("run", "Popen", "check_output", "check_call", "call")}


def started(tree: ast.AST):
    """(program, line) of every process that is started by a list which begins with its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTERS:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.List) and first.elts and isinstance(first.elts[0], ast.Constant):
                yield first.elts[0].value, node.lineno


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT / "tests"))
)
def test_every_program_that_a_test_starts_is_declared(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unknown = [f"{path}:{line}: {name}" for name, line in started(tree) if name not in COMMON | BEYOND.keys()]
    assert unknown == []


SEEN = "import os, sys; print(*sorted(os.environ))"


def seen_by_a_run(tmp_path: Path, **caller: str) -> set[str]:
    """The names that the suite gets, when it is called with these: its Python tells, and is then refused."""
    spy = tmp_path / "python3"
    spy.write_text(f"#!/bin/sh\n{sys.executable} -c '{SEEN}' >{tmp_path}/seen\nexit 1\n")
    spy.chmod(0o755)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(spy), **caller}
    argv = ["bash", str(ROOT / "tests" / "run.sh"), "lint"]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"error: PYTHON is {spy}, and that is no Python 3.11 or newer\n"
    return set((tmp_path / "seen").read_text().split())


def test_the_suite_starts_from_an_empty_environment(tmp_path):
    foreign = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": "/x", "TMUX": "/x,1,1", "GIT_DIR": "/x", "EDITOR": "vi"}
    kept = {"PIP_INDEX_URL": "x", "https_proxy": "x", "SSL_CERT_FILE": "/x", "AO_WHEELS": "/w", "LC_ALL": "C"}
    names = seen_by_a_run(tmp_path, **foreign, **kept)
    assert not names & foreign.keys()
    assert kept.keys() <= names


def test_a_run_inside_a_run_starts_from_an_empty_one_too(tmp_path):
    assert "EDITOR" not in seen_by_a_run(tmp_path, AOTEST_CLEAN="1", EDITOR="vi")
