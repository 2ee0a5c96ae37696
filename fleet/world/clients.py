"""Control clients of one project, found in the process table: tmux itself may be waiting for them."""

from __future__ import annotations

from contextlib import suppress

from fleet.core.seen import Proc
from fleet.world import procfs
from fleet.world.tmux_rows import anchor

_CAP = 1 << 14


def control_clients(project_id: str) -> tuple[Proc, ...]:
    """Every `tmux -C` of this user that sits in this project's anchor session, or is about to."""
    rows = [r for r in procfs.table().values() if r.name.startswith("tmux") and not r.zombie]
    return tuple(
        Proc(r.pid, r.start, r.ppid, r.sid, r.name)
        for r in rows
        if procfs.own(r.pid) and is_control_client(_words(r.pid), project_id)
    )


def is_control_client(words: list[str], project_id: str) -> bool:
    """By its command line: control mode, and exactly our anchor. A founder of a server has neither."""
    return "-C" in words and ["-s", anchor(project_id)] in [words[i : i + 2] for i in range(len(words))]


def _words(pid: int) -> list[str]:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read(_CAP).decode("utf-8", "replace").split("\0")
    return []
