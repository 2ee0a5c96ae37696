"""The real world, put together in one place."""

from __future__ import annotations

import os
import secrets

from fleet.core.model import Fleet
from fleet.ports import Clock, Disk, Tmux
from fleet.world.clock import RealClock
from fleet.world.files import RealDisk
from fleet.world.host import RealLocks, RealServers, this_host
from fleet.world.logs import LogKeeper
from fleet.world.loopback import Loopback
from fleet.world.mail import Mail
from fleet.world.pages import Pages
from fleet.world.processes import ProcTable
from fleet.world.server import server_of
from fleet.world.world import Helpers, World


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
