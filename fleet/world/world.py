"""The world in one bundle: real in production, simulated in tests. Everything that acts gets it handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from fleet.core.desired import Hold
from fleet.core.model import AgentSpec, Fleet
from fleet.core.text import secret_values
from fleet.journal.desired import DesiredFile
from fleet.journal.events import Events
from fleet.journal.outbox import Outbox
from fleet.journal.store import Store
from fleet.ports import Clock, Disk, Processes, Tmux
from fleet.world.host import Host
from fleet.world.logs import LogKeeper
from fleet.world.mail import Mail
from fleet.world.pages import Pages


def _no_point(_name: str) -> None:
    """Nobody wants to know that we passed here."""


def _no_port() -> int:
    """Where there is no network there is no server either."""
    return 0


def _trusted(_path: str) -> str:
    """A simulated machine has one user."""
    return ""


@dataclass(slots=True)
class World:
    """Ports, and the few questions about this machine that fit none of them."""

    tmux: Tmux
    processes: Processes
    clock: Clock
    disk: Disk
    lock: Callable[[], AbstractContextManager[object]]  # excludes every other writer of the state
    draw: Callable[[], str]  # 32 random hex digits
    holds: Callable[[Hold], bool]  # does whoever took this hold still live?
    # why an agent can never start here, with this environment; empty if it can
    preflight: Callable[[Fleet, AgentSpec, Mapping[str, str]], str]
    host: Host | None = None  # the machine around a verb; a watchdog needs none
    environ: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""  # the host's time zone, for banners that name none
    untrusted: Callable[[str], str] = _trusted  # why another user could change this path; "" if none can
    port: Callable[[], int] = _no_port  # a free port of the loopback; 0 if there is none
    pages: Pages = field(default_factory=Pages)
    mail: Mail = field(default_factory=Mail)
    logs: LogKeeper | None = None  # keeps the sessions' logs within bounds
    point: Callable[[str], None] = _no_point  # passed around every effect, so that tests can die there


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
        secrets = secret_values(world.environ)
        self.events = Events(world.disk, f"{log_dir}/events.jsonl", wall, tick, secrets)
        self.desired = DesiredFile(world.disk, self.store, world.lock)
        self.outbox = Outbox(world.disk, self.state_dir, wall)

    def path(self, name: str) -> str:
        """A file of the state directory."""
        return f"{self.state_dir}/{name}"
