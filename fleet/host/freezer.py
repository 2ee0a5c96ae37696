"""Hold processes where they are, and let them go on.

A stop signal does not hold an agent: tmux, the parent of a pane's first process, continues whatever of its
children stops. The kernel's freezer does, and nobody is told: the processes go into a control group of
their own, right below the one they are in, and that group is frozen (version 2, or the freezer of
version 1). Where no group may be made, stop signals are tried, looked at, and taken back if they do not
hold: half a freeze is worse than none.

Nothing is written down. The group's name says that it is ours, and each process tells its group.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fleet.core.seen import Proc
from fleet.host import procfs

PREFIX = "ao-frozen-"
LOOKS = 40  # at the table, until nobody new turns up
PAUSE_S = 0.05
HELD_LOOKS = 4  # in a row that find everybody stopped: a parent that continues its child does so at once

Find = Callable[[], Sequence[Proc]]
Send = Callable[[Iterable[Proc], int], object]
Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One tree of control groups: where it is mounted, and how it is told to freeze."""

    mount: str
    root: str  # the group that the mount shows at its top
    line: str  # how its line in /proc/<pid>/cgroup begins, after the number
    switch: str
    on: str
    off: str
    report: str  # the file that says whether all are still
    still: str

    def group_of(self, pid: int) -> str:
        """The directory of a process's group; "" when it is not to be seen from here."""
        with suppress(OSError), open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
            for row in file.read().splitlines():
                kind, _, path = row.partition(":")[2].partition(":")
                if self.line in kind.split(",") and path.startswith(self.root):
                    return os.path.join(self.mount, path[len(self.root) :].strip("/")).rstrip("/")
        return ""


def freeze(name: str, find: Find, send: Send, sleep: Sleep) -> str:
    """Hold everybody that `find` finds, newcomers too: "" or why they run on."""
    procs = find()
    if not procs:
        return "no process of it was found"
    why = ""
    for tree in hierarchies():
        why = _freeze_in(tree, name, find, sleep)
        if not why:
            return ""
        thaw(p.pid for p in find())
    return _stop(find, send, sleep, why or "this system has no control groups")


def thaw(pids: Iterable[int]) -> None:
    """Let go whoever of these sits in a frozen group of ours; its group is taken away."""
    trees = hierarchies()
    groups = {(g, tree) for pid in pids for tree in trees if _is_ours(g := tree.group_of(pid))}
    for group, tree in groups:
        with suppress(OSError):
            _write(group, tree.switch, tree.off)
        for _ in range(LOOKS):  # somebody may fork on the way out
            for pid in _inside(group):
                with suppress(OSError):
                    _write(os.path.dirname(group), "cgroup.procs", str(pid))
            with suppress(OSError):
                os.rmdir(group)
                break


def hierarchies(mountinfo: str = "/proc/self/mountinfo") -> list[Hierarchy]:
    """The trees that can freeze, the better one first: in version 2 a frozen process can still be ended."""
    found: list[Hierarchy] = []
    with suppress(OSError), open(mountinfo, encoding="utf-8") as file:
        for row in file:
            head, _, tail = row.partition(" - ")
            root, mount = (_plain(word) for word in head.split()[3:5])
            kind, _, options = tail.split()[:3]
            if kind == "cgroup2":
                v2 = ("cgroup.freeze", "1", "0", "cgroup.events", "frozen 1")
                found.insert(0, Hierarchy(mount, root, "", *v2))
            elif kind == "cgroup" and "freezer" in options.split(","):
                v1 = ("freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN")
                found.append(Hierarchy(mount, root, "freezer", *v1))
    return found


def _freeze_in(tree: Hierarchy, name: str, find: Find, sleep: Sleep) -> str:
    procs = find()
    home = tree.group_of(procs[0].pid) if procs else ""
    if not home:
        return "its control group cannot be seen from here"
    group = os.path.join(home, PREFIX + name)
    try:
        os.makedirs(group, exist_ok=True)
        _gather(tree, group, find)
        _write(group, tree.switch, tree.on)
        _gather(tree, group, find)  # who was forked meanwhile; in a frozen group a newcomer freezes too
        for _ in range(LOOKS):
            if tree.still in _read(group, tree.report).split("\n"):
                return ""
            sleep(PAUSE_S)
    except OSError as error:
        return f"a control group below {home} cannot be used: {error.strerror}"
    return f"the processes in {group} did not come to rest"


def _gather(tree: Hierarchy, group: str, find: Find) -> None:
    """Move everybody in, until a look finds nobody outside."""
    for _ in range(LOOKS):
        outside = [p for p in find() if tree.group_of(p.pid) not in {group, ""}]
        if not outside:
            return
        for proc in outside:
            with suppress(ProcessLookupError):
                _write(group, "cgroup.procs", str(proc.pid))


def _stop(find: Find, send: Send, sleep: Sleep, why: str) -> str:
    """By signals. Whoever is continued by its parent cannot be held: then nobody is."""
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
