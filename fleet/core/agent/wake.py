"""The periodic message to an agent whose file declares one."""

from __future__ import annotations

from fleet.core.case import Case, Verdict
from fleet.core.memory import Message
from fleet.core.queue import queue
from fleet.core.words import MessageKind
from fleet.times.moment import later


def wake(case: Case) -> Verdict | None:
    """Queue a wake one interval after the last; two are never queued at once."""
    agent, memory, now = case.agent, case.memory, case.now
    if agent.wake is None or not memory.ready:
        return None
    due = later(memory.woke, agent.wake.interval)
    if now.steady < due:
        return Verdict(f"next wake in {now.ahead(due):.0f} s", wake_at=due)
    name = f"wake-{agent.name}-{now.steady:.0f}"
    message = Message(name, MessageKind.WAKE, file=agent.wake.prompt_file, queued=now.steady)
    woken = memory._replace(woke=now.steady)
    return Verdict("a wake is due", memory=queue(woken, message), wake_at=now.steady)
