"""A disk that keeps two images: what a running program sees, and what would be left after a power cut.

`write` is durable when it returns, as the port promises. An append without sync, a rename and a touch are
not: a power cut takes any suffix of them. Faults refuse writes the way a full, broken or read-only disk does.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from random import Random

from fleet.ports import FileStat, Torn

BLOCK = 4096


class _Durable:
    """What a power cut may bring back in place of an unsynced replacement."""

    __slots__ = ("file",)

    def __init__(self, file: SimFile | None) -> None:
        self.file = file


class SimFile:
    """Bytes with an identity."""

    __slots__ = ("before", "data", "inode", "kind", "known", "mode", "mtime_ns", "synced")

    def __init__(self, data: bytearray, inode: int, mode: int, mtime_ns: int) -> None:
        self.data = data
        self.inode = inode
        self.mode = mode
        self.mtime_ns = mtime_ns
        self.synced = len(data)  # how many of its bytes survive a power cut
        self.before: _Durable | None = None  # set: the replacement itself may not survive one
        self.known: FileStat | None = None  # as last asked for
        self.kind = stat.S_IFREG

    def stat(self) -> FileStat:
        """Its size and dates."""
        size, known = len(self.data), self.known
        if known is None or known.size != size or known.mtime_ns != self.mtime_ns:
            known = self.known = FileStat(size, self.mtime_ns, self.inode, self.kind | self.mode)
        return known


class SimDisk:
    """The Disk port. `fault` names the errno that writes meet now, 0 for none.

    A full disk has some `room` left for appends; without one, each append meets a block that somebody freed.
    """

    def __init__(self, wall: Callable[[], float], rng: Random, before: Callable[[str], None]) -> None:
        self._wall = wall
        self._rng = rng
        self._before = before
        self._inode = 1
        self.files: dict[str, SimFile] = {}
        self._inside: dict[str, set[str]] = {}  # names by directory
        self.dirs: set[str] = set()
        self.without: set[str] = set()  # directories whose programs were taken away
        self.fault = 0
        self.room: int | None = None  # bytes that a full disk still takes
        self.seen: Callable[..., None] = lambda *_words: None  # every change through the port
        self.written: Callable[[str], None] = lambda _path: None  # a file was replaced through the port
        self.fails_in = 0  # the Nth write from now meets an EIO, once

    # -- the port

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        """The whole file."""
        self._before("disk.read")
        file = self._find(path)
        if len(file.data) > cap:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return bytes(file.data)

    def tail(self, path: str, offset: int, cap: int) -> tuple[FileStat, bytes]:
        """The file from there on."""
        self._before("disk.tail")
        file = self._find(path)
        return file.stat(), bytes(file.data[offset : offset + cap])

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """All or nothing; kept only with `sync`."""
        self._before("disk.write")
        self._may_write(path)
        self._is_below(path)
        self.seen("write", path)
        old = self.files.get(path)
        self.put(path, data)
        if not sync:
            self.files[path].before = old.before if old and old.before is not None else _Durable(old)
        self.written(path)

    def append(self, path: str, data: bytes, *, sync: bool) -> None:
        """Added at the end; with `sync` the whole file is durable afterwards."""
        self._before("disk.append")
        self._is_below(path)
        try:
            self._may_write(path)
        except OSError as error:
            if error.errno == errno.ENOSPC:  # the last block took some of it
                raise Torn(error, self._squeeze(path, data)) from None
            raise
        try:
            self._before("disk.append.torn")
        except BaseException:
            self._add(path, data[: self._rng.randrange(len(data) + 1)])
            raise
        self.seen("append", path)
        file = self._add(path, data)
        if sync:
            file.synced = len(file.data)

    def remove(self, path: str) -> None:
        """Gone, durably."""
        self._before("disk.remove")
        if path in self.files:
            self._may_write(path)
            self.seen("remove", path)
            self.unlink(path)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        """Move it over whatever was there."""
        self._before("disk.rename")
        if old not in self.files:  # what is no regular file can be moved all the same
            self._find(old)
        self._may_write(new)
        self.seen("rename", old, new)
        moved = self.files[old]
        self.unlink(old)
        self._link(new, moved)

    def stat(self, path: str) -> FileStat | None:
        """Enough to see a change."""
        self._before("disk.stat")
        file = self.files.get(path)
        if file is None:
            return FileStat(0, 0, 2, 0o40700) if path in self.dirs else None
        return file.stat()

    def names(self, path: str) -> tuple[str, ...]:
        """Sorted names of files and directories in it."""
        self._before("disk.names")
        return tuple(sorted(self._inside.get(path.rstrip("/"), ())))

    def make_dir(self, path: str) -> None:
        """The directory and its parents."""
        self._before("disk.make_dir")
        if path in self.dirs:
            return
        self._may_write(path)
        while path not in ("/", ""):
            self.dirs.add(path)
            self._inside.setdefault(os.path.dirname(path), set()).add(os.path.basename(path))
            path = os.path.dirname(path)

    def touch(self, path: str) -> None:
        """A heartbeat."""
        self._before("disk.touch")
        if path not in self.files:
            self._may_write(path)
            self.put(path, b"")
        elif self.fault == errno.EROFS:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        self.files[path].mtime_ns = int(self._wall() * 1e9)

    def is_dir(self, path: str) -> bool:
        """A directory."""
        self._before("disk.is_dir")
        return path in self.dirs

    def may_read(self, path: str) -> bool:
        """Whatever is there."""
        self._before("disk.may_read")
        return path in self.files

    def program(self, word: str, path: str) -> str:
        """Every program is in the first directory of a PATH, as long as that has any."""
        self._before("disk.program")
        folder = path.partition(":")[0]
        return "" if folder in self.without else f"{folder}/{word}"

    def untrusted(self, _path: str) -> str:
        """The machine has one user."""
        return ""

    # -- what the machine and its people do to it

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Somebody else's durable write: no fault is met, nothing is counted."""
        self._inode += 1
        self._link(path, SimFile(bytearray(data), self._inode, mode, int(self._wall() * 1e9)))

    def put_pipe(self, path: str) -> None:
        """Somebody makes a pipe there that nobody writes to."""
        self.put(path, b"")
        self.files[path].kind = stat.S_IFIFO

    def _is_below(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder and folder not in self.dirs and folder not in self._inside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _link(self, path: str, file: SimFile) -> None:
        if path not in self.files:
            folder, _, name = path.rpartition("/")
            self._inside.setdefault(folder, set()).add(name)
        self.files[path] = file

    def unlink(self, path: str) -> None:
        """Gone from its directory."""
        del self.files[path]
        folder, _, name = path.rpartition("/")
        self._inside[folder].discard(name)

    def text(self, path: str) -> str:
        """What a person would see in the file; empty when there is none."""
        file = self.files.get(path)
        return bytes(file.data).decode("utf-8", "replace") if file else ""

    def power_cut(self) -> None:
        """Bytes that were never synced are lost from some point on, replacements perhaps as a whole."""
        for path, file in list(self.files.items()):
            if file.before is not None and self._rng.random() < 0.5:
                old = file.before.file
                if old is None:
                    self.unlink(path)
                else:
                    self.files[path] = old
                continue
            file.before = None
            if file.synced < len(file.data):
                del file.data[self._rng.randrange(file.synced, len(file.data) + 1) :]
                file.synced = len(file.data)

    def _find(self, path: str) -> SimFile:
        file = self.files.get(path)
        if file is None:
            code = errno.EISDIR if path in self.dirs else errno.ENOENT
            raise OSError(code, os.strerror(code), path)
        if file.kind != stat.S_IFREG:  # as the port does: opening a pipe would wait for its writer
            raise OSError(errno.EINVAL, "is not a regular file", path)
        return file

    def _add(self, path: str, data: bytes) -> SimFile:
        if path not in self.files:
            self.put(path, b"")
            self.files[path].synced = 0
        file = self.files[path]
        file.data += data
        file.mtime_ns = int(self._wall() * 1e9)
        return file

    def _squeeze(self, path: str, data: bytes) -> int:
        """How much of it still found a place."""
        fits = self._rng.randrange(len(data) + 1) if self.room is None else min(self.room, len(data))
        if fits:
            self._add(path, data[:fits])
        if self.room is not None:
            self.room -= fits
        return fits

    def _may_write(self, path: str) -> None:
        code = self.fault
        if self.fails_in > 0:
            self.fails_in -= 1
            code = code or (errno.EIO if self.fails_in == 0 else 0)
        if code:
            raise OSError(code, os.strerror(code), path)
