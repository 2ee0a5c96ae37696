"""The watchdog's last view of the fleet, as it lies in the state directory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleet import __version__, regular
from fleet.core.codec import from_plain
from fleet.core.outline import Outline
from fleet.world.lastgood import ground_of, recall

if TYPE_CHECKING:
    from fleet.ports import Disk

VIEW_CAP = 64 << 20
_IDLE = "the watchdog can record nothing and restarts no agent"


def read_view(state_dir: str) -> dict[str, Any] | None:
    """The view, or nothing when there is none that can be read."""
    return _view(lambda path: regular.read(path, VIEW_CAP), state_dir)


def view_in(disk: Disk, state_dir: str) -> dict[str, Any] | None:
    """The same, through the port."""
    return _view(lambda path: disk.read(path, VIEW_CAP), state_dir)


def _view(read: Callable[[str], bytes], state_dir: str) -> dict[str, Any] | None:
    try:
        view = json.loads(read(os.path.join(state_dir, "view.json")))
    except (OSError, ValueError, RecursionError):
        return None
    return view if isinstance(view, dict) else None


def written_outline(named: str) -> Outline | None:
    """The outline of a config file that the watchdog wrote down, if it is one of the file as it is now."""
    try:
        path = os.path.abspath(os.path.expanduser(named))
        file = os.stat(path)
        record = recall(path)
        view = read_view(os.path.join(record.ground.log_dir, "state")) if record is not None else None
        if record is None or view is None or view["version"] != __version__:
            return None
        outline = from_plain(Outline, view["declared"]["outline"])
        same = view["declared"]["stamp"] == [file.st_size, file.st_mtime_ns, file.st_ino]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    ours = same and outline.config_path == path and ground_of(outline) == record.ground
    return outline if ours else None


def disk_trouble(path: str) -> str:
    """Why nothing can be written there. The watchdog could not even write down that it cannot."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return ""  # not made yet, or not on this system
    if not os.path.isdir(path):
        return f"{path}: is not a directory: nothing can be recorded there; move it away, or change log_dir"
    if disk.f_flag & os.ST_RDONLY:
        return f"{path}: the file system is read-only: {_IDLE}"
    if disk.f_blocks and not disk.f_bavail:
        return f"{path}: the disk is full: {_IDLE} until there is room"
    if disk.f_files and not disk.f_favail:
        return f"{path}: the file system has no room for another file: {_IDLE} until there is"
    return ""
