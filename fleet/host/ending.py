"""End whole runs and wait for it: ask every process, force those that stay, then look again for new ones."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from fleet.core.seen import Proc
from fleet.ports import Clock, Processes, Target

SETTLE_S = 0.02
_LOOKS = 2  # sweeps in a row that must find none: the second sees what was forking during the first
_KILLS = 40


def stop_all(table: Processes, clock: Clock, targets: Sequence[Target], *, grace: float) -> tuple[Proc, ...]:
    """End these runs together and return what is left: what survived, and what is not ours to end.

    All are asked at once and have `grace` seconds together; new processes are asked as they appear. It
    blocks: for verbs only.
    """
    deadline = clock.mono() + grace
    others = table.beyond(targets)
    asked: set[tuple[int, int]] = set()
    while (left := _everyone(table, targets)) and clock.mono() < deadline:
        fresh = [proc for proc in left if (proc.pid, proc.start) not in asked]
        table.signal(fresh, signal.SIGTERM)
        table.signal(fresh, signal.SIGCONT)  # a frozen process cannot answer
        asked |= {(proc.pid, proc.start) for proc in fresh}
        clock.sleep(SETTLE_S)
    found, clean = bool(asked or left or others), 0
    for _ in range(_KILLS):
        left = _everyone(table, targets)
        table.signal(left, signal.SIGKILL)
        clean = 0 if left else clean + 1
        if clean == _LOOKS:
            left = list(table.chase(targets)) if found else []
            if not left:
                break
            clean = 0
        clock.sleep(SETTLE_S)
    return (*left, *(proc for proc in others if table.alive(proc)))


def _everyone(table: Processes, targets: Sequence[Target]) -> list[Proc]:
    procs = {(p.pid, p.start): p for members in table.sweep(targets).values() for p in members}
    return list(procs.values())
