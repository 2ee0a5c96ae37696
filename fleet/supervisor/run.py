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
import subprocess
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import fleet as package
from fleet import config, engine
from fleet.core.model import Fleet
from fleet.core.words import EventType
from fleet.host.children import Jobs
from fleet.host.disk import RealDisk
from fleet.host.locks import WatchdogLock
from fleet.host.tmux.control import ControlTmux
from fleet.host.tmux.server import server_of
from fleet.host.tmux.speaker import Speaker
from fleet.host.trust import untrusted
from fleet.host.waker import Waker
from fleet.ports import ChildEnded, Clock, Hint, LockError, PaneDied, Wake
from fleet.store import lastgood
from fleet.store.house import House
from fleet.store.memories import Records
from fleet.supervisor.declaration import Standing
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.reload import Reloader
from fleet.supervisor.tick import Supervisor
from fleet.supervisor.world import real_helpers, real_world

if TYPE_CHECKING:
    from fleet.core.loop.loop_case import Job
    from fleet.core.seen import ServerId
    from fleet.supervisor.look import Look

SWEPT_S = 2.0  # a sweep of the state directory may go on for so long after it took the lock away
SWEEP_LOOK_S = 0.25
PATIENCE_S = (5.0, 300.0)  # after a fault of our own: wait, twice as long each time
AGAIN_S = (1.0, 300.0)  # after an end of the notifier: wait, twice as long each time it ended soon
SOON_S = 60.0
LARGEST = 64 << 10  # a long kickoff is history once its agent runs
PLACES = ("", "agents", "runs", "outbox")
JOURNAL = ".jsonl"  # grows by appending: what was read of it is soon old


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
        self.tmux = ControlTmux(server_of(fleet.ground), clock)
        state_dir = os.path.join(fleet.log_dir, "state")
        self.disk = KeepingDisk(state_dir)
        world = real_world(fleet, self.tmux, self.disk, clock)
        helpers = real_helpers(fleet, world)
        assert helpers.pages is not None, "real helpers fetch pages"
        self.jobs: Jobs[Job] = Jobs(world.clock.mono, world.disk, f"{state_dir}/jobs")
        self.waker = Waker(state_dir)
        helpers.pages.ring = lambda: self.waker.poke(Hint.SIGNALS)
        notifier = engine.command("notify", "run", "--config", path)
        self.herald = Herald(notifier, world.clock.mono)
        self.config = Reloader(world, path, config.parse)
        self.config.prime(fleet, standing.text)
        self.dog = Supervisor(
            world, self.config, helpers, govern=lambda w, house: LoopKeeper(w, house, self.jobs)
        )
        self.watched: set[str] = set()  # sessions whose processes wake us
        self.kept = b""  # what was last put down as good
        self.watched_jobs: set[ChildEnded] = set()
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
        lastgood.keep(RealDisk(), fleet.ground, self.kept.decode(), self.clock.wall())

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
        self.waker.watch_fd(Hint.TMUX, self.tmux.fileno())
        self._watch_jobs()
        now, due = self.clock.mono(), self.jobs.due()
        deadline = now + delay if due is None else min(now + delay, due)
        while not self.stop and not self.hung_up:
            keys = self.waker.wait(max(0.0, deadline - self.clock.mono()))
            if keys == {Hint.TMUX} and not self.tmux.drain() and self.clock.mono() < deadline:
                continue
            for key in keys:
                self.dog.hasten(key)
            return

    def _watch(self, look: Look, fleet: Fleet) -> None:
        """Deaths by descriptor, files by hint."""
        names = {s.session for s in fleet.members}
        for session, ref in look.alive.items():
            if session in names:
                self.waker.watch_pid(PaneDied(session), ref.pid)
        for session in self.watched - look.alive.keys():
            self.waker.unwatch(PaneDied(session))
        self.watched = set(look.alive)
        signals = self.dog.house.path("signals")
        places: list[tuple[Wake, str]] = [(Hint.CONFIG, fleet.config_path), (Hint.SIGNALS, signals)]
        if self.dog.loop is not None and fleet.loop is not None:
            places += [(Hint.LOOP, p) for p in self.dog.loop.watch_paths(fleet.loop)]
        self.waker.watch_files(places)

    def _watch_jobs(self) -> None:
        """Wake when a child ends; forget those that have."""
        here = {ChildEnded(pid) for pid in self.jobs.pids()}
        for gone in self.watched_jobs - here:
            self.waker.unwatch(gone)
        for child in here:
            self.waker.watch_pid(child, child.pid)
        self.watched_jobs = here

    def _told(self, signum: int, _frame: object) -> None:
        self.stop = f"received {signal.Signals(signum).name}"
        self.waker.poke(Hint.INTERRUPT)

    def _hang_up(self, _signum: int, _frame: object) -> None:
        self.hung_up = True
        self.waker.poke(Hint.INTERRUPT)

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


class Herald:
    """The notifier: at most one child, which delivers messages while `[[notify]]` has a target.

    Whether it lives, hangs or dies, no tick waits for it.
    """

    def __init__(self, argv: Sequence[str], mono: Callable[[], float]) -> None:
        self._argv = list(argv)
        self._mono = mono
        self._child: subprocess.Popen[bytes] | None = None
        self._started = self._again = 0.0
        self._pause = AGAIN_S[0]

    def keep(self, *, wanted: bool) -> None:
        """Make it so that it runs if it is wanted; called every tick, and never waits."""
        now = self._mono()
        if self._child is not None and self._child.poll() is not None:
            self._child = None
            lasted = now - self._started >= SOON_S
            self._pause = AGAIN_S[0] if lasted else min(2 * self._pause, AGAIN_S[1])
            self._again = now + self._pause
        if not wanted:
            self._ask()
        elif self._child is None and now >= self._again:
            self._started, self._again = now, now + self._pause
            with contextlib.suppress(OSError):
                self._child = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, start_new_session=True)

    def close(self) -> None:
        """Ask it to end; it does so by itself once its message has arrived."""
        self._ask()

    def _ask(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()


class KeepingDisk(RealDisk):
    """The real disk; it remembers the state directory: a `git clean -fdx` by an agent must not end a night.

    What the watchdog remembers by, and what the operator wants, is kept in memory as it was last read or
    written: the small files of the directory itself, of agents/, runs/ and outbox/. Signals are not: they
    are said once. `restore` writes back what is missing below `root`.
    """

    def __init__(self, root: str) -> None:
        self._places = {os.path.join(root, name).rstrip("/") for name in PLACES}
        self._kept: dict[str, bytes] = {}

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        data = super().read(path, cap)
        self._keep(path, data)
        return data

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        super().write(path, data, sync=sync)
        self._keep(path, data)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._kept.pop(path, None)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        super().rename(old, new, sync=sync)
        if (data := self._kept.pop(old, None)) is not None:
            self._keep(new, data)

    def restore(self) -> int:
        """Write back what is gone; how many files that were."""
        missing = [path for path in self._kept if not os.path.lexists(path)]
        for path in missing:
            self.make_dir(os.path.dirname(path))
            super().write(path, self._kept[path])
        return len(missing)

    def _keep(self, path: str, data: bytes) -> None:
        folder = os.path.dirname(path)
        if folder in self._places and len(data) <= LARGEST and not path.endswith(JOURNAL):
            self._kept[path] = data


def move_back_in(fleet: Fleet, house: House, records: Records, disk: KeepingDisk, tmux: Speaker) -> int:
    """The state as we last knew it, and new logs where the old ones are gone; how many files came back."""
    count = disk.restore()
    for folder in (house.path("agents"), house.path("runs"), house.path("signals"), house.logs_dir):
        disk.make_dir(folder)
    for agent in fleet.agents:  # `up` wrote these, not we; the records of the runs hold them too
        run, path = records.run(agent.session), house.path(f"{agent.name}.id")
        if run is not None and run.conversation and not os.path.lexists(path):
            house.store.write_text(f"{agent.name}.id", f"{run.conversation}\n")
            count += 1
    sessions = [*(s.session for s in fleet.members), fleet.watchdog_session]
    lost = [s for s in sessions if not os.path.lexists(f"{house.logs_dir}/{s}.log")]
    for session in lost:
        disk.touch(f"{house.logs_dir}/{session}.log")
    tmux.log_again(lost)
    return count
