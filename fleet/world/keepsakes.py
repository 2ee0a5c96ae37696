"""The state directory as we last knew it, in memory: a `git clean -fdx` by an agent must not end a night.

Every file of the directory that is read or written through this disk is remembered, the small ones whole.
Whoever finds the directory gone can have it back as it was, but for what nobody needs twice.
"""

from __future__ import annotations

import os

from fleet.world.files import FILE_MODE, RealDisk

LARGEST = 64 << 10  # a long kickoff is history once its agent runs


class KeepingDisk(RealDisk):
    """The real disk; `restore` writes back what is missing below `root`."""

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._kept: dict[str, bytes] = {}

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        data = super().read(path, cap)
        self._keep(path, data)
        return data

    def write(self, path: str, data: bytes, mode: int = FILE_MODE, *, sync: bool = True) -> None:
        super().write(path, data, mode, sync=sync)
        self._keep(path, data)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._kept.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        if (data := self._kept.pop(old, None)) is not None:
            self._keep(new, data)

    def restore(self) -> int:
        """Write back what is gone; how many files that were."""
        missing = [path for path in self._kept if not os.path.lexists(path)]
        for path in missing:
            self.make_dir(os.path.dirname(path))
            super().write(path, self._kept[path])
        return len(missing)

    def _keep(self, path: str, data: bytes) -> None:
        if path.startswith(self._root) and len(data) <= LARGEST:
            self._kept[path] = data
