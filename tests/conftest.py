"""Nothing of the caller's session reaches a test, and nothing is judged by how fast this machine is."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

FOREIGN = ("TMUX", "TMUX_PANE", "NO_COLOR", "AO_DEBUG", "AO_ENTERED", "AO_VENV", "AO_WHEELS")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in list(os.environ):
        if name in FOREIGN or name.startswith(("AGENT_MODEL_", "AGENT_BACKEND_")):
            monkeypatch.delenv(name)
