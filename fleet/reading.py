"""Reading files that others may replace, or are still writing.

A pipe, a socket, a device or a directory may stand where a file is expected: an agent put it there, or a
mistake did. Opening a pipe waits for a writer that may never come, and a device may have no end. All that
read such files go through here. Links are followed; those who must not follow them have `host/disk.py`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
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


def mark_of(path: str) -> object:
    """A value that is another one when the file is; None when there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


# --------------------------------------------------------------------------------------------------
# Reading a file that another program is still writing.
# A Tail remembers a file by identity (device, inode), how far whole lines were read, and the last bytes
# before that point. So a sweep over files with nothing new costs one stat each; a renamed file goes on
# where it was; a file that was truncated, rewritten or replaced is noticed, also when it has grown past
# the old point again, and read from the start. A torn last line stays where it is until it is whole.
#
# Memory is one block, or one line where a line is longer than a block, up to a bound. The file is read, not
# mapped: a mapped file that shrinks kills the reader.


BLOCK = 1 << 20  # fits the processor's cache, which is worth more than fewer system calls
LONGEST = 32 << 20  # a longer line is not held in memory: it costs itself
_SEAL = 64  # bytes before the offset that must still be there

Ident = tuple[int, int]
# Takes whole lines as (buffer, end, offset of the buffer in the file); must not keep the buffer.
Feed = Callable[[bytearray, int, int], None]


def ident_of(stat: os.stat_result) -> Ident:
    """What a file is, whatever it is called."""
    return (stat.st_dev, stat.st_ino)


class Tail:
    """How far one file has been read."""

    def __init__(self, path: str, ident: Ident, offset: int = 0, seal: bytes = b"") -> None:
        self.path = path
        self.ident = ident
        self.offset = offset
        self.seal = seal
        self.stamp = (-1, -1)  # size and modification time at the last look

    def changed(self, stat: os.stat_result) -> bool:
        """Whether a look into the file could find anything."""
        return self.stamp != (stat.st_size, stat.st_mtime_ns)

    def read(
        self,
        feed: Feed,
        *,
        buffer: bytearray | None = None,
        restarted: Callable[[], None] | None = None,
        again: bool = True,
    ) -> int:
        """Feed what is new; says how many bytes were looked at. A sweep hands the same buffer to all.

        With `again` the reader does not mind seeing a line twice and drops what does not parse: then the
        piece after the last newline is fed too, and a file that was touched without growing is read anew.
        """
        try:
            handle = open_fd(self.path)
        except OSError:
            return 0  # gone, forbidden or no file at all: what was counted stays counted
        try:
            stat = os.fstat(handle)
            if ident_of(stat) != self.ident:
                return 0  # another file took the name since it was listed; the next listing finds both
            if not self._continues(handle, stat, again=again):
                self.offset, self.seal = 0, b""
                if restarted:
                    restarted()
            self.stamp = (stat.st_size, stat.st_mtime_ns)
            return self._lines(handle, feed, buffer or bytearray(BLOCK), torn=again)
        finally:
            os.close(handle)

    def _continues(self, handle: int, stat: os.stat_result, *, again: bool) -> bool:
        """Whether the file still holds what was read: not truncated, not rewritten in place."""
        if stat.st_size < self.offset or (again and stat.st_size == self.stamp[0]):
            return False
        try:
            return os.pread(handle, len(self.seal), self.offset - len(self.seal)) == self.seal
        except OSError:
            return False

    def _lines(self, handle: int, feed: Feed, buffer: bytearray, *, torn: bool) -> int:
        seen = 0
        while True:
            try:  # around the reading only: what a feed raises is not ours to hide
                size = os.preadv(handle, [buffer], self.offset)
            except OSError:
                self.stamp = (-1, -1)  # so that the next sweep tries again
                return seen
            seen += size
            end = buffer.rfind(b"\n", 0, size) + 1
            if end:
                feed(buffer, end, self.offset)
                self.offset += end
                self.seal = bytes(buffer[max(0, end - _SEAL) : end])
            elif size >= LONGEST:  # the rest of it is no record either, and is passed over as such
                self.offset += size
                self.seal = bytes(buffer[size - _SEAL : size])
                buffer = bytearray(BLOCK)
                continue
            elif size == len(buffer):
                # One line longer than the block: a larger one, for this file only, and never both at once.
                left = os.fstat(handle).st_size - self.offset + 1
                buffer = bytearray()
                buffer = bytearray(min(LONGEST, max(size + 1, min(size * 2, left))))
                continue
            if size < len(buffer):  # the end of the file
                if torn and size > end:
                    rest = buffer[end:size]
                    feed(rest, len(rest), self.offset)
                return seen
