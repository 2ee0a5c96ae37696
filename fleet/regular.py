"""Reading files that others may replace: never waits, and reads regular files only.

A pipe, a socket, a device or a directory may stand where a file is expected: an agent put it there, or a
mistake did. Opening a pipe waits for a writer that may never come, and a device may have no end. All that
read such files go through here. Links are followed; those who must not follow them have `world/files.py`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager


def refuse_others(mode: int, path: str) -> None:
    """OSError unless that is the mode of a regular file."""
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "is a directory, expected a regular file", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)


def open_fd(path: str) -> int:
    """A descriptor to read from. A device is not even opened: that alone may do something."""
    refuse_others(os.stat(path).st_mode, path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        refuse_others(os.fstat(fd).st_mode, path)
    except OSError:
        os.close(fd)
        raise
    return fd


@contextmanager
def opened(path: str) -> Iterator[int]:
    """The same, closed afterwards."""
    fd = open_fd(path)
    try:
        yield fd
    finally:
        os.close(fd)


def read(path: str, cap: int, offset: int = 0) -> bytes:
    """Up to `cap` bytes."""
    with opened(path) as fd:
        return os.pread(fd, cap, offset)
