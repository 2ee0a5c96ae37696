"""This machine as one fleet uses it: its environment and zone, its locks, its tmux servers."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from fleet.core.model import Fleet
from fleet.core.seen import Listing
from fleet.host.tmux.client import TmuxServer, require_tmux, resolve_socket
from fleet.host.tmux.server import server_of
from fleet.host.waker import nudge
from fleet.ports import Clock, Held, Host, Lead, Server, Unavailable
from fleet.store.locks import WatchdogLock, state_lock, watchdog_holder


def this_host() -> Host:
    """The facts, without the overrides that are for one invocation."""
    return Host({k: v for k, v in os.environ.items() if not k.startswith("AGENT_")}, host_zone())


def host_zone() -> str:
    """The host's zone by name, where it has one; its abbreviation names no rules."""
    named = os.environ.get("TZ", "").lstrip(":")
    return named or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or "UTC"


class RealLocks:
    """The Locks port: flocks in the state directory."""

    def __init__(self, state_dir: str, clock: Clock) -> None:
        self._state_dir = state_dir
        self._clock = clock

    def state(self) -> AbstractContextManager[object]:
        return state_lock(self._state_dir, self._clock)

    def lead(self) -> Lead:
        return WatchdogLock(self._state_dir, self._clock)

    def holder(self) -> Held | None:
        return watchdog_holder(self._state_dir)

    def nudge(self) -> None:
        nudge(self._state_dir)


class RealServers:
    """The Servers port."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def require_tmux(self) -> None:
        require_tmux()

    def ours(self) -> Server:
        return server_of(self._fleet)

    def socket(self) -> str:
        return resolve_socket(self._fleet.tmux_socket)

    def users_listing(self) -> Listing:
        fleet = self._fleet
        state_dir = os.path.join(fleet.log_dir, "state")
        try:
            return TmuxServer("default", state_dir, fleet.project_id, fleet.log_dir).listing()
        except Unavailable:
            return Listing(None)
