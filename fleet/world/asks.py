"""What verbs ask of the watchdog: send a message, forget a tally. Asked by file, answered by file."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.memory import AgentMemory, Message, Moment, Status
from fleet.core.model import Fleet
from fleet.core.record import replace
from fleet.core.rules.limits import OPERATOR
from fleet.core.rules.outbox import queue, tail_of
from fleet.journal.requests import Request
from fleet.world.world import House, World

INLINE = 1500  # longer texts lie in a file of their own


class Asks:
    """Takes requests into the outboxes and memories, and leaves receipts when they are done."""

    def __init__(self, world: World, house: House) -> None:
        self._world = world
        self._house = house
        self._taken: set[str] = set()

    def serve(self, fleet: Fleet, memories: dict[str, AgentMemory], now: Moment) -> list[str]:
        """Take what is new; returns the names of those concerned."""
        touched = []
        for ask in self._house.requests.pending(self._taken):
            memory = memories.get(ask.agent)
            if memory is None or fleet.agent(ask.agent) is None:
                self._house.requests.answer(ask.id, ok=False, text=f"there is no agent {ask.agent}")
                continue
            touched.append(ask.agent)
            memories[ask.agent] = self._take(ask, memory, now)
        return touched

    def _take(self, ask: Request, memory: AgentMemory, now: Moment) -> AgentMemory:
        if ask.kind == "send":
            self._taken.add(ask.id)
            return self._send(ask, memory, now)
        if ask.kind == "withdraw":
            message_id = str(ask.args.get("id", ""))
            kept = tuple(m for m in memory.outbox if m.id != message_id or m.status is not Status.QUEUED)
            self._house.requests.answer(ask.id, ok=len(kept) < len(memory.outbox))
            self._house.requests.withdraw(message_id)
            return replace(memory, outbox=kept)
        if ask.kind == "reset":
            self._house.events.record("agent.reset", agent=ask.agent, reason="the operator asked for it")
            self._house.requests.answer(ask.id, ok=True, text="tallies and verdicts are forgotten")
            return forget(memory, now.wall)
        self._house.requests.answer(ask.id, ok=False, text=f"unknown request {ask.kind!r}")
        return memory

    def _send(self, ask: Request, memory: AgentMemory, now: Moment) -> AgentMemory:
        text, file = str(ask.args.get("text", "")), ""
        tail = tail_of(text)
        if len(text) > INLINE:
            self._world.disk.make_dir(self._house.path("messages"))
            file, text = self._house.path(f"messages/{ask.id}.txt"), ""
            self._world.disk.write(file, str(ask.args["text"]).encode("utf-8", "surrogateescape"))
        if memory.limit is not None and memory.limit.until <= now.wall:
            # the window is over, and a person says: go on; what they say is the probe
            limit = replace(memory.limit, probed=now.steady, probes=memory.limit.probes + 1, source=OPERATOR)
            memory = replace(memory, limit=limit)
        self._house.events.record("message.queued", agent=ask.agent, reason=f"send {ask.id}")
        return queue(memory, Message(ask.id, "send", text, file, tail, queued=now.steady))

    def finished(self, messages: Iterable[Message]) -> None:
        """Leave the receipts of messages whose fate is known."""
        for message in messages:
            if message.kind == "send":
                ok = message.status is Status.CONFIRMED
                self._house.requests.answer(message.id, ok=ok, text=message.why, status=str(message.status))
                self._taken.discard(message.id)
                if message.file:
                    self._world.disk.remove(message.file)


def forget(memory: AgentMemory, wall: float) -> AgentMemory:
    """As if it had never failed. A limit window ends now; forgotten, its old banner would arm it again."""
    limit = memory.limit
    if limit is not None:
        waiting = any(m.kind == "probe" for m in memory.outbox)  # then that is the one probe
        limit = replace(limit, until=wall, probed=limit.probed if waiting else 0.0, probes=0, source=OPERATOR)
    return replace(
        memory, deaths=(), exits=(), flapping=0.0, retry_at=0.0, fatal="", fix="", pardoned=memory.over,
        limit=limit, limit_hint=0.0, bad_resumes=0, presses=0, pressed="", kept="",
    )  # fmt: skip
