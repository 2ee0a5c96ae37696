"""What any process may ask of the state directory without a lock: does the watchdog work, what did it see."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fleet import regular
from fleet.core.state import WatchdogState
from fleet.journal.locks import watchdog_holder

STALE_TICKS = 3
SLACK_S = 5.0
CAP = 64 << 20


@dataclass(frozen=True, slots=True)
class Beat:
    """Whether the watchdog works."""

    state: WatchdogState
    pid: int | None = None
    last: float | None = None  # when it last ticked, by the wall clock
    age: float | None = None  # seconds since then, or since it began


def pulse(state_dir: str, interval: float, now: float) -> Beat:
    """By its lock and its heartbeat. One that has just begun and has not ticked yet is not stale."""
    holder, last = watchdog_holder(state_dir), _last_beat(state_dir)
    age = now - last if last is not None else None
    if holder is None:
        return Beat(WatchdogState.STOPPED, None, last, age)
    age = now - max(holder.since, last or 0.0)
    state = WatchdogState.STALE if is_stale(age, interval) else WatchdogState.RUNNING
    return Beat(state, holder.pid, last, age)


def is_stale(age: float, interval: float) -> bool:
    """Whether a watchdog that last looked `age` seconds ago has stopped looking."""
    return age > STALE_TICKS * max(interval, 1.0) + SLACK_S


def _last_beat(state_dir: str) -> float | None:
    try:
        return os.stat(os.path.join(state_dir, "heartbeat")).st_mtime
    except OSError:
        return None


def read_view(state_dir: str, read: Callable[[str, int], bytes] = regular.read) -> dict[str, Any] | None:
    """The document that the watchdog wrote last; None when there is none that can be read."""
    view = _json(os.path.join(state_dir, "view.json"), read)
    return view if isinstance(view, dict) else None


def wants(state_dir: str) -> dict[str, str]:
    """What the operator wants of each member: up or down."""
    for name in ("desired.json", "desired.json.prev"):
        try:
            entries = _json(os.path.join(state_dir, name), regular.read)["data"]["entries"]
            return {member: str(entry["want"]) for member, entry in entries.items()}
        except (KeyError, TypeError, AttributeError):
            continue
    return {}


def _json(path: str, read: Callable[[str, int], bytes]) -> Any:
    try:
        return json.loads(read(path, CAP))
    except (OSError, ValueError, RecursionError):
        return None
