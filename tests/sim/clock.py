"""Three times at once: the universe's own, the monotonic clock of this boot, and a wall clock that may jump.

Everything that happens is an event on one queue, ordered by the universe's time. A suspend moves only
the wall clock, as it does for a process that slept through it; a reboot restarts the monotonic one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

UPTIME = 1_000.0  # what the monotonic clock shows just after a boot


class Timer:
    """A future event; `cancel` makes it nothing."""

    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], None] | None) -> None:
        self.at = at
        self.action = action

    def cancel(self) -> None:
        """Forget it; the queue drops it when its time comes."""
        self.action = None


class SimClock:
    """The Clock port, and the queue that moves it."""

    def __init__(self, epoch: float) -> None:
        self.t = 0.0
        self.skew = epoch
        self.booted = 0.0
        self._queue: list[tuple[float, int, Timer]] = []
        self._count = 0

    def wall(self) -> float:
        """What `time.time()` would say."""
        return self.skew + self.t

    def mono(self) -> float:
        """What `time.monotonic()` would say: it does not count a suspend and restarts at a boot."""
        return self.t - self.booted + UPTIME

    def sleep(self, seconds: float) -> None:
        """Everything else goes on meanwhile."""
        self.advance_to(self.t + seconds)

    def after(self, delay: float, action: Callable[[], None]) -> Timer:
        """Do `action` that many seconds from now."""
        timer = Timer(self.t + max(0.0, delay), action)
        self._count += 1
        heapq.heappush(self._queue, (timer.at, self._count, timer))
        return timer

    def next_event(self) -> float | None:
        """When the next thing happens, in the universe's time."""
        while self._queue and self._queue[0][2].action is None:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def advance_to(self, t: float) -> None:
        """Let everything up to `t` happen. An action may itself let time pass."""
        while (due := self.next_event()) is not None and due <= t:
            _, _, timer = heapq.heappop(self._queue)
            self.t = max(self.t, due)
            action, timer.action = timer.action, None
            if action is not None:
                action()
        self.t = max(self.t, t)

    def jump(self, seconds: float) -> None:
        """Set the wall clock; a suspend is a jump forward that nothing else notices."""
        self.skew += seconds

    def boot(self) -> None:
        """The monotonic clock begins again."""
        self.booted = self.t
