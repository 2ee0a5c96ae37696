"""The real world, put together in one place."""

from __future__ import annotations

import os
import secrets
import time

from fleet.core.desired import Hold
from fleet.core.model import Fleet
from fleet.journal.locks import start_of, state_lock
from fleet.ports import Disk, Tmux
from fleet.world.clock import RealClock
from fleet.world.files import RealDisk
from fleet.world.host import RealHost
from fleet.world.launch import preflight
from fleet.world.logs import LogKeeper
from fleet.world.loopback import free_port
from fleet.world.processes import ProcTable
from fleet.world.server import server_of
from fleet.world.trust import untrusted
from fleet.world.world import World


def real_world(fleet: Fleet, tmux: Tmux | None = None, disk: Disk | None = None) -> World:
    """This machine."""
    state_dir = os.path.join(fleet.log_dir, "state")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("AGENT_")}

    clock, speaker = RealClock(), tmux or server_of(fleet)
    return World(
        tmux=speaker,
        processes=ProcTable(),
        clock=clock,
        disk=disk or RealDisk(),
        lock=lambda: state_lock(state_dir),
        draw=lambda: secrets.token_hex(16),
        holds=_holds,
        preflight=preflight,
        host=RealHost(fleet),
        environ=environ,
        zone=host_zone(),
        untrusted=_untrusted,
        port=free_port,
        logs=LogKeeper(speaker, os.path.join(fleet.log_dir, "logs"), clock.mono),
    )


def _untrusted(path: str) -> str:
    found = untrusted(path)
    return f"{found}: {found.fix}" if found else ""


def _holds(hold: Hold) -> bool:
    return start_of(hold.pid) == hold.start


def host_zone() -> str:
    """The host's zone by name, where it has one; the abbreviation is no use to anybody."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    try:
        return os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or "UTC"
    except OSError:
        return time.tzname[0]
