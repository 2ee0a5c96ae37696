"""The doors of one process of the simulation that are none of tmux, processes, clock or disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fleet.core.seen import Listing
from fleet.ports import Held, Reply
from tests.sim.tmux import SimTmux

if TYPE_CHECKING:
    from tests.sim.simulation import Simulation
    from tests.sim.verbs import Verb


class SimLocks:
    """Implements Locks, for a verb or for the watchdog."""

    def __init__(self, sim: Simulation, verb: Verb | None, wait: Callable[[float], None]) -> None:
        self._sim = sim
        self._verb = verb
        self._wait = wait

    def state(self) -> AbstractContextManager[object]:
        return self._sim.lock.taken(self._verb or "watchdog", self._wait)

    def lead(self) -> SimLead:
        assert self._verb is not None, "the watchdog has it already"
        return SimLead(self._verb)

    def holder(self) -> Held | None:
        self._sim.machine.before("locks.holder")
        return self._sim.holder()

    def nudge(self) -> None:
        self._sim.machine.before("locks.nudge")
        self._sim.machine.woken = True


class SimLead:
    """The watchdog's lock, as a verb takes it."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb

    def acquire(self) -> None:
        self._verb.before("lead")
        if (held := self._verb.sim.holder()) is not None:
            raise held
        self._verb.sim.lead(self._verb)

    def release(self) -> None:
        self._verb.sim.drop_lead(self._verb)


class SimServers:
    """Implements Servers: there is one server, and the user has none."""

    def __init__(self, tmux: SimTmux) -> None:
        self._tmux = tmux

    def require_tmux(self) -> None:
        """There is one."""

    def ours(self) -> SimTmux:
        return self._tmux

    def socket(self) -> str:
        return self._tmux.path

    def users_listing(self) -> Listing:
        return Listing(None)


class SimHttp:
    """Implements Http. What runs beside a process ends with it."""

    def __init__(self, sim: Simulation, verb: Verb | None) -> None:
        self._sim = sim
        self._verb = verb

    def ask(self, address: str, key: str, data: bytes | None, timeout: float) -> Reply:
        return self._sim.machine.sources.ask(address, key, data, timeout)

    def beside(self, _name: str, job: Callable[[], None]) -> None:
        machine = self._sim.machine
        whose = self._verb.proc if self._verb is not None else self._sim.dog

        def run() -> None:
            if whose is not None and whose.alive:
                job()

        machine.clock.after(machine.sources.delay, run)

    def free_port(self) -> int:
        return self._sim.machine.port()
