"""The world of one process: its doors in one bundle, real in production, simulated in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleet.host.pane_logs import LogKeeper
from fleet.ports import Clock, Disk, Draw, Host, Http, Locks, Processes, Servers, Tmux
from fleet.store.documents import Store
from fleet.store.eventlog import Events
from fleet.store.outbox import Outbox
from fleet.store.wishes import DesiredFile
from fleet.supervisor.cli_servers import Mail, Pages
from fleet.text import secret_values


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


class House:
    """One project's directory and everything that is written there."""

    def __init__(
        self, world: World, log_dir: str, tick: Callable[[], int] = lambda: 0, *, repair: bool = True
    ) -> None:
        self.log_dir = log_dir
        self.state_dir = f"{log_dir}/state"
        self.logs_dir = f"{log_dir}/logs"
        wall = world.clock.wall
        self.store = Store(world.disk, self.state_dir, wall, repair=repair)
        secrets = secret_values(world.host.environ)
        self.events = Events(world.disk, f"{log_dir}/events.jsonl", wall, tick, secrets)
        self.desired = DesiredFile(world.disk, self.store, world.locks.state)
        self.outbox = Outbox(world.disk, self.state_dir, wall)

    def path(self, name: str) -> str:
        """A file of the state directory."""
        return f"{self.state_dir}/{name}"
