"""What ends a sleep early: a process died, a verb asked, tmux spoke, a file changed.

Hints only. A key says "look there sooner", never what happened; lost, merged and repeated ones are
harmless because every tick looks for itself. Deaths arrive by one descriptor per process, verbs by a byte in
a named pipe, file changes from a thread: at once with watchfiles, without it within a second.
"""

from __future__ import annotations

import os
import select
import selectors
import stat
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from fleet.host import procfs
from fleet.host.locks import WAKE_PIPE
from fleet.ports import Hint, Wake

_CHUNK = 4096
_POLL_S = 1.0  # between two looks at the files, where nothing tells of a change


class Waker:
    """One selector for everything that may end a sleep, each under the `Wake` it is reported as."""

    def __init__(self, state_dir: str = "") -> None:
        self._selector = selectors.DefaultSelector()
        self._fds: dict[Wake | None, int] = {}  # None: our own pipe
        self._pids: dict[Wake, int] = {}  # stays after the death: a pid wakes us once
        self._inodes: dict[Wake, int] = {}
        self._poked: deque[Wake] = deque()
        self._ears: list[_Ear] = []
        self._heard: frozenset[tuple[Wake, str]] = frozenset()
        self._state_dir = state_dir
        reader, self._writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(self._writer, False)
        self._add(None, reader)
        if state_dir:
            self._open_pipe(os.path.join(state_dir, WAKE_PIPE))

    def reopen(self) -> None:
        """The state directory is a new one: listen there."""
        self._drop(Hint.NUDGE)
        self._open_pipe(os.path.join(self._state_dir, WAKE_PIPE))
        self._heard = frozenset()

    def wait(self, timeout: float) -> frozenset[Wake]:
        """Sleep until something happens or the time is over; which keys spoke."""
        ready = self._selector.select(0.0 if self._poked else max(0.0, timeout))
        keys: set[Wake | None] = {found.data for found, _ in ready}
        for key in keys & self._pids.keys():
            self._drop(key)
        for pipe in keys & {None, Hint.NUDGE}:
            _empty(self._fds[pipe])
        while self._poked:
            keys.add(self._poked.popleft())
        return frozenset(key for key in keys if key is not None)

    def poke(self, key: Wake) -> None:
        """Wake the sleeper from a thread or a signal handler."""
        self._poked.append(key)
        with suppress(BlockingIOError):
            os.write(self._writer, b".")

    def watch_pid(self, key: Wake, pid: int) -> None:
        """Report `key` once when the process ends; at once when it already has."""
        if self._pids.get(key) == pid:
            return
        self.unwatch(key)
        self._pids[key] = pid
        fd = watch_death(pid)
        if fd is not None:
            self._add(key, fd)
        elif not procfs.start_of(pid):
            self.poke(key)

    def watch_fd(self, key: Wake, fd: int) -> None:
        """Report `key` while the descriptor is readable; -1 ends it. Ours is a copy: yours may be closed."""
        inode = os.fstat(fd).st_ino if fd >= 0 else -1
        if self._inodes.get(key, -1) == inode:
            return
        self.unwatch(key)
        if fd >= 0:
            self._inodes[key] = inode
            self._add(key, os.dup(fd))

    def watch_files(self, places: Iterable[tuple[Wake, str]]) -> None:
        """Report the key of a place, (key, path), when the file, or anything in the directory, changes."""
        wanted = frozenset(places)
        if wanted == self._heard:
            return
        self._heard = wanted
        for ear in self._ears:
            ear.stop()
        trees = {(key, path) for key, path in wanted if os.path.isdir(path)}
        self._ears = [_Ear(self, trees, tree=True), _Ear(self, wanted - trees, tree=False)]

    def unwatch(self, key: Wake) -> None:
        self._pids.pop(key, None)
        self._inodes.pop(key, None)
        self._drop(key)

    def close(self) -> None:
        for ear in self._ears:
            ear.stop()
        for key in list(self._fds):
            self._drop(key)
        os.close(self._writer)
        self._selector.close()

    def _open_pipe(self, path: str) -> None:
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)  # a writer of our own: never at its end
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            self._add(Hint.NUDGE, fd)
        else:
            os.close(fd)

    def _add(self, key: Wake | None, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ, key)
        self._fds[key] = fd

    def _drop(self, key: Wake | None) -> None:
        fd = self._fds.pop(key, None)
        if fd is not None:
            self._selector.unregister(fd)
            os.close(fd)


class _Ear:
    """A thread that pokes the waker when a place changes."""

    def __init__(self, waker: Waker, places: Iterable[tuple[Wake, str]], *, tree: bool) -> None:
        self._waker = waker
        self._places = [(key, os.path.realpath(path)) for key, path in places]
        self._tree = tree
        self._stop = threading.Event()
        if self._places:
            threading.Thread(target=self._listen, daemon=True, name="file changes").start()

    def stop(self) -> None:
        self._stop.set()

    def _listen(self) -> None:
        """Files are watched through their directories: an editor replaces a file, and a new one appears."""
        try:
            import watchfiles
        except ImportError:
            self._poll()
            return
        roots = {path if self._tree else os.path.dirname(path) for _, path in self._places}
        roots = {root for root in roots if os.path.isdir(root)}
        if not roots:
            return
        with suppress(OSError, RuntimeError):  # a directory that vanishes ends the hints, not the watchdog
            for changes in watchfiles.watch(
                *roots,
                watch_filter=None,
                debounce=100,
                step=50,
                stop_event=self._stop,
                recursive=self._tree,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._tell({path for _, path in changes})

    def _poll(self) -> None:
        known = [_stamp(path, tree=self._tree) for _, path in self._places]
        while not self._stop.wait(_POLL_S):
            for number, (key, path) in enumerate(self._places):
                found = _stamp(path, tree=self._tree)
                if found != known[number]:
                    known[number] = found
                    self._waker.poke(key)

    def _tell(self, changed: set[str]) -> None:
        for key, path in self._places:
            inside = any(c.startswith(path + os.sep) for c in changed) if self._tree else False
            if inside or path in changed:
                self._waker.poke(key)


def _stamp(path: str, *, tree: bool) -> frozenset[tuple[str, int, int, int]]:
    """What changes with the file, or with any below the directory; empty where there is none."""
    places = [path]
    if tree:
        places += [os.path.join(here, name) for here, _, names in os.walk(path) for name in names]
    found = set()
    for place in places:
        with suppress(OSError):
            stats = os.stat(place)
            found.add((place, stats.st_ino, stats.st_size, stats.st_mtime_ns))
    return frozenset(found)


def _empty(fd: int) -> None:
    with suppress(BlockingIOError):
        while os.read(fd, _CHUNK):
            pass


def watch_death(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such thing."""
    if hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None
    return _kqueue_death(pid)


def _kqueue_death(pid: int) -> int | None:
    kqueue = getattr(select, "kqueue", None)
    kevent = getattr(select, "kevent", None)
    if kqueue is None or kevent is None:
        return None
    queue = kqueue()
    # EVFILT_PROC, EV_ADD, NOTE_EXIT: the constants exist only where kqueue does.
    names = ("KQ_FILTER_PROC", "KQ_EV_ADD", "KQ_NOTE_EXIT")
    try:
        queue.control([kevent(pid, *(getattr(select, name) for name in names))], 0)
        return os.dup(queue.fileno())
    except OSError:
        return None
