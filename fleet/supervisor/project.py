"""The real world, put together in one place."""

from __future__ import annotations

import os
import secrets

from fleet.core.model import Fleet
from fleet.host.clock import RealClock
from fleet.host.disk import RealDisk
from fleet.host.env import this_host
from fleet.host.http import Loopback
from fleet.host.locks import RealLocks
from fleet.host.pane_logs import LogKeeper
from fleet.host.processes import ProcTable
from fleet.host.tmux.server import RealServers, server_of
from fleet.ports import Clock, Disk, Tmux
from fleet.supervisor.cli_servers import Mail, Pages
from fleet.supervisor.world import Helpers, World


def real_world(
    fleet: Fleet, tmux: Tmux | None = None, disk: Disk | None = None, clock: Clock | None = None
) -> World:
    """This machine."""
    clock = clock or RealClock()
    return World(
        host=this_host(),
        tmux=tmux or server_of(fleet),
        servers=RealServers(fleet),
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
