"""The life of a notifier: a child of the watchdog, so that no service ever delays a tick.

It ends with the watchdog that started it. If the watchdog died, the notifier reports that first: the watchdog
itself cannot. One notifier per project: a second one waits until the first has ended.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal

from fleet import config
from fleet.core.desired import Want
from fleet.core.model import Fleet, Notify
from fleet.core.words import WatchdogState
from fleet.extras.notify.notices import Book, Notice, begins, ends
from fleet.extras.notify.notifier import Look, Notifier, drift_of
from fleet.extras.notify.targets import Dispatch, deliver, end_children
from fleet.host.disk import RealDisk
from fleet.host.locks import alone, pulse
from fleet.ports import Clock
from fleet.reading import mark_of
from fleet.store.documents import Store
from fleet.store.eventlog import Events
from fleet.store.wishes import read_view, wants
from fleet.text import secret_values

LOCK = "notify.lock"
POLL_S = 0.5
SHORTEST_S = 0.05
HUNG_S = 10.0  # a machine that wakes up needs a moment before its watchdog beats again
LAST_WORDS_S = 20.0
STOP_S = 2.0  # for what is on its way; what does not arrive by then is sent by the next one


def run(fleet: Fleet, clock: Clock, *, once: bool) -> int:
    """Send notices until SIGTERM; with `once`, send what is due and end."""
    state_dir = os.path.join(fleet.log_dir, "state")
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    with alone(os.path.join(state_dir, LOCK)):
        runner = _Runner(fleet, clock)
        return runner.once() if once else runner.stay()


def notifier(fleet: Fleet, clock: Clock, *, look_only: bool = False) -> Notifier:
    """The queue of this fleet, with real senders."""
    disk, state_dir = RealDisk(), os.path.join(fleet.log_dir, "state")
    store = Store(disk, state_dir, clock.wall, repair=not look_only)
    secrets = [*secret_values(os.environ)]
    secrets += [os.environ[n.url_env] for n in fleet.notify if os.environ.get(n.url_env)]
    events = Events(disk, os.path.join(fleet.log_dir, "events.jsonl"), clock.wall, secrets=secrets)

    def send(target: Notify, message: Dispatch) -> str:
        return deliver(target, message, os.environ, fleet.project_dir)

    return Notifier(fleet, store, events, send, clock)


class _Runner:
    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        self._clock = clock
        self.state_dir = os.path.join(fleet.log_dir, "state")
        self.notifier = notifier(fleet, clock)
        self.stop = False
        self._parent = os.getppid()
        self._config: object = mark_of(fleet.config_path)
        self._view: object = None
        self._quiet_since: float | None = None  # when the heartbeat was first found too old (monotonic)

    def once(self) -> int:
        """What `ensure` needs: whatever is due, and whether the watchdog stands still."""
        self._send(math.inf)
        self.notifier.close(0.0)
        return 0

    def stay(self) -> int:
        """Until SIGTERM, or until the watchdog that started this process is gone."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._ask_to_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while not self.stop and os.getppid() == self._parent:
            self._reload()
            self.notifier.turn(self._clock.wall(), self._looks(HUNG_S))
            wait = 0.0 if self.notifier.busy() else min(POLL_S, self.notifier.next_due(self._clock.wall()))
            self._clock.sleep(max(SHORTEST_S, wait))
        if not self.stop:  # the watchdog is gone, and cannot report that itself
            self._send(LAST_WORDS_S)
        self.notifier.close(STOP_S)
        end_children()
        return 0

    def _send(self, patience: float) -> None:
        """Look at the watchdog, then wait until everything that is due was sent or given up."""
        deadline = self._clock.mono() + patience
        self.notifier.turn(self._clock.wall(), self._looks(patience=0.0))
        while self.notifier.busy() and self._clock.mono() < deadline:
            self._clock.sleep(SHORTEST_S)
            self.notifier.turn(self._clock.wall())

    def _ask_to_stop(self, _signum: int, _frame: object) -> None:
        self.stop = True

    def _reload(self) -> None:
        """Follow edits of the file; one that is not right yet changes nothing."""
        path = self.notifier.fleet.config_path
        mark = mark_of(path)
        if mark != self._config:
            self._config = mark
            with contextlib.suppress(config.ConfigError, OSError):
                fleet = config.load(path)
                if fleet.log_dir == self.notifier.fleet.log_dir:
                    self.notifier.fleet = fleet

    # --- what is so ---------------------------------------------------------------------------------

    def _looks(self, patience: float) -> list[Look]:
        looks = [self._stale(patience)]
        path = os.path.join(self.state_dir, "view.json")
        mark = mark_of(path)
        if mark is not None and mark != self._view:
            self._view = mark
            looks.append(drift_of(read_view(self.state_dir) or {}, self._clock.wall()))
        return looks

    def _stale(self, patience: float) -> Look:
        """The watchdog is missing, or has not ticked for too long."""
        why = standing_still(self.notifier.fleet, self.state_dir, self._clock)
        now = self._clock.mono()
        if not why:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        lasting = self._quiet_since is not None and now - self._quiet_since >= patience

        def look(book: Book) -> tuple[Book, tuple[Notice, ...]]:
            if lasting:
                return begins(book, "stale", "", self._clock.wall(), why)
            return book if why else ends(book, "stale", "")[0], ()

        return look


def standing_still(fleet: Fleet, state_dir: str, clock: Clock) -> str:
    """Why a fleet that should be up has no working watchdog; empty when it has one, or needs none."""
    if Want.UP not in wants(state_dir).values():
        return ""
    dog = pulse(state_dir, fleet.watchdog.signal_interval, clock.wall())
    if dog.state is WatchdogState.STOPPED:
        return "no watchdog is running, no agent is restarted: `agents.py ensure` starts one"
    if dog.state is WatchdogState.RUNNING:
        return ""
    return f"the watchdog has not ticked for {dog.age:.0f} s: `agents.py ensure` replaces it"
