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


def disk_trouble(path: str) -> str:
    """Why nothing can be written there. The watchdog could not even write down that it cannot."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return ""  # not made yet, or not on this system
    if not os.path.isdir(path):
        return f"{path}: is not a directory: nothing can be recorded there; move it away, or change log_dir"
    if disk.f_flag & os.ST_RDONLY:
        return f"{path}: the file system is read-only: nothing can be recorded, so nothing is healed"
    if disk.f_blocks and not disk.f_bavail:
        return f"{path}: the disk is full: nothing can be recorded, so nothing is healed until there is room"
    if disk.f_files and not disk.f_favail:
        return f"{path}: the file system has no room for another file: nothing is healed until there is"
    return ""
