"""The machine's own clocks, behind the port that simulation replaces. No other file reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleet.times.moment import Wall

if TYPE_CHECKING:
    from fleet.ports import Clock


class RealClock:
    """Wall time for instants, monotonic time for durations."""

    def wall(self) -> Wall:
        return Wall(time.time())

    def mono(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def since_boot() -> float:
    """Seconds since the boot, with those that the machine slept: what the process table counts in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def polls(clock: Clock, seconds: float, pause: float) -> Iterator[None]:
    """Turns to look for something: one now, one after each pause, the last one when the seconds are over."""
    deadline = clock.mono() + seconds
    while True:
        yield
        if clock.mono() >= deadline:
            return
        clock.sleep(pause)
