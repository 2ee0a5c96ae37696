"""The machine's own clocks, behind the port that simulation replaces. No other file reads them."""

from __future__ import annotations

import time

from fleet.times.moment import Wall


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
