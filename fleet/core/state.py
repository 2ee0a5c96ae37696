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
    STALLED = "STALLED"
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
