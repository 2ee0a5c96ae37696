"""Open files: how many a fleet needs, and how many a process may have.

Measured with tmux 3.3a: its server holds a terminal and the pipe to a log for each session, about ten for
itself, and three for each client while it asks. The watchdog holds a pidfd for each session, about twenty for
itself, and for a moment a connection to each CLI that has a server.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from fleet.ports import Allowance

EACH = 2  # a session
SPARE = 64  # the process itself, and a crowd of verbs and viewers
EXTRA = 2  # sessions of every fleet besides its members: the watchdog and its anchor
AMPLE = 1 << 16  # no limit is raised further without need: programs exist that close every number up to it


def needed(sessions: int) -> int:
    """What the tmux server needs for that many sessions, and the watchdog too."""
    return SPARE + EACH * sessions


def widened(soft: int, hard: int, need: int = 0) -> int:
    """The soft limit a process should have: never less than it has, never more than it may."""
    return max(soft, min(hard, max(need, AMPLE)))


# --------------------------------------------------------------------------------------------------
# The limit of open files: ours, the tmux server's, and the operator's, which the agents keep.
# A process inherits it. The server is founded with more than the operator's shell has, where the system
# allows that, and every launch script goes back to the operator's own: a program may rely on low numbers.


UNLIMITED = 1 << 62


def ours() -> Allowance:
    """This process's."""
    return Allowance(*map(_number, resource.getrlimit(resource.RLIMIT_NOFILE)))


def of(pid: int) -> Allowance | None:
    """Another process's; None where the system does not tell."""
    with suppress(OSError), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return parse(file.read())
    return None


def parse(text: str) -> Allowance | None:
    """The line of /proc/PID/limits that counts."""
    for line in text.splitlines():
        if line.startswith("Max open files"):
            soft, hard, *_ = line.removeprefix("Max open files").split()
            return Allowance(*(UNLIMITED if word == "unlimited" else int(word) for word in (soft, hard)))
    return None


def widen() -> None:
    """Let this process, and whatever it founds, have an ample number of them, as far as it may."""
    soft, hard = ours()
    _set(0, widened(soft, hard), hard)


def widen_other(pid: int, need: int) -> None:
    """Let a process of ours that runs already have as many as it needs, as far as it may."""
    found = of(pid)
    if found is not None and found.soft < need:
        _set(pid, widened(found.soft, found.hard, need), found.hard)


def restore() -> str:
    """A line of shell that goes back to what the operator has."""
    number = "unlimited" if OPERATORS >= UNLIMITED else str(OPERATORS)
    return f"ulimit -S -n {number} 2>/dev/null || :"


def _set(pid: int, soft: int, hard: int) -> None:
    """What the system refuses stays as it is: the caller compares with what it needs, and says so."""
    infinite = resource.RLIM_INFINITY
    both = (infinite if soft >= UNLIMITED else soft, infinite if hard >= UNLIMITED else hard)
    with suppress(OSError, ValueError):
        if pid and hasattr(resource, "prlimit"):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, both)
        elif not pid:
            resource.setrlimit(resource.RLIMIT_NOFILE, both)


def _number(value: int) -> int:
    return UNLIMITED if value in {-1, resource.RLIM_INFINITY} else value


OPERATORS = ours().soft  # before we change it
