"""The watchdog's notifier: one child that delivers messages, kept alive while `[[notify]]` has a target.

Whether it lives, hangs or dies, no tick waits for it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence

AGAIN_S = (1.0, 300.0)  # after an end: wait, twice as long each time it ended soon
SOON_S = 60.0


class Herald:
    """At most one child."""

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
