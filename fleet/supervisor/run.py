"""The watchdog's process: tick, sleep until something happens or is due, and come through what goes wrong.

A state directory that is swept away is written back, a lock that is taken away is taken again, and a fault of
the program itself costs a tick.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import pkgutil
import signal
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import fleet as package
from fleet import config, engine
from fleet.core.words import EventType
from fleet.host.children import Jobs
from fleet.host.disk import RealDisk
from fleet.host.locks import WatchdogLock
from fleet.host.tmux.control import ControlTmux
from fleet.host.tmux.server import server_of
from fleet.host.trust import untrusted
from fleet.host.waker import Waker
from fleet.ports import Clock, LockError
from fleet.store import lastgood
from fleet.supervisor.declaration import Standing
from fleet.supervisor.keepsakes import KeepingDisk, move_back_in
from fleet.supervisor.loop_keeper import LoopKeeper
from fleet.supervisor.notifier_child import Herald
from fleet.supervisor.project import real_helpers, real_world
from fleet.supervisor.reload import Reloader
from fleet.supervisor.tick import Supervisor

if TYPE_CHECKING:
    from fleet.core.loop.loop_case import Job
    from fleet.core.model import Fleet
    from fleet.core.seen import ServerId
    from fleet.supervisor.look import Look

SWEPT_S = 2.0  # a sweep of the state directory may go on for so long after it took the lock away
SWEEP_LOOK_S = 0.25
PATIENCE_S = (5.0, 300.0)  # after a fault of our own: wait, twice as long each time


class Watch:
    """Tick, sleep, wake. The only place that catches everything."""

    def __init__(
        self, standing: Standing, path: str, lock: WatchdogLock, clock: Clock, tell: Callable[[str], None]
    ) -> None:
        """`tell`: says what goes wrong in the watchdog's own terminal."""
        fleet = standing.fleet
        self.lock = lock
        self.path = path
        self.locked_out = ""  # why the state directory is not safe to use; empty if it is
        self.homeless = 0.0  # until then (monotonic) what is missing of the state directory is written back
        self.tell = tell
        self.clock = clock
        self.tmux = ControlTmux(server_of(fleet), clock)
        state_dir = os.path.join(fleet.log_dir, "state")
        self.disk = KeepingDisk(state_dir)
        world = real_world(fleet, self.tmux, self.disk, clock)
        helpers = real_helpers(fleet, world)
        assert helpers.pages is not None, "real helpers fetch pages"
        self.jobs: Jobs[Job] = Jobs(world.clock.mono, world.disk, f"{state_dir}/jobs")
        self.waker = Waker(state_dir)
        helpers.pages.ring = lambda: self.waker.poke("signals")
        notifier = engine.command("notify", "run", "--config", path)
        self.herald = Herald(notifier, world.clock.mono)
        self.config = Reloader(world, path, config.parse)
        self.config.prime(fleet, standing.text)
        self.dog = Supervisor(
            world, self.config, helpers, govern=lambda w, house: LoopKeeper(w, house, self.jobs)
        )
        self.watched: set[str] = set()  # sessions whose processes wake us
        self.kept = b""  # what was last put down as good
        self.watched_jobs: set[str] = set()
        self.stop = ""
        self.hung_up = False
        self.home: ServerId | None = None  # the tmux server our own session was last seen in

    def open(self) -> str:
        """Read config and memory; returns why that is not possible."""
        return self.dog.open()

    def run(self, *, once: bool) -> None:
        """Tick until a signal or a removed lock ends it."""
        signal.signal(signal.SIGTERM, self._told)
        signal.signal(signal.SIGINT, self._told)
        signal.signal(signal.SIGHUP, self._hang_up)
        self.dog.begin()
        _import_everything()
        patience = PATIENCE_S[0]
        try:
            while not self.stop:
                try:
                    delay = self._once()
                    patience = PATIENCE_S[0]
                except Exception as fault:
                    self._report(fault)
                    delay, patience = patience, min(2 * patience, PATIENCE_S[1])
                if once:
                    break
                self._sleep(delay)
        finally:
            if not self.locked_out:
                self.dog.close(self.stop or "done")
            self.herald.close()
            self.jobs.close()
            self.tmux.close()
            self.waker.close()

    def _once(self) -> float:
        swept = not self.lock.still_ours()
        if swept:
            if self._planted():
                return PATIENCE_S[0]
            self.stop = self._take_lock_again()
        if self.stop:
            return 0.0
        if self.homeless:
            self._move_back_in(swept=swept)
        hung_up, self.hung_up = self.hung_up, False  # only a look that came after it can tell what it meant
        delay = min(self.dog.tick(), SWEEP_LOOK_S if self.homeless else math.inf)
        fleet = self.config.fleet
        if fleet is not None and self.config.good is not self.kept:
            self._keep(fleet)
        self.herald.keep(wanted=fleet is not None and bool(fleet.notify))
        look = self.dog.last_look
        if look is None or look.server is None or fleet is None:
            return delay
        if fleet.watchdog_session in look.alive:
            self.home = look.server
        elif hung_up and look.server == self.home:
            # our tmux server runs on without our session: an operator closed it to stop this watchdog
            self.stop = "its session was closed"
        return delay

    def _planted(self) -> bool:
        """Another user could have put the new state directory there: nothing of it is read or written."""
        fault = untrusted(os.path.dirname(self.lock.path))
        was, self.locked_out = self.locked_out, f"{fault}: {fault.fix}" if fault else ""
        if self.locked_out and self.locked_out != was:
            self.tell(f"nothing is done until the state directory is safe: {self.locked_out}")
        return bool(fault)

    def _keep(self, fleet: Fleet) -> None:
        """Put down what was taken in: verbs go on from it when the file cannot be used."""
        self.kept = self.config.good
        lastgood.keep(RealDisk(), fleet, self.kept.decode(), self.clock.wall())

    def _take_lock_again(self) -> str:
        """Take a removed lock file or state directory again; go on unless another watchdog has it.

        If agents.toml is gone as well, the whole project was removed: the watchdog stops.
        """
        if not os.path.lexists(self.path):
            return "agents.toml and the state directory were removed"
        try:
            self.lock.retake()
        except (LockError, OSError) as error:
            return f"the lock file was taken away: {error}"
        self.homeless = self.clock.mono() + SWEPT_S
        return ""

    def _move_back_in(self, *, swept: bool) -> None:
        """The new state directory becomes what the old one was; who sweeps it may not be done yet."""
        fleet, house = self.config.fleet, self.dog.house
        assert fleet is not None, "open() came first"
        count = move_back_in(fleet, house, self.dog.records, self.disk, self.tmux)
        if count or swept:
            self.waker.reopen()
            self.homeless = self.clock.mono() + SWEPT_S
            house.events.record(EventType.STATE_RESTORED, reason=f"{count} files were written back")
        elif self.clock.mono() >= self.homeless:
            self.homeless = 0.0

    def _sleep(self, delay: float) -> None:
        """Sleep until a process dies, a verb asks, a file changes, or the time is over."""
        look, fleet = self.dog.last_look, self.config.fleet
        if look is not None and fleet is not None:
            self._watch(look, fleet)
        self.waker.watch_fd("tmux", self.tmux.fileno())
        self._watch_jobs()
        now, due = self.clock.mono(), self.jobs.due()
        deadline = now + delay if due is None else min(now + delay, due)
        while not self.stop and not self.hung_up:
            keys = self.waker.wait(max(0.0, deadline - self.clock.mono()))
            if keys == {"tmux"} and not self.tmux.drain() and self.clock.mono() < deadline:
                continue
            for key in keys:
                self.dog.hasten(key)
            return

    def _watch(self, look: Look, fleet: Fleet) -> None:
        """Deaths by descriptor, files by hint."""
        names = {s.session for s in fleet.members}
        for session, ref in look.alive.items():
            if session in names:
                self.waker.watch_pid(f"pane:{session}", ref.pid)
        for session in self.watched - look.alive.keys():
            self.waker.unwatch(f"pane:{session}")
        self.watched = set(look.alive)
        places = [("config", fleet.config_path), ("signals", self.dog.house.path("signals"))]
        if self.dog.loop is not None:
            places += [("loop", p) for p in self.dog.loop.watch_paths(fleet)]
        self.waker.watch_files(places)

    def _watch_jobs(self) -> None:
        """Wake when a child ends; forget those that have."""
        here = {f"job:{pid}": pid for pid in self.jobs.pids()}
        for key in self.watched_jobs - here.keys():
            self.waker.unwatch(key)
        for key, pid in here.items():
            self.waker.watch_pid(key, pid)
        self.watched_jobs = set(here)

    def _told(self, signum: int, _frame: object) -> None:
        self.stop = f"received {signal.Signals(signum).name}"
        self.waker.poke("signal")

    def _hang_up(self, _signum: int, _frame: object) -> None:
        self.hung_up = True
        self.waker.poke("signal")

    def _report(self, fault: Exception) -> None:
        text = "".join(traceback.format_exception(fault))
        with contextlib.suppress(OSError):
            self.dog.house.events.record(
                EventType.WATCHDOG_STEP_FAILED, reason=repr(fault), trace=text[-4000:]
            )
        with contextlib.suppress(OSError):
            self.tell(f"a tick failed and is tried again: {fault!r}")


def _import_everything() -> None:
    """An engine that is replaced under us must not mix two versions: load all of ours now."""
    for module in pkgutil.walk_packages(package.__path__, "fleet."):
        if any(
            part in module.name
            for part in ("fleet.extras", "fleet.verbs", "fleet.scripted_agent", "__main__")
        ):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError:
            continue  # a library that is not installed; its user reports that
