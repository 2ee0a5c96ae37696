"""One project's directory, and everything that is written there.

`Store` keeps documents, `Events` the record, `DesiredFile` what the operator wants, `Outbox` the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fleet.ports import Clock, Disk, Host, Locks
from fleet.store.documents import Store
from fleet.store.eventlog import Events
from fleet.store.outbox import Outbox
from fleet.store.wishes import DesiredFile
from fleet.text import secret_values


class Footing(Protocol):
    """The ports that files need."""

    @property
    def host(self) -> Host: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def locks(self) -> Locks: ...


class House:
    """One project's directory and everything that is written there."""

    def __init__(
        self,
        world: Footing,
        log_dir: str,
        tick: Callable[[], int] = lambda: 0,
        *,
        repair: bool = True,
    ) -> None:
        self.log_dir = log_dir
        self.state_dir = f"{log_dir}/state"
        self.logs_dir = f"{log_dir}/logs"
        self.disk = world.disk
        wall = world.clock.wall
        self.store = Store(world.disk, self.state_dir, wall, repair=repair)
        secrets = secret_values(world.host.environ)
        self.events = Events(world.disk, f"{log_dir}/events.jsonl", wall, tick, secrets)
        self.desired = DesiredFile(world.disk, self.store, world.locks.state)
        self.outbox = Outbox(world.disk, self.state_dir, wall)

    def path(self, name: str) -> str:
        """A file of the state directory."""
        return f"{self.state_dir}/{name}"
