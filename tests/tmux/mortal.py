"""agents.py, but mortal: `mortal.py POINT[:NTH] VERB ...` is killed at the nth passing of that point.

With MORTAL_GATE=FILE it is not killed: it says that it got there by making FILE.reached, and waits until FILE
exists. Points are the names the supervisor passes around its effects, and `disk` before each change to a
file. The product itself knows nothing of this: only the world that it is given is another one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from fleet.supervisor import world as supervisor_world

CHANGES = frozenset({"write", "append", "remove", "rename"})


class Disk:
    """The real one; every change is a point."""

    def __init__(self, disk, pass_by: Callable[[str], None]) -> None:
        self._disk = disk
        self._pass_by = pass_by

    def __getattr__(self, name: str):
        do = getattr(self._disk, name)
        if name not in CHANGES:
            return do

        def mortal(*words, **more):
            self._pass_by("disk")
            return do(*words, **more)

        return mortal


def _end_or_wait() -> None:
    gate = os.environ.get("MORTAL_GATE", "")
    if not gate:
        os.kill(os.getpid(), signal.SIGKILL)
    Path(f"{gate}.reached").touch()
    while not os.path.exists(gate):
        time.sleep(0.01)


def mortal_world(place: str, nth: int):
    """As `real_world`, with an end."""
    make, passed = supervisor_world.real_world, 0

    def pass_by(point: str) -> None:
        nonlocal passed
        passed += point == place
        if passed == nth and point == place:
            _end_or_wait()

    def build(*words, **more):
        world = make(*words, **more)
        world.point = pass_by
        world.disk = Disk(world.disk, pass_by)
        return world

    return build


if __name__ == "__main__":
    named, _, count = sys.argv[1].partition(":")
    supervisor_world.real_world = mortal_world(named, int(count or 1))
    from fleet.verbs.main import main

    sys.exit(main(sys.argv[2:]))
