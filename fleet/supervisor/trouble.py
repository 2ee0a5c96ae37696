"""What cannot be looked at or written just now: named, told once, taken back when all goes well again.

Each cause has a place of its own. On a full disk several steps fail at every tick, each with its own words:
one place for all of them would make every tick news.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from fleet.core.words import EventType
from fleet.ports import Unavailable
from fleet.store.documents import StoreError

TRACE_MAX = 4000  # characters of a traceback that go on record


class Trouble:
    """The degraded mode of the watchdog. `tell` puts a change on record, with a traceback or ""."""

    def __init__(self, tell: Callable[[EventType, str, str], None], *, strict: bool = False) -> None:
        """`strict`: a step that fails ends the verb, which says why."""
        self._strict = strict
        self._tell = tell
        self._words: dict[str, str] = {}  # what goes wrong now, by cause
        self._told: set[str] = set()  # causes on record since all was well
        self._fresh: set[str] = set()  # causes of this tick
        self._steps: set[str] = set()  # causes that only their own success ends

    @property
    def now(self) -> str:
        """In what way we are degraded; empty: not at all."""
        return "; ".join(f"{cause}: {why}" for cause, why in self._words.items())

    def begin(self) -> None:
        """A new tick: nothing has gone wrong in it yet."""
        self._fresh.clear()

    def degrade(self, cause: str, why: str) -> None:
        """Something went wrong in this tick; the same cause again is no news."""
        self._fresh.add(cause)
        self._words[cause] = why
        if cause not in self._told:
            self._told.add(cause)
            self._tell(EventType.WATCHDOG_DEGRADED, f"{cause}: {why}", "")

    def fault(self, cause: str, fault: Exception) -> None:
        """A fault of our own, with where it happened."""
        trace = "".join(traceback.format_exception(fault))[-TRACE_MAX:]
        self._tell(EventType.WATCHDOG_STEP_FAILED, f"{cause}: {fault!r}", trace)

    def recover(self) -> None:
        """A tick is over; if no cause is left, we are well."""
        self._words = {c: why for c, why in self._words.items() if c in self._fresh or c in self._steps}
        if self._told and not self._words:
            self._told.clear()
            self._tell(EventType.WATCHDOG_RECOVERED, "everything can be looked at and written again", "")

    def guard(self, cause: str, step: Callable[[], object], *, comes_again: bool = True) -> None:
        """One step that fails must not take the others with it. One that comes again ends its own trouble."""
        if self._strict:
            step()
            return
        try:
            step()
        except (OSError, StoreError, Unavailable) as error:
            if comes_again:
                self._steps.add(cause)
            self.degrade(cause, str(error))
        except Exception as fault:
            if comes_again:
                self._steps.add(cause)
            if cause not in self._told:
                self.fault(cause, fault)
            self.degrade(cause, repr(fault))
        else:
            if cause in self._steps:
                self._steps.discard(cause)
                self._words.pop(cause, None)
