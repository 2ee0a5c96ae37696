"""How many open files a fleet needs, and how many a process may have. Numbers only.

Measured with tmux 3.3a: its server holds a terminal and the pipe to a log for each session, about ten for
itself, and three for each client while it asks. The watchdog holds a pidfd for each session, about twenty for
itself, and for a moment a connection to each CLI that has a server.
"""

from __future__ import annotations

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
