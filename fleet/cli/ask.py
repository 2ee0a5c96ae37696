"""Ask the watchdog for something and wait for its answer; where none runs, be it for that long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.cli.deputy import deputy
from fleet.cli.view import view_in
from fleet.core.answers import RequestOutcome
from fleet.core.words import RequestKind
from fleet.journal.locks import Held
from fleet.world.asks import forget

if TYPE_CHECKING:
    from fleet.world.operator import Operator

POLL_S = (0.05, 0.5)  # soon at first; who waits for minutes need not ask twenty times a second


def ask(
    operator: Operator, kind: RequestKind, what: Mapping[str, Mapping[str, Any]], timeout: float
) -> dict[str, dict[str, Any]]:
    """One request an agent, with its arguments; name to receipt.

    One that is not answered in time is withdrawn and says so.
    """
    asked = {name: operator.house.requests.submit(kind, name, args) for name, args in what.items()}
    receipts: dict[str, dict[str, Any]] = {}
    clock = operator.world.clock
    deadline = clock.mono() + timeout
    step = _Stepper(operator, what)
    step.asked()
    try:
        while len(receipts) < len(asked):
            step.wait()
            for name, number in asked.items():
                receipt = operator.house.requests.receipt(number) if name not in receipts else None
                if receipt is not None:
                    receipts[name] = receipt
            if clock.mono() >= deadline:
                break
        for name, number in asked.items():
            if name not in receipts:
                receipts[name] = {
                    "ok": False,
                    "text": f"not done within {timeout:.0f} s{step.why(name)}",
                    "facts": {"outcome": str(RequestOutcome.NOT_IN_TIME)},
                }
                operator.house.requests.withdraw(number)
                operator.house.requests.submit(RequestKind.WITHDRAW, name, {"id": number})
        step.asked()
        step.wait()
    finally:
        step.close()
    return receipts


def pardon(operator: Operator, names: Collection[str], *, window: bool = True, budget: bool = False) -> None:
    """Forget tallies and verdicts; with `window` limit windows too, with `budget` the fleet's own tally."""
    if operator.host.holder() is not None:
        kind = RequestKind.RESET if window else RequestKind.PARDON
        for name in names:
            operator.house.requests.submit(kind, name, {"budget": budget})
        operator.host.nudge()
        return
    for name in names:
        spec = operator.fleet.agent(name) or operator.fleet.service(name)
        if spec is not None:
            memory = operator.records.agent(name, spec.session)
            forgiven = forget(memory, operator.world.clock.wall(), window=window)
            operator.records.save(name, spec.session, forgiven, 0.0)
    if budget:
        operator.records.save_fleet(replace(operator.records.fleet(), heals=()))


class _Stepper:
    """Waits for a running watchdog, or ticks one of its own."""

    def __init__(self, operator: Operator, names: Collection[str]) -> None:
        self._operator = operator
        self._dog = None
        self._began = operator.world.clock.mono()
        self._lock = operator.host.lead()
        try:
            self._lock.acquire()
        except Held:
            return
        self._dog = deputy(operator.fleet, names, operator.world)

    def asked(self) -> None:
        """Something new is to be seen."""
        if self._dog is None:
            self._operator.host.nudge()

    def wait(self) -> None:
        clock = self._operator.world.clock
        if self._dog is not None:
            clock.sleep(min(self._dog.tick(), 0.2))
            return
        soon, late = POLL_S
        clock.sleep(min(max(soon, (clock.mono() - self._began) / 20), late))

    def why(self, name: str) -> str:
        """What the typing rule last said of it."""
        view = view_in(self._operator.world.disk, self._operator.house.state_dir) or {}
        for shown in view.get("agents", ()):
            if shown.get("name") == name:
                return f"; it is {shown.get('detail', '')}: {shown.get('reason', '')}"
        return ""

    def close(self) -> None:
        if self._dog is not None:
            self._dog.close("the verb is done")
            self._lock.release()
