"""The words that `status` prints. Closed sets: a new word is a decision, not an edit.

`State` is coarse and stable, made for programs; `Detail` is the finer word, made for people.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What an agent is, in five words."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"  # not running, and nobody wants it to
    DEAD = "DEAD"  # not running, and somebody does
    FATAL = "FATAL"  # will not run until a person acts
    UNKNOWN = "UNKNOWN"  # could not be looked at, or the screen says nothing we know


class Detail(StrEnum):
    """What it is doing, or why it is not."""

    STARTING = "STARTING"
    WORKING = "WORKING"
    IDLE = "IDLE"
    ASKING = "ASKING"
    LIMITED = "LIMITED"
    RETRYING = "RETRYING"
    WAITING = "WAITING"
    ERROR = "ERROR"
    WEDGED = "WEDGED"
    CONTEXT = "CONTEXT"
    MISMATCH = "MISMATCH"
    STOPPING = "STOPPING"
    PAUSED = "PAUSED"
    FROZEN = "FROZEN"
    BACKOFF = "BACKOFF"
    FLAPPING = "FLAPPING"
    FATAL = "FATAL"
    HELD = "HELD"
    DONE = "DONE"
    EXITED = "EXITED"
    FOREIGN = "FOREIGN"
    UNSEEN = "UNSEEN"
    UNKNOWN = "UNKNOWN"
    DOWN = "DOWN"
    DISABLED = "DISABLED"
    UNWATCHED = "UNWATCHED"  # runs, and no watchdog says what it is doing


class WatchdogState(StrEnum):
    """Whether the watchdog works."""

    RUNNING = "running"
    STALE = "stale"  # it lives, and has not ticked for too long
    STOPPED = "stopped"


# What each change of the coarse word means. Each can follow each other one, because a look may come late.
EDGES: dict[tuple[State, State], str] = {
    (State.STOPPED, State.RUNNING): "brought up",
    (State.STOPPED, State.DEAD): "wanted, and not there yet",
    (State.STOPPED, State.FATAL): "wanted, and it can never start",
    (State.STOPPED, State.UNKNOWN): "cannot be looked at",
    (State.RUNNING, State.STOPPED): "taken down, or done",
    (State.RUNNING, State.DEAD): "died, exited or was stopped to be restarted",
    (State.RUNNING, State.FATAL): "its credentials are refused",
    (State.RUNNING, State.UNKNOWN): "its screen cannot be read, or tmux does not answer",
    (State.DEAD, State.RUNNING): "healed",
    (State.DEAD, State.STOPPED): "taken down while it was dead",
    (State.DEAD, State.FATAL): "a retry cannot mend it",
    (State.DEAD, State.UNKNOWN): "cannot be looked at",
    (State.FATAL, State.RUNNING): "mended and reset",
    (State.FATAL, State.STOPPED): "reset while nobody wants it",
    (State.FATAL, State.DEAD): "reset, and about to be started",
    (State.FATAL, State.UNKNOWN): "reset, and cannot be looked at",
    (State.UNKNOWN, State.RUNNING): "read again",
    (State.UNKNOWN, State.STOPPED): "seen again, taken down",
    (State.UNKNOWN, State.DEAD): "seen again, dead",
    (State.UNKNOWN, State.FATAL): "seen again, beyond a retry",
}
