"""Hold processes where they are, and let them go on.

A stop signal does not hold an agent: tmux, the parent of a pane's first process, continues whatever of its
children stops. The kernel's freezer holds it, and no parent is notified: the processes go into a control
group (version 2) of their own, right below the one they are in, and that group is frozen. Where no group
may be made, stop signals are tried, checked, and taken back if they do not hold: half a freeze is worse
than none.

The freezer of version 1 is not used. While processes of a group fork, its kernel code may never report the
group as frozen.

Nothing is written down. The group's name says that it is ours, and /proc tells the group of each process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from fleet.core.seen import Proc
from fleet.host import procfs

PREFIX = "ao-frozen-"
LOOKS = 40  # at the table, until no new process turns up
PAUSE_S = 0.05
HELD_LOOKS = 4  # in a row that find all of them stopped: a parent that continues its child does so at once

Find = Callable[[], Sequence[Proc]]
Send = Callable[[Iterable[Proc], int], object]
Sleep = Callable[[float], None]


class Tree(NamedTuple):
    """A mounted tree of control groups."""

    mount: str
    root: str  # the group that the mount shows at its top

    def group_of(self, pid: int) -> str:
        """The directory of a process's group; "" when this mount does not show it."""
        with suppress(OSError), open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
            for row in file.read().splitlines():
                number, _, path = row.partition("::")
                if number == "0" and path.startswith(self.root):
                    return os.path.join(self.mount, path[len(self.root) :].strip("/")).rstrip("/")
        return ""


def freeze(name: str, find: Find, send: Send, sleep: Sleep) -> str:
    """Hold all that `find` finds, new processes too: "" or why they run on."""
    procs = find()
    if not procs:
        return "no process of it was found"
    why = ""
    for tree in trees():
        why = _freeze_in(tree, name, find, sleep)
        if not why:
            return ""
        thaw(p.pid for p in find())
    return _stop(find, send, sleep, why or "this system has no control groups of version 2")


def thaw(pids: Iterable[int]) -> None:
    """Let go those of these that are in a frozen group of ours; the group is removed."""
    mounted = trees()
    groups = {group for pid in pids for tree in mounted if _is_ours(group := tree.group_of(pid))}
    for group in groups:
        with suppress(OSError):
            _write(group, "cgroup.freeze", "0")
        for _ in range(LOOKS):  # one may fork on the way out
            for pid in _inside(group):
                with suppress(OSError):
                    _write(os.path.dirname(group), "cgroup.procs", str(pid))
            with suppress(OSError):
                os.rmdir(group)
                break


def trees(mountinfo: str = "/proc/self/mountinfo") -> list[Tree]:
    """Every mounted tree of version 2."""
    found: list[Tree] = []
    with suppress(OSError), open(mountinfo, encoding="utf-8") as file:
        for row in file:
            head, _, tail = row.partition(" - ")
            if tail.startswith("cgroup2 "):
                root, mount = (_plain(word) for word in head.split()[3:5])
                found.append(Tree(mount, root))
    return found


def _freeze_in(tree: Tree, name: str, find: Find, sleep: Sleep) -> str:
    procs = find()
    home = tree.group_of(procs[0].pid) if procs else ""
    if not home:
        return "its control group cannot be seen from here"
    group = os.path.join(home, PREFIX + name)
    try:
        os.makedirs(group, exist_ok=True)
        _gather(tree, group, find)
        _write(group, "cgroup.freeze", "1")
        _gather(tree, group, find)  # what was forked meanwhile; in a frozen group a new process freezes too
        for _ in range(LOOKS):
            if "frozen 1" in _read(group, "cgroup.events").split("\n"):
                return ""
            sleep(PAUSE_S)
    except OSError as error:
        return f"a control group below {home} cannot be used: {error.strerror}"
    return f"the processes in {group} did not come to rest"


def _gather(tree: Tree, group: str, find: Find) -> None:
    """Move all of them in, until a look finds none outside."""
    for _ in range(LOOKS):
        outside = [p for p in find() if tree.group_of(p.pid) not in {group, ""}]
        if not outside:
            return
        for proc in outside:
            with suppress(ProcessLookupError):
                _write(group, "cgroup.procs", str(proc.pid))


def _stop(find: Find, send: Send, sleep: Sleep, why: str) -> str:
    """By signals. If one is continued by its parent, it cannot be held: then none is."""
    held = 0
    for _ in range(LOOKS // 2):
        running = [p for p in find() if not _stopped(p.pid)]
        held = 0 if running else held + 1
        if held == HELD_LOOKS:
            return ""
        send(running, signal.SIGSTOP)
        sleep(PAUSE_S)
    send(find(), signal.SIGCONT)
    return f"tmux continues what a signal stops, and {why}"


def _stopped(pid: int) -> bool:
    row = procfs.row(pid)
    return row is None or row.state in "TtZX"


def _is_ours(group: str) -> bool:
    return os.path.basename(group).startswith(PREFIX)


def _inside(group: str) -> Iterator[int]:
    with suppress(OSError):
        yield from map(int, _read(group, "cgroup.procs").split())


def _read(group: str, file: str) -> str:
    with open(os.path.join(group, file), encoding="utf-8") as opened:
        return opened.read()


def _write(group: str, file: str, text: str) -> None:
    fd = os.open(os.path.join(group, file), os.O_WRONLY)  # never creates: no such switch, no freezing
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _plain(word: str) -> str:
    """A path of mountinfo, where spaces are written as octal numbers."""
    return word.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
