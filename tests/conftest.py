"""Nothing of the caller's session reaches a test, and nothing is judged by how fast this machine is."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests import deadlines

deadlines.measure()
settings.register_profile(
    "house",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

FOREIGN = ("TMUX", "TMUX_PANE", "NO_COLOR", "AO_DEBUG", "AO_ENTERED", "AO_VENV", "AO_WHEELS")


def pytest_configure(config):
    """What verbs keep for this user lies in a directory of this run's own."""
    config.aotest_home = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="aotest-state-")


def pytest_unconfigure(config):
    shutil.rmtree(config.aotest_home, ignore_errors=True)


def _running(name: str) -> None:
    if (folder := os.environ.get("AOTEST_RUNNING")) and os.path.isdir(folder):
        with open(os.path.join(folder, str(os.getpid())), "w", encoding="utf-8") as file:
            file.write(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails by its name, and the run goes on. Where all hangs, the name lies in a file."""
    limit = int(deadlines.patience(deadlines.LONGEST_S))

    def late(_signum, _frame):
        pytest.fail(f"not over after {limit} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    _running(item.nodeid)
    try:
        return (yield)
    finally:
        _running("")
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in list(os.environ):
        if name in FOREIGN or name.startswith(("AGENT_MODEL_", "AGENT_BACKEND_")):
            monkeypatch.delenv(name)
