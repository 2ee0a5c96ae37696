"""The world of one process: its ports in one bundle, real in production, simulated in tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fleet.core.model import Fleet
from fleet.host.clock import RealClock
from fleet.host.disk import RealDisk
from fleet.host.env import this_host
from fleet.host.http import Loopback
from fleet.host.locks import RealLocks
from fleet.host.pane_logs import LogKeeper
from fleet.host.processes import ProcTable
from fleet.host.tmux.server import RealServers, server_of
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


class Helpers(NamedTuple):
    """What works for a supervisor between its looks. One that only looks has none of them."""

    pages: Pages | None = None  # fetches what the servers of CLIs say
    mail: Mail | None = None  # carries messages to them
    logs: LogKeeper | None = None  # keeps the sessions' logs within bounds


def real_world(
    fleet: Fleet, tmux: Tmux | None = None, disk: Disk | None = None, clock: Clock | None = None
) -> World:
    """This machine."""
    clock = clock or RealClock()
    return World(
        host=this_host(),
        tmux=tmux or server_of(fleet.ground),
        servers=RealServers(fleet.ground),
        processes=ProcTable(clock),
        clock=clock,
        disk=disk or RealDisk(),
        locks=RealLocks(os.path.join(fleet.log_dir, "state"), clock),
        http=Loopback(),
        draw=lambda: secrets.token_hex(16),
    )


def real_helpers(fleet: Fleet, world: World) -> Helpers:
    """What works beside a supervisor of this fleet."""
    return Helpers(
        Pages(world.http, world.clock),
        Mail(world.http, world.clock),
        LogKeeper(world.tmux, os.path.join(fleet.log_dir, "logs"), world.clock.mono),
    )
