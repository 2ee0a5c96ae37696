"""The smokes that users run with their own login, here against the scripted model server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drill import WAYS
from rig import Home, installed
from server import Server

from fleet.host.http import Loopback
from tests.deadlines import patience

TESTS = Path(__file__).resolve().parents[1]


def smoke(cli: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    script, limit = [str(TESTS / f"smoke_{cli}.sh")], patience(240)
    return subprocess.run(script, env=env, capture_output=True, text=True, timeout=limit, check=False)


@pytest.mark.parametrize("cli", WAYS)
@pytest.mark.parametrize("missing", ["binary", "credentials"])
def test_a_smoke_skips_politely_without_binary_or_credentials(tmp_path, cli, missing):
    """R176, T90."""
    stand_in = tmp_path / "stand-in"
    stand_in.write_text("#!/bin/sh\nexit 1\n")
    stand_in.chmod(0o755)
    binary = "/nowhere/at/all" if missing == "binary" else str(stand_in)
    done = smoke(cli, {"PATH": os.environ["PATH"], "HOME": str(tmp_path), f"{cli.upper()}_BIN": binary})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"smoke_{cli}: SKIP: ")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("cli", WAYS)
def test_a_smoke_goes_through_agents_py_and_leaves_nothing_behind(tmp_path, cli):
    """R175, R177-R179."""
    binary = installed(cli)
    if binary.startswith("no ") or not shutil.which("tmux"):
        pytest.skip(f"{cli}: {binary if binary.startswith('no ') else 'no tmux'}")
    with Server() as server:
        home = Home(str(tmp_path), server.url)
        home.prepare()
        (tmp_path / "tmp").mkdir()
        env = home.environment() | {"TMPDIR": str(tmp_path / "tmp"), f"{cli.upper()}_BIN": binary}
        env |= {name: os.environ[name] for name in ("TMUX_TMPDIR", "AOTEST_RUN") if name in os.environ}
        port = str(Loopback().free_port())
        env |= {"OPENAI_API_KEY": "dummy", "AOTEST_OC_PORT": port, "PYTHON": sys.executable}
        try:
            done = smoke(cli, env)
        finally:
            home.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"smoke_{cli}: PASS"
    assert list((tmp_path / "tmp").glob("aotest-*")) == []
