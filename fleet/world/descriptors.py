"""The limit of open files: ours, the tmux server's, and the operator's, which the agents keep.

A process inherits it. The server is founded with more than the operator's shell has, where the system allows
that, and every launch script goes back to the operator's own: a program may rely on low numbers.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from fleet.core.descriptors import widened
from fleet.ports import Allowance

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


def widen(need: int = 0) -> None:
    """Let this process, and whatever it founds, have as many as it needs, as far as it may."""
    soft, hard = ours()
    _set(0, widened(soft, hard, need), hard)


def widen_other(pid: int, need: int) -> Allowance | None:
    """The same for a process of ours that runs already; what it has then."""
    found = of(pid)
    if found is not None and found.soft < need:
        _set(pid, widened(found.soft, found.hard, need), found.hard)
    return of(pid)


def restore() -> str:
    """A line of shell that goes back to what the operator has."""
    number = "unlimited" if OPERATORS >= UNLIMITED else str(OPERATORS)
    return f"ulimit -S -n {number} 2>/dev/null || :"


def _set(pid: int, soft: int, hard: int) -> None:
    """What the system refuses stays as it is: who needs more compares, and says so."""
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
