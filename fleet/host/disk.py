"""The real disk. Nothing here follows a link, blocks on a pipe, or leaves half a file behind.

A write goes to a fresh private file in the same directory, is flushed, takes the name in one step, and
the directory is flushed: after a crash the name shows the old content or the new one, never a mixture.
Refusals are OSErrors whose number says why: ELOOP a link, EINVAL not a regular file, EMLINK a file with
a second name, EFBIG larger than allowed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator

from fleet import reading
from fleet.host.trust import untrusted
from fleet.ports import FileStat, Torn

DIR_MODE = 0o700
FILE_MODE = 0o600
TEMP_SUFFIX = ".tmp"
_QUIET = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # no link, no leak to children, no waiting for a reader


def _check_kind(info: os.stat_result, path: str) -> None:
    """Only an ordinary file with one name may stand where we read or write."""
    if stat.S_ISLNK(info.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link, expected a regular file", path)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)
    if info.st_nlink > 1:
        raise OSError(errno.EMLINK, "has more than one name (hard link)", path)


def _open(path: str, flags: int) -> int:
    """Open what is there, after looking (a device must not even be opened) and again once it is open."""
    with contextlib.suppress(FileNotFoundError):
        _check_kind(os.lstat(path), path)
    fd = os.open(path, flags | _QUIET, FILE_MODE)
    try:
        _check_kind(os.fstat(fd), path)
    except OSError:
        os.close(fd)
        raise
    return fd


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise Torn(error, len(data) - len(view)) from None


def _flush(fd: int, written: int) -> None:
    """To the disk itself; what it refuses is in the file all the same."""
    try:
        os.fsync(fd)
    except OSError as error:
        raise Torn(error, written) from None


@contextlib.contextmanager
def _directory(path: str) -> Iterator[int]:
    """The directory itself, held open so that everything in one step happens in the same one."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


class RealDisk:
    """Implements the Disk port on the machine's own file system."""

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        """A regular file's bytes, never following a link; OSError when it is larger than the cap."""
        fd = _open(path, os.O_RDONLY)
        try:
            parts, left = [], cap + 1
            while left and (part := os.read(fd, min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(fd)
        if not left:
            raise OSError(errno.EFBIG, f"is larger than {cap} bytes", path)
        return b"".join(parts)

    def tail(self, path: str, offset: int, cap: int) -> tuple[FileStat, bytes]:
        """A file that a program appends to, from there on."""
        with reading.opened(path) as fd:
            info = os.fstat(fd)
            found = FileStat(info.st_size, info.st_mtime_ns, info.st_ino, info.st_mode)
            return found, os.pread(fd, cap, offset)

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Durable and atomic: temp file, fsync, rename, fsync of the directory. Without `sync`: atomic."""
        head, base = os.path.split(path)
        temp = f".{base}.{os.urandom(6).hex()}{TEMP_SUFFIX}"
        with _directory(head) as where:
            with contextlib.suppress(FileNotFoundError):
                _check_kind(os.stat(base, dir_fd=where, follow_symlinks=False), path)
            try:
                fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _QUIET, FILE_MODE, dir_fd=where)
                try:
                    os.fchmod(fd, FILE_MODE)
                    _write_all(fd, data)
                    if sync:
                        os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(temp, base, src_dir_fd=where, dst_dir_fd=where)
            except BaseException as error:
                with contextlib.suppress(OSError):
                    os.unlink(temp, dir_fd=where)
                if isinstance(error, OSError):  # say the name that a reader knows
                    raise OSError(error.errno, error.strerror, path) from None
                raise
            if sync:
                os.fsync(where)

    def append(self, path: str, data: bytes, *, sync: bool) -> None:
        """One write at the end, so that two writers never mix; with sync it is on disk on return."""
        flags = os.O_WRONLY | os.O_APPEND
        created = False
        try:
            fd = _open(path, flags)
        except FileNotFoundError:
            fd = _open(path, flags | os.O_CREAT)
            created = True
        try:
            if created:
                os.fchmod(fd, FILE_MODE)
            _write_all(fd, data)
            if sync:
                _flush(fd, len(data))
        finally:
            os.close(fd)
        if sync and created:
            with _directory(os.path.dirname(path)) as where:
                _flush(where, len(data))

    def remove(self, path: str) -> None:
        """Gone, durably; no error when it was not there."""
        head, base = os.path.split(path)
        with contextlib.suppress(FileNotFoundError), _directory(head) as where:
            os.unlink(base, dir_fd=where)
            os.fsync(where)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        """Move a name; what had the new name is replaced. With `sync` it is durable on return."""
        os.rename(old, new)
        for head in {os.path.dirname(old), os.path.dirname(new)} if sync else ():
            with _directory(head) as where:
                os.fsync(where)

    def stat(self, path: str) -> FileStat | None:
        """What stands there, link or not; None when nothing does."""
        try:
            info = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileStat(info.st_size, info.st_mtime_ns, info.st_ino, info.st_mode, info.st_uid)

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; empty when it does not exist."""
        try:
            return tuple(sorted(os.listdir(path)))
        except FileNotFoundError:
            return ()

    def make_dir(self, path: str) -> None:
        """0700, parents too; repairs the mode of one of ours, which a shared one such as /tmp is not."""
        parent = os.path.dirname(path)
        if parent and not os.path.isdir(parent):
            self.make_dir(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, DIR_MODE)
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode) or not stat.S_ISDIR(info.st_mode):
            raise OSError(errno.ENOTDIR, "is not a directory", path)
        shared = info.st_mode & stat.S_ISVTX
        if info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) != DIR_MODE and not shared:
            os.chmod(path, DIR_MODE)

    def touch(self, path: str) -> None:
        """Set the modification time to now, without durability: heartbeats."""
        fd = _open(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.utime(fd)
        finally:
            os.close(fd)

    def is_dir(self, path: str) -> bool:
        """A directory, or a link to one."""
        return os.path.isdir(path)

    def may_read(self, path: str) -> bool:
        """By the rights that we have now."""
        return os.access(path, os.R_OK)

    def program(self, word: str, path: str) -> str:
        """The executable that a shell with this PATH would run; "" if there is none."""
        return shutil.which(word, path=path) or ""

    def untrusted(self, path: str) -> str:
        """Why another user could change that path, with the fix; "" if none can."""
        found = untrusted(path)
        return f"{found}: {found.fix}" if found else ""
