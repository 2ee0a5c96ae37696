"""What cannot be looked at or written just now: named, told once, taken back when a tick goes well again."""

from __future__ import annotations

from collections.abc import Callable

from fleet.journal.store import StoreError
from fleet.world.ports import Unavailable


class Trouble:
    """The degraded mode of the watchdog. `tell` puts a change on record."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self.now = ""  # in what way we are degraded; empty: not at all
        self._tell = tell
        self._fresh = False

    def begin(self) -> None:
        """A new tick: nothing has gone wrong in it yet."""
        self._fresh = False

    def degrade(self, why: str) -> None:
        """Something went wrong in this tick; the same thing again is no news."""
        self._fresh = True
        if why != self.now:
            self.now = why
            self._tell("watchdog.degraded", why)

    def recover(self) -> None:
        """A tick is over; if nothing went wrong in it, neither are we."""
        if self.now and not self._fresh:
            self.now = ""
            self._tell("watchdog.recovered", "everything can be looked at and written again")

    def guard(self, what: str, step: Callable[[], object]) -> None:
        """One step that fails must not take the others with it."""
        try:
            step()
        except (OSError, StoreError, Unavailable) as error:
            self.degrade(f"{what}: {error}")
