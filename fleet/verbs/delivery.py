"""Wait until the watchdog has done what a verb wants; where none runs, be it for that long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from fleet.core.memory import Message
from fleet.core.words import FINAL, MessageState
from fleet.ports import Held
from fleet.supervisor.deputy import stand_in
from fleet.supervisor.operator import Operator
from fleet.supervisor.tick import Supervisor
from fleet.verbs.last_view import row_of, view_in

DECIDED = FINAL - {MessageState.WITHDRAWN}
POLL_S = (0.05, 0.5)  # often at first; a wait of minutes need not look twenty times a second


def await_receipts(operator: Operator, sent: Mapping[str, Message], timeout: float) -> dict[str, Message]:
    """Agent to its message, as far as it got. One that is late is taken back, with why it had waited."""
    outbox, clock = operator.house.outbox, operator.world.clock
    deadline = clock.mono() + timeout
    found: dict[str, Message] = {}
    step = Stepper(operator, sent)
    step.asked()
    try:
        while len(found) < len(sent):
            step.wait()
            for name, message in sent.items():
                now = outbox.read(name, message.id) if name not in found else None
                if now is not None and now.status in FINAL:
                    found[name] = now
            if clock.mono() >= deadline:
                break
        late = {name: message for name, message in sent.items() if name not in found}
        why = {name: why_waiting(operator, name) for name in late}  # once it is taken back nothing waits
        for name, message in late.items():
            outbox.withdraw(name, message.id)
        if late:
            step.asked()
            step.wait()
        for name, message in late.items():
            now = outbox.read(name, message.id) or message
            found[name] = now if now.status in DECIDED else replace(now, why=why[name])
        return found
    finally:
        step.close()


class Stepper:
    """Waits for a running watchdog, or ticks one of its own for these agents."""

    def __init__(self, operator: Operator, names: Collection[str]) -> None:
        self._operator = operator
        self._dog: Supervisor | None = None
        self._began = operator.world.clock.mono()
        self._lock = operator.locks.lead()
        try:
            self._lock.acquire()
        except Held:
            return
        self._dog = stand_in(operator.fleet, names, operator.world, operator.helpers)

    def asked(self) -> None:
        """Something new is to be seen."""
        if self._dog is None:
            self._operator.locks.nudge()

    def wait(self) -> None:
        """A moment, in which the watchdog may look."""
        clock = self._operator.world.clock
        if self._dog is not None:
            clock.sleep(min(self._dog.tick(), 0.2))
            return
        soon, late = POLL_S
        clock.sleep(min(max(soon, (clock.mono() - self._began) / 20), late))

    def close(self) -> None:
        """Let the next one watch."""
        if self._dog is not None:
            self._dog.close("the verb is done")
            self._lock.release()


def why_waiting(operator: Operator, name: str) -> str:
    """What the watchdog last said of it."""
    row = row_of(view_in(operator.world.disk, operator.house.state_dir) or {}, name)
    return f"it is {row['detail']}: {row['reason']}" if row else ""
