"""Ask the watchdog for something and wait for its answer; where none runs, be it for that long."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.world.operator import Operator

POLL_S = 0.05


def ask(
    operator: Operator, kind: str, names: Sequence[str], args: dict[str, Any], timeout: float
) -> dict[str, dict[str, Any]]:
    """One request an agent; name to receipt. One that is not answered in time is withdrawn and says so."""
    asked = {name: operator.house.requests.submit(kind, name, args) for name in names}
    receipts: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + timeout
    step = _Stepper(operator, names)
    try:
        while len(receipts) < len(asked):
            step.wait()
            for name, number in asked.items():
                receipt = operator.house.requests.receipt(number) if name not in receipts else None
                if receipt is not None:
                    receipts[name] = receipt
            if time.monotonic() >= deadline:
                break
        for name, number in asked.items():
            if name not in receipts:
                receipts[name] = {
                    "ok": False,
                    "text": f"not done within {timeout:.0f} s{step.why(name)}",
                    "facts": {},
                }
                operator.house.requests.withdraw(number)
                operator.house.requests.submit("withdraw", name, {"id": number})
        step.wait()
    finally:
        step.close()
    return receipts


def pardon(operator: Operator, names: Collection[str]) -> None:
    """Forget tallies and verdicts."""
    from fleet.journal.locks import watchdog_holder
    from fleet.world.asks import forget
    from fleet.world.waker import nudge

    if watchdog_holder(operator.house.state_dir) is not None:
        for name in names:
            operator.house.requests.submit("reset", name)
        nudge(operator.house.state_dir)
        return
    for name in names:
        spec = operator.fleet.agent(name) or operator.fleet.service(name)
        if spec is not None:
            memory = operator.records.agent(name, spec.session)
            operator.records.save(name, spec.session, forget(memory, operator.world.clock.wall()), 0.0)


class _Stepper:
    """Waits for a running watchdog, or ticks one of its own."""

    def __init__(self, operator: Operator, names: Collection[str]) -> None:
        from fleet.journal.locks import Held, WatchdogLock

        self._operator = operator
        self._dog = None
        self._lock = WatchdogLock(operator.house.state_dir)
        try:
            self._lock.acquire()
        except Held:
            return
        from fleet.cli.deputy import deputy

        self._dog = deputy(operator.fleet, names)

    def wait(self) -> None:
        if self._dog is not None:
            time.sleep(min(self._dog.tick(), 0.2))
            return
        from fleet.world.waker import nudge

        nudge(self._operator.house.state_dir)
        time.sleep(POLL_S)

    def why(self, name: str) -> str:
        """What the typing rule last said of it."""
        from fleet.cli.view import read_view

        view = read_view(self._operator.house.state_dir) or {}
        for shown in view.get("agents", ()):
            if shown.get("name") == name:
                return f"; it is {shown.get('detail', '')}: {shown.get('reason', '')}"
        return ""

    def close(self) -> None:
        if self._dog is not None:
            self._dog.close("the verb is done")
            self._lock.release()
