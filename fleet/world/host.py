"""The machine around a verb, as far as no port shows it: who it is, who watches, which tmux it uses."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

from fleet.core.model import Fleet
from fleet.core.seen import Listing, Proc
from fleet.journal.locks import Held, WatchdogLock, start_of, watchdog_holder
from fleet.ports import Server, Unavailable
from fleet.world import descriptors
from fleet.world.clients import control_clients
from fleet.world.descriptors import Allowance
from fleet.world.listener import guests, server_at
from fleet.world.server import server_of
from fleet.world.tmux import TmuxServer, require_tmux, resolve_socket
from fleet.world.waker import nudge


class Lead(Protocol):
    """The right to act as the watchdog."""

    def acquire(self) -> None:
        """Take it, or raise Held."""

    def release(self) -> None: ...


class Host(Protocol):
    """What verbs ask and do there."""

    def me(self) -> tuple[int, int]:
        """Pid and start time of this process."""

    def start_of(self, pid: int) -> int:
        """When a process started; 0 if it has ended."""

    def kill(self, pid: int, signum: int) -> None:
        """A signal to a process that `start_of` has just known; no error if it is gone."""

    def holder(self) -> Held | None:
        """Who runs the watchdog of this fleet."""

    def lead(self) -> Lead:
        """The watchdog's lock."""

    def nudge(self) -> None:
        """Wake the watchdog."""

    def require_tmux(self) -> None:
        """Unavailable where there is none."""

    def server(self) -> Server:
        """The fleet's tmux server, where the record says it is."""

    def socket(self) -> str:
        """Where the server would be founded now."""

    def users_listing(self) -> Listing:
        """What runs on the user's own tmux server."""

    def clients(self) -> tuple[Proc, ...]:
        """Control clients of this fleet."""

    def server_process(self, path: str) -> Proc | None:
        """The tmux server that listens there; None if that cannot be told."""

    def guests(self, server: Proc, runs: set[str]) -> tuple[Proc, ...]:
        """What runs in panes of that server without being of one of these runs."""

    def limit(self, pid: int) -> Allowance:
        """How many open files that process may have; 0: this one."""

    def widen(self, pid: int, need: int) -> None:
        """Let it have so many, if we may."""


class RealHost:
    """This machine."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._state_dir = os.path.join(fleet.log_dir, "state")

    def me(self) -> tuple[int, int]:
        return os.getpid(), start_of(os.getpid())

    def start_of(self, pid: int) -> int:
        return start_of(pid)

    def kill(self, pid: int, signum: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signum)

    def holder(self) -> Held | None:
        return watchdog_holder(self._state_dir)

    def lead(self) -> Lead:
        return WatchdogLock(self._state_dir)

    def nudge(self) -> None:
        nudge(self._state_dir)

    def require_tmux(self) -> None:
        require_tmux()

    def server(self) -> Server:
        return server_of(self._fleet)

    def socket(self) -> str:
        return resolve_socket(self._fleet.tmux_socket)

    def users_listing(self) -> Listing:
        theirs = TmuxServer("default", self._state_dir, self._fleet.project_id, self._fleet.log_dir)
        try:
            return theirs.listing()
        except Unavailable:
            return Listing(None)

    def clients(self) -> tuple[Proc, ...]:
        return control_clients(self._fleet.project_id)

    def server_process(self, path: str) -> Proc | None:
        return server_at(path)

    def guests(self, server: Proc, runs: set[str]) -> tuple[Proc, ...]:
        return guests(server, runs)

    def limit(self, pid: int) -> Allowance:
        return (descriptors.of(pid) if pid else None) or descriptors.ours()

    def widen(self, pid: int, need: int) -> None:
        descriptors.widen_other(pid, need)
