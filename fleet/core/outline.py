"""A declaration in outline: where its fleet lives and what showing it takes, not how its agents are run.

The watchdog writes the outline into the view with the stamp of the file that it was read from, so that
`status` reads agents.toml only when that has changed.

Which declaration is in force: the file as it is, or the last good one that the running fleet stands on. A
file that cannot be used locks the operator out of nothing that already runs. A file that says where the fleet
lives (its names, its directory, its tmux server) is not followed while a fleet lives elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

WATCHDOG = "watchdog"  # the reserved name: the session that runs the supervisor itself
KEYS = ("session_prefix", "log_dir", "tmux_socket")  # what a running fleet keeps until `down`


class Ground(NamedTuple):
    """What says where a fleet lives. A running one keeps it until `down`."""

    config_path: str  # in a record, its real path
    session_prefix: str
    log_dir: str
    tmux_socket: str  # the -L name; "default" is the user's own server
    project_id: str  # stamped on every session: hash of real config path and prefix


class Listed(NamedTuple):
    """An agent or a service of the file, as `status` lists it."""

    name: str
    session: str
    kind: str
    watch: str
    enabled: bool = True
    role: str = ""
    backend: str = ""
    model: str = ""


class Outline(NamedTuple):
    """A whole fleet as it was declared."""

    ground: Ground
    watchdog_session: str
    signal_interval: float
    agents: tuple[Listed, ...] = ()
    services: tuple[Listed, ...] = ()
    state_file: str = ""  # of the loop; empty when there is none
    phases: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[Listed, ...]:
        """Agents, then services."""
        return (*self.agents, *self.services)


class Cause(StrEnum):
    """Why the file itself is not in force."""

    NONE = ""
    MISSING = "missing"
    UNREADABLE = "unreadable"
    BROKEN = "broken"
    CHANGED = "changed"  # session_prefix, log_dir or tmux_socket, under a running fleet
    MOVED = "moved"  # the file that the running fleet was started from has another place now


def project_id(config: str, prefix: str) -> str:
    """Stamped on every session, so that we never touch one of another project. `config`: its real path."""
    return sha256(f"{config}\0{prefix}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def changed(here: Ground, there: Ground) -> tuple[str, ...]:
    """The keys by which one fleet would not find the other."""
    return tuple(key for key in KEYS if getattr(here, key) != getattr(there, key))


def cause(
    fault: Cause, here: Ground | None, recorded: Ground | None, alive: Callable[[Ground], bool]
) -> Cause | None:
    """Why the recorded declaration is in force; NONE: the file is; None: neither can be used.

    `alive` costs a look at tmux, so it is asked only where the answer hangs on it.
    """
    if here is None:
        return fault if recorded is not None else None
    if recorded is None or (recorded.project_id == here.project_id and not changed(here, recorded)):
        return Cause.NONE
    if not alive(recorded):
        return Cause.NONE
    return Cause.CHANGED if changed(here, recorded) else Cause.MOVED
