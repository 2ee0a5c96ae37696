"""The seed of this run's storm is drawn once, said at once, and shared by all workers."""

from __future__ import annotations

import os
import secrets


def pytest_configure():
    os.environ.setdefault("CHAOS_SEED", str(secrets.randbelow(1_000_000)))


def pytest_report_header():
    minutes = os.environ.get("CHAOS_MINUTES", "2")
    return f"storm: python -m tests.chaos --minutes {minutes} --seed {os.environ['CHAOS_SEED']}"
