"""Simulated children of the watchdog: git calls and gates that take their time, hang, or cannot be started.

A child's answer is made when it ends. Children belong to one watchdog; with it they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from fleet.core.loop.loop_case import Job
from fleet.ports import JobEnd
from tests.sim.clock import SimClock, Timer

Answer = Callable[[Sequence[str]], "tuple[int, bytes]"]


class SimChildren:
    """Implements Children. `trouble` says how the next ones fare: "", "hang" or "refuse"."""

    def __init__(
        self,
        clock: SimClock,
        rng: Random,
        answer: Answer,
        before: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._answer = answer
        self._before = before
        self._wake = wake
        self._live: dict[Job, Timer] = {}
        self._ended: list[JobEnd[Job]] = []
        self.trouble = ""

    def start(
        self,
        key: Job,
        argv: Sequence[str],
        *,
        cwd: str,
        timeout: float,
        log: str = "",
        env: Mapping[str, str] = {},
    ) -> str:
        """A child begins; it may be refused, as a full process table does."""
        self._before("children.start")
        if key in self._live:
            return ""
        if self.trouble == "refuse":
            return f"{argv[0]} in {cwd}: Resource temporarily unavailable"
        takes = self._rng.uniform(0.01, 20.0) if argv[0] == "/bin/sh" else self._rng.uniform(0.005, 0.5)
        late = self.trouble == "hang" or takes >= timeout
        began = self._clock.t
        argv = tuple(argv)

        def ends() -> None:
            del self._live[key]
            code, output = (None, b"") if late else self._answer(argv)
            why = "its time limit" if late else ""
            self._ended.append(JobEnd(key, code, output, self._clock.t - began, log, why))
            self._wake()

        self._live[key] = self._clock.after(timeout if late else takes, ends)
        return ""

    def poll(self) -> tuple[JobEnd[Job], ...]:
        """Those that ended since the last time."""
        self._before("children.poll")
        ended, self._ended = tuple(self._ended), []
        return ended

    def keys(self) -> frozenset[Job]:
        """Those at work."""
        return frozenset(self._live)

    def cancel(self, key: Job) -> None:
        """Its answer is not wanted."""
        self._before("children.cancel")
        if timer := self._live.pop(key, None):
            timer.cancel()

    def close(self) -> None:
        """The watchdog is gone, and they with it."""
        for timer in self._live.values():
            timer.cancel()
        self._live.clear()
