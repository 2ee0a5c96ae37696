"""The world of one process: its doors in one bundle, real in production, simulated in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleet.host.pane_logs import LogKeeper
from fleet.ports import Clock, Disk, Draw, Host, Http, Locks, Processes, Servers, Tmux
from fleet.supervisor.cli_servers import Mail, Pages


def _no_point(_name: str) -> None:
    """No test wants to end the process here."""


@dataclass(slots=True)
class World:
    """The ports, and the facts of the machine beside them. Everything that acts gets it handed in."""

    host: Host
    tmux: Tmux
    servers: Servers
    processes: Processes
    clock: Clock
    disk: Disk
    locks: Locks
    http: Http
    draw: Draw
    point: Callable[[str], None] = _no_point  # passed around every effect: a test may end the process there


@dataclass(frozen=True, slots=True)
class Helpers:
    """What works for a supervisor between its looks. One that only looks has none of them."""

    pages: Pages | None = None  # fetches what the servers of CLIs say
    mail: Mail | None = None  # carries messages to them
    logs: LogKeeper | None = None  # keeps the sessions' logs within bounds
