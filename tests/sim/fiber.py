"""Code that blocks, run beside the rest of the universe: a thread that runs only when it is given a turn."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Fiber:
    """Exactly one thread runs at any time: whoever resumes a fiber waits until it pauses or ends."""

    def __init__(self, body: Callable[[], None]) -> None:
        self._body = body
        self._mine = threading.Semaphore(0)
        self._theirs = threading.Semaphore(0)
        self._raised: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.over = False

    def resume(self) -> None:
        """Let it run to its next pause. What it raises is raised here."""
        if self.over:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._mine.release()
        self._theirs.acquire()
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def pause(self) -> None:
        """Inside of it: it is somebody else's turn."""
        self._theirs.release()
        self._mine.acquire()

    def _run(self) -> None:
        try:
            self._body()
        except BaseException as raised:
            self._raised = raised
        self.over = True
        self._theirs.release()
