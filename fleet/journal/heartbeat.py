"""The watchdog's heartbeat: a file whose time of change says when it last looked at the fleet."""

from __future__ import annotations

import os

STALE_TICKS = 3
SLACK_S = 5.0


def last_beat(state_dir: str) -> float | None:
    """When the watchdog last looked, by the wall clock; None when there is no such file."""
    try:
        return os.stat(os.path.join(state_dir, "heartbeat")).st_mtime
    except OSError:
        return None


def is_stale(age: float, interval: float) -> bool:
    """Whether a watchdog that last looked `age` seconds ago has stopped looking."""
    return age > STALE_TICKS * max(interval, 1.0) + SLACK_S
