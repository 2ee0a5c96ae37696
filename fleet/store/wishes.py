"""state/desired.json: what the operator wants, written before anything is done about it.

Verbs and the watchdog both write it, so a change is made under the state lock, on what is there at that
moment. Reading takes no lock (the file is always whole), and asking whether it changed costs one stat.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from fleet import reading
from fleet.core.codec import from_plain, to_plain
from fleet.core.desired import NOTHING, Desired
from fleet.ports import Disk, FileStat
from fleet.store.documents import Store
from fleet.text import as_object

NAME = "desired"
_CAP = 64 << 20


class DesiredFile:
    """The one file. `lock` gives a context manager that excludes every other writer."""

    def __init__(self, disk: Disk, store: Store, lock: Callable[[], AbstractContextManager[object]]) -> None:
        self._disk = disk
        self._store = store
        self._lock = lock
        self._seen: FileStat | None = None
        self._looked = False
        self._value = NOTHING

    def changed(self) -> bool:
        """Whether the file is another one than at the last `load`."""
        return not self._looked or self._stat() != self._seen

    def load(self) -> Desired:
        """What is desired now; the file is read only when it changed."""
        if self.changed():
            self._read()
        return self._value

    def update(self, change: Callable[[Desired], Desired]) -> Desired:
        """Apply a change to what is there now, durably. No other writer can come in between."""
        with self._lock():
            self._read()
            new = change(self._value)
            self._store.save(NAME, to_plain(new))
            self._seen, self._value = self._stat(), new
        return new

    def _stat(self) -> FileStat | None:
        return self._disk.stat(self._store.path(NAME))

    def _read(self) -> None:
        seen = self._stat()  # before the content: a change in between is read again next time
        data = self._store.load(NAME)
        self._value = from_plain(Desired, data) if data is not None else NOTHING
        self._seen, self._looked = seen, True


# --------------------------------------------------------------------------------------------------
# What a verb reads of the state directory without a Store: quick, and nothing is set aside.


def wants(state_dir: str) -> dict[str, str]:
    """What the operator wants of each member: up or down."""
    for name in (f"{NAME}.json", f"{NAME}.json.prev"):
        try:
            entries = _object(os.path.join(state_dir, name), reading.read)["data"]["entries"]
            return {member: str(entry["want"]) for member, entry in entries.items()}
        except (KeyError, TypeError, AttributeError):
            continue
    return {}


def read_view(state_dir: str, read: Callable[[str, int], bytes] = reading.read) -> dict[str, Any] | None:
    """The document that the watchdog wrote last; None when there is none that can be read."""
    return _object(os.path.join(state_dir, "view.json"), read) or None


def _object(path: str, read: Callable[[str, int], bytes]) -> dict[str, Any]:
    try:
        return as_object(read(path, _CAP))
    except OSError:
        return {}
