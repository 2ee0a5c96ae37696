"""The machine's own clocks, behind the port that simulation replaces."""

from __future__ import annotations

import time

from fleet.core.moment import Wall


class RealClock:
    """Wall time for instants, monotonic time for durations."""

    def wall(self) -> Wall:
        return Wall(time.time())

    def mono(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
