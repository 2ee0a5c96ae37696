"""Processes around a tmux server, found without asking it: it may be waiting for one of them."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

from fleet.core.seen import Proc
from fleet.host import procfs
from fleet.host.tmux.pane_rows import anchor

_LISTENS = 0x10000  # SO_ACCEPTCON in /proc/net/unix


def server_at(path: str) -> Proc | None:
    """The tmux server of this user that listens there; None when there is none, or more than one.

    It is not asked: one that stands still may have no place left in its queue.
    """
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            inodes = listening(file.read(), path)
    except OSError:
        return None
    links = {f"socket:[{inode}]" for inode in inodes}
    rows = [r for r in procfs.table().values() if r.name.startswith("tmux") and not r.zombie] if links else []
    found = [r for r in rows if procfs.own(r.pid) and links & _open_files(r.pid)]
    if len(found) != 1:
        return None
    row = found[0]
    return Proc(row.pid, row.start, row.ppid, row.sid, row.name)


def listening(text: str, path: str) -> set[int]:
    """The inodes of the sockets that wait for clients at that path, by the text of /proc/net/unix."""
    cells = (line.split(None, 7) for line in text.splitlines()[1:])
    named = [c for c in cells if len(c) == 8 and c[7] == path]  # noqa: PLR2004 - the last one is the path
    return {int(c[6]) for c in named if int(c[3], 16) & _LISTENS}


def guests(server: Proc, runs: Collection[str]) -> tuple[Proc, ...]:
    """What runs in panes of that server without being of one of these runs."""
    rows = [r for r in procfs.table().values() if r.ppid == server.pid and r.sid == r.pid and not r.zombie]
    rows = [r for r in rows if procfs.run_of(r.pid) not in runs]
    return tuple(Proc(r.pid, r.start, r.ppid, r.sid, r.name) for r in rows)


def _open_files(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


# --------------------------------------------------------------------------------------------------
# Control clients of one project, found in the process table: tmux itself may be waiting for them.


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
