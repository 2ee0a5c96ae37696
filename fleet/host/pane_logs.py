"""The sessions' logs: within bounds at every look, and written again once they can be.

What a session prints goes through tmux to a `cat` that appends it to the session's log. The system itself
stops that `cat` at LOG_MAX, so that no agent fills the disk between two looks, whatever it prints. A log over
SOFT_CAP is renamed, which copies nothing, and a new `cat` takes over. One that fills up again at once floods:
the next `cat` has to wait, what is printed meanwhile is dropped by tmux, and that is on record. A `cat` that
ended for another reason, a full disk say, is replaced when there is room.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable

from fleet.core.seen import PaneView
from fleet.core.words import EventType
from fleet.ports import Tmux

SOFT_CAP = 5 << 20
KEEP = 3  # old ones
FLOOD_S = 30.0  # a log that fills up in less is flooded
AGAIN_S = 5.0  # between two tries to write a log that was cut off
ROOM = 64 << 10  # free bytes without which there is no use in trying


class _Log:
    """What is known of one session's log."""

    def __init__(self) -> None:
        self.seen: PaneView | None = None  # as at the last look: the same row means that nothing was printed
        self.rotated = -1e12
        self.flooded = False
        self.cut = False  # no `cat` writes it, for another reason than its size
        self.tried = -1e12
        self.owed = False  # renamed, and the old writer still holds the renamed file


class LogKeeper:
    """Looks after the logs in one directory."""

    def __init__(self, tmux: Tmux, folder: str, now: Callable[[], float]) -> None:
        self._tmux = tmux
        self._folder = folder
        self._now = now
        self._logs: dict[str, _Log] = {}

    @property
    def flooded(self) -> list[str]:
        """Sessions that print more than their logs may hold."""
        return sorted(session for session, log in self._logs.items() if log.flooded)

    def keep(self, panes: Iterable[PaneView], tell: Callable[[EventType, str, str], None]) -> None:
        """One look: a stat for each that printed something. `tell` takes event, session and reason."""
        now = self._now()
        alive = {pane.ref.session: pane for pane in panes if not pane.dead}
        self._logs = {s: log for s, log in self._logs.items() if s in alive}
        due = []
        for session, pane in alive.items():
            log = self._logs.setdefault(session, _Log())
            quiet = pane is log.seen and pane.piped
            log.seen = pane
            if (quiet and not (log.flooded or log.owed)) or not self._is_due(session, log, now, tell):
                continue
            due.append(session)
        if due:
            for session in due:
                self._logs[session].owed = True
            self._tmux.log_again(due)
            for session in due:
                self._logs[session].owed = False

    def _is_due(
        self, session: str, log: _Log, now: float, tell: Callable[[EventType, str, str], None]
    ) -> bool:
        """Does it need a new writer? What has to be done to the file before is done."""
        assert log.seen is not None, "it is set for each that is looked at"
        path = os.path.join(self._folder, f"{session}.log")
        piped, full = log.seen.piped, _size(path) > SOFT_CAP
        if log.owed:
            return True
        if full and now - log.rotated < FLOOD_S:
            if not log.flooded:
                log.flooded = True
                said = f"its log grew by {SOFT_CAP >> 20} MiB in less than {FLOOD_S:.0f} s"
                tell(
                    EventType.AGENT_FLOODED, session, f"{said}; of what it prints only the beginning is kept"
                )
            return False
        if full:
            rotate(path)
            log.rotated, log.cut = now, False
            return True
        if piped:
            log.flooded = log.flooded and now - log.rotated < FLOOD_S
            if log.cut:
                log.cut = False
                tell(EventType.AGENT_LOG_RESUMED, session, "its log was cut off, and is written again")
            return False
        log.cut = True
        if now - log.tried < AGAIN_S or not _has_room(self._folder):
            return False
        log.tried = now
        begin(path)
        return True


def rotate(path: str) -> None:
    """Rename the log and its predecessors, and begin a new one; the oldest goes."""
    for n in range(KEEP - 1, 0, -1):
        if os.path.lexists(f"{path}.{n}"):
            os.replace(f"{path}.{n}", f"{path}.{n + 1}")
    os.replace(path, f"{path}.1")
    begin(path)


def begin(path: str) -> None:
    """A log of 0600: `cat` would use the umask. What is no regular file is moved out of the way."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.replace(path, f"{path}.not-a-log")
    except FileNotFoundError:
        pass
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    os.close(os.open(path, flags, 0o600))


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _has_room(folder: str) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > ROOM
