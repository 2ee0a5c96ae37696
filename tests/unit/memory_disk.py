"""A disk in memory that can refuse its Nth operation: what crash and corruption tests run on."""

from __future__ import annotations

import errno
import os

from fleet.ports import FileStat, Torn


class MemoryDisk:
    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.inodes: dict[str, int] = {}
        self.fail_at = 0  # 1: the next operation; 0: never
        self.sticky = False
        self.torn = 0.0  # the share of its data that a failing append leaves behind
        self._last_inode = 0
        self.syncs = 0  # writes that had to be durable

    def _step(self) -> None:
        if not self.fail_at:
            return
        self.fail_at -= 1
        if not self.fail_at:
            self.fail_at = 1 if self.sticky else 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _put(self, path, data):
        if path not in self.inodes:
            self._last_inode += 1
            self.inodes[path] = self._last_inode
        self.files[path] = data

    def read(self, path, cap=1 << 20):
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if len(self.files[path]) > cap:
            raise OSError(errno.EFBIG, "too large", path)
        return self.files[path]

    def write(self, path, data, *, sync=True):
        self._step()
        self.inodes.pop(path, None)
        self._put(path, data)

    def append(self, path, data, *, sync):
        old = self.files.get(path, b"")
        try:
            self._step()
        except OSError as error:
            fits = int(len(data) * self.torn)
            if fits:
                self._put(path, old + data[:fits])
            raise Torn(error, fits) from None
        self._put(path, old + data)
        self.syncs += sync

    def remove(self, path):
        self._step()
        self.files.pop(path, None)
        self.inodes.pop(path, None)

    def rename(self, old, new, *, sync=True):
        self._step()
        self.files[new] = self.files.pop(old)
        self.inodes[new] = self.inodes.pop(old)

    def stat(self, path):
        if path in self.files:
            return FileStat(len(self.files[path]), 0, self.inodes[path], 0o100600)
        return None

    def names(self, path):
        prefix = f"{path}/"
        return tuple(sorted({f[len(prefix) :].split("/")[0] for f in self.files if f.startswith(prefix)}))

    def make_dir(self, path):
        self._step()

    def touch(self, path):
        self._put(path, self.files.get(path, b""))
