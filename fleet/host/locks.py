"""What the processes of one fleet share in its state directory: locks, a heartbeat, a pipe that wakes.

`watchdog.lock` is held for a watchdog's whole life, `state.lock` for the length of a write; `alone` keeps any
other work from being done twice at once. All are flocks, so they end with their process, however it ends.
The file's content only tells people who holds it. Descriptors are never inherited: a child that outlives us
must not keep our lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from fleet import reading
from fleet.core.words import WatchdogState
from fleet.host.procfs import start_of
from fleet.ports import Clock, Held, LockError
from fleet.text import as_object

WATCHDOG_LOCK = "watchdog.lock"
STATE_LOCK = "state.lock"
WAKE_PIPE = "wake"
_POLL_S = 0.02
_SIGNED_IN = 25  # polls
STALE_TICKS = 3
SLACK_S = 5.0

_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW


def _open(path: str, kind: int = _FILE) -> int:
    try:
        return os.open(path, kind | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        hints = {
            errno.ENOENT: "the state directory does not exist: run `up` first",
            errno.EROFS: "the file system is read-only",
            errno.EACCES: "no permission to write there: check the owner and mode of the directory",
            errno.ENOSPC: "the disk is full",
        }
        hint = hints.get(error.errno or 0, error.strerror or str(error))
        raise LockError(f"cannot lock {path}: {hint}") from error


def _is_at(fd: int, path: str) -> bool:
    """Whether the name still leads to the file we have open."""
    try:
        there = os.lstat(path)
    except OSError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _take(path: str, kind: int = _FILE, *, wait: bool = False) -> int | None:
    """A locked descriptor of the file that has that name now, or None when another process holds it."""
    while True:
        fd = _open(path, kind)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if _is_at(fd, path):
            return fd
        os.close(fd)  # replaced between open and flock: a lock on a nameless file protects nothing


@contextlib.contextmanager
def alone(path: str, before_waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock on a file or a directory; waits, for as long as it takes, until no other process does."""
    kind = os.O_DIRECTORY if os.path.isdir(path) else _FILE
    fd = _take(path, kind)
    if fd is None:
        if before_waiting is not None:
            before_waiting()
        fd = _take(path, kind, wait=True)
    assert fd is not None, "flock waited"
    try:
        yield
    finally:
        os.close(fd)


def _sign(fd: int, clock: Clock) -> None:
    """Say who holds it. Best effort: on a full disk the lock is still a lock."""
    me = json.dumps({"pid": os.getpid(), "start": start_of(os.getpid()), "since": round(clock.wall(), 3)})
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, me.encode() + b"\n", 0)


def _holder(path: str) -> Held:
    try:
        told = as_object(reading.read(path, 4096))
        return Held(path, int(told["pid"]), int(told["start"]), float(told["since"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Held(path, 0, 0, 0.0)


def _signed_holder(path: str, clock: Clock) -> Held:
    """The same, given a moment: between taking it and signing, the file is empty or names a predecessor."""
    held = _holder(path)
    for _ in range(_SIGNED_IN):
        if held.pid and start_of(held.pid) == held.start:
            break
        clock.sleep(_POLL_S)
        held = _holder(path)
    return held


class WatchdogLock:
    """One watchdog per project: take it before the first effect, and ask each tick if it is still ours."""

    def __init__(self, state_dir: str, clock: Clock) -> None:
        self.path = f"{state_dir}/{WATCHDOG_LOCK}"
        self._clock = clock
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take it, or raise Held with the holder's identity."""
        if self._fd is not None:
            return
        self._fd = _take(self.path)
        if self._fd is None:
            raise _signed_holder(self.path, self._clock)
        _sign(self._fd, self._clock)

    def still_ours(self) -> bool:
        """False once the file or its directory was removed or replaced: then another watchdog may run."""
        return self._fd is not None and _is_at(self._fd, self.path)

    def retake(self) -> None:
        """Take it anew where its file, or its whole directory, was taken away; Held if another one has."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self.acquire()

    def release(self) -> None:
        """Give it back. The file stays: removing it would open a gap for two holders."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def watchdog_holder(state_dir: str) -> Held | None:
    """Who runs the watchdog, by what the lock file says and the process table confirms. Takes no lock."""
    held = _holder(f"{state_dir}/{WATCHDOG_LOCK}")
    if not held.pid or start_of(held.pid) != held.start:
        return None
    try:
        os.kill(held.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it exists, and is another user's
    return held


_inside: dict[str, int] = {}  # how deep this process already is in a state lock, by path


@contextlib.contextmanager
def state_lock(state_dir: str, clock: Clock, timeout: float = 10.0) -> Iterator[None]:
    """Keep every other writer of the state out. Its holder may take it again."""
    path = os.path.realpath(f"{state_dir}/{STATE_LOCK}")
    if path in _inside:
        _inside[path] += 1
        try:
            yield
        finally:
            _inside[path] -= 1
        return
    deadline = clock.mono() + timeout
    while (fd := _take(path)) is None:
        if clock.mono() >= deadline:
            raise _holder(path)
        clock.sleep(_POLL_S)
    _sign(fd, clock)
    _inside[path] = 1
    try:
        yield
    finally:
        del _inside[path]
        os.close(fd)


class RealLocks:
    """The Locks port."""

    def __init__(self, state_dir: str, clock: Clock) -> None:
        self._state_dir = state_dir
        self._clock = clock

    def state(self) -> AbstractContextManager[object]:
        return state_lock(self._state_dir, self._clock)

    def lead(self) -> WatchdogLock:
        return WatchdogLock(self._state_dir, self._clock)

    def holder(self) -> Held | None:
        return watchdog_holder(self._state_dir)

    def nudge(self) -> None:
        nudge(self._state_dir)


def nudge(state_dir: str) -> bool:
    """Wake the watchdog of this project; False when none is listening."""
    try:
        fd = os.open(os.path.join(state_dir, WAKE_PIPE), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, b".") == 1
    except BlockingIOError:
        return True  # full of nudges that the watchdog has not read yet
    except OSError:
        return False
    finally:
        os.close(fd)


class Beat(NamedTuple):
    """Whether the watchdog works."""

    state: WatchdogState
    pid: int | None = None
    last: float | None = None  # when it last ticked, by the wall clock
    age: float | None = None  # seconds since then, or since it began


def pulse(state_dir: str, interval: float, now: float) -> Beat:
    """Of the watchdog of a state directory, by its lock and its heartbeat."""
    return beat_of(watchdog_holder(state_dir), _last_beat(state_dir), interval, now)


def beat_of(holder: Held | None, last: float | None, interval: float, now: float) -> Beat:
    """Whether the holder of the lock works. One that has just begun and has not ticked yet is not stale."""
    age = now - last if last is not None else None
    if holder is None:
        return Beat(WatchdogState.STOPPED, None, last, age)
    age = now - max(holder.since, last or 0.0)
    stale = age > STALE_TICKS * max(interval, 1.0) + SLACK_S
    return Beat(WatchdogState.STALE if stale else WatchdogState.RUNNING, holder.pid, last, age)


def _last_beat(state_dir: str) -> float | None:
    try:
        return os.stat(os.path.join(state_dir, "heartbeat")).st_mtime
    except OSError:
        return None
