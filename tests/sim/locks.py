"""The state lock and the right to be the watchdog: verbs wait for the one, and a death ends both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ports import Held
from tests.sim.declared import LOG_DIR

PATIENCE_S = 10.0
POLL_S = 0.02


class SimLock:
    """One owner at a time, as often as it likes."""

    def __init__(self, mono: Callable[[], float]) -> None:
        self._mono = mono
        self.owner: object = None
        self.depth = 0

    @contextmanager
    def taken(self, who: object, wait: Callable[[float], None]) -> Iterator[None]:
        """Held by `who`; whoever waits too long is refused."""
        deadline = self._mono() + PATIENCE_S
        while self.owner is not None and self.owner is not who:
            if self._mono() >= deadline:
                raise Held(f"{LOG_DIR}/state/state.lock", 0, 0, 0.0)
            wait(POLL_S)
        self.owner = who
        self.depth += 1
        try:
            yield
        finally:
            if self.owner is who:
                self.depth -= 1
                if not self.depth:
                    self.owner = None

    def drop(self, who: object) -> None:
        """The process is gone, and the lock with it."""
        if self.owner is who:
            self.owner, self.depth = None, 0
