"""The watchdog's last view of the fleet, as it lies in the state directory."""

from __future__ import annotations

import json
import os
from typing import Any


def read_view(state_dir: str) -> dict[str, Any] | None:
    """The view, or nothing when there is none that can be read."""
    try:
        with open(os.path.join(state_dir, "view.json"), encoding="utf-8") as file:
            view = json.load(file)
    except (OSError, ValueError):
        return None
    return view if isinstance(view, dict) else None


def heartbeat(state_dir: str) -> float | None:
    """When the watchdog last looked, by the wall clock."""
    try:
        return os.stat(os.path.join(state_dir, "heartbeat")).st_mtime
    except OSError:
        return None
