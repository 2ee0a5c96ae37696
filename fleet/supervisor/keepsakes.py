"""The state directory as we last knew it, in memory: a `git clean -fdx` by an agent must not end a night.

What the watchdog remembers by, and what the operator wants, is kept as it was last read or written: the small
files of the directory itself, of agents/, runs/ and outbox/. Signals are not: they are said once.
"""

from __future__ import annotations

import os

from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.host.tmux.speaker import Speaker
from fleet.store.house import House
from fleet.store.memories import Records

LARGEST = 64 << 10  # a long kickoff is history once its agent runs
PLACES = ("", "agents", "runs", "outbox")
JOURNAL = ".jsonl"  # grows by appending: what was read of it is soon old


class KeepingDisk(RealDisk):
    """The real disk; `restore` writes back what is missing below `root`."""

    def __init__(self, root: str) -> None:
        self._places = {os.path.join(root, name).rstrip("/") for name in PLACES}
        self._kept: dict[str, bytes] = {}

    def read(self, path: str, cap: int = 1 << 20) -> bytes:
        data = super().read(path, cap)
        self._keep(path, data)
        return data

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        super().write(path, data, sync=sync)
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
        folder = os.path.dirname(path)
        if folder in self._places and len(data) <= LARGEST and not path.endswith(JOURNAL):
            self._kept[path] = data


def move_back_in(fleet: Fleet, house: House, records: Records, disk: KeepingDisk, tmux: Speaker) -> int:
    """The state as we last knew it, and new logs where the old ones are gone; how many files came back."""
    count = disk.restore()
    for folder in (house.path("agents"), house.path("runs"), house.path("signals"), house.logs_dir):
        disk.make_dir(folder)
    for agent in fleet.agents:  # `up` wrote these, not we; the records of the runs hold them too
        run, path = records.run(agent.session), house.path(f"{agent.name}.id")
        if run is not None and run.conversation and not os.path.lexists(path):
            house.store.write_text(f"{agent.name}.id", f"{run.conversation}\n")
            count += 1
    sessions = [*(s.session for s in fleet.members), fleet.watchdog_session]
    lost = [s for s in sessions if not os.path.lexists(f"{house.logs_dir}/{s}.log")]
    for session in lost:
        disk.touch(f"{house.logs_dir}/{session}.log")
    tmux.log_again(lost)
    return count
