"""What verbs ask of the watchdog: send a message, forget a tally. Asked by file, answered by file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from fleet.core.answers import RequestOutcome, admitted, refusal
from fleet.core.evidence import dealt_with
from fleet.core.memory import AgentMemory, Message, Moment
from fleet.core.model import Fleet, TextRule
from fleet.core.rules.outbox import queue, tail_of
from fleet.core.wording import prepared
from fleet.core.words import EventType, MessageKind, MessageState, RequestKind, Witness
from fleet.journal.requests import Request
from fleet.world.world import House, World

INLINE = 1500  # longer texts lie in a file of their own


class Asks:
    """Takes requests into the outboxes and memories, and leaves receipts when they are done."""

    def __init__(self, world: World, house: House) -> None:
        self._world = world
        self._house = house
        self._taken: set[str] = set()
        self.amnesty = False  # the fleet's own budget of restarts is to be forgotten too

    def serve(self, fleet: Fleet, memories: dict[str, AgentMemory], now: Moment) -> list[str]:
        """Take what is new; returns the names of those concerned."""
        touched = []
        for ask in self._house.requests.pending(self._taken):
            memory = memories.get(ask.agent)
            is_agent, is_service = fleet.agent(ask.agent) is not None, fleet.service(ask.agent) is not None
            outcome = admitted(ask.kind, agent=is_agent, service=is_service)
            if memory is None or outcome is not RequestOutcome.DONE:
                self._answer(ask.id, outcome, refusal(outcome, ask.kind, ask.agent))
                continue
            touched.append(ask.agent)
            memories[ask.agent] = self._take(ask, fleet, memory, now)
        return touched

    def _take(self, ask: Request, fleet: Fleet, memory: AgentMemory, now: Moment) -> AgentMemory:
        kind = RequestKind(ask.kind)
        match kind:
            case RequestKind.SEND:
                return self._send(ask, _rules(fleet, ask.agent), memory, now)
            case RequestKind.WITHDRAW:
                return self._withdraw(ask, memory)
            case RequestKind.RESET | RequestKind.PARDON:
                return self._forget(ask, memory, now, window=kind is RequestKind.RESET)
            case _:
                assert_never(kind)

    def _withdraw(self, ask: Request, memory: AgentMemory) -> AgentMemory:
        message_id = str(ask.args.get("id", ""))
        kept = tuple(m for m in memory.outbox if m.id != message_id or m.status is not MessageState.QUEUED)
        found = len(kept) < len(memory.outbox)
        self._answer(ask.id, RequestOutcome.DONE if found else RequestOutcome.FAILED)
        self._house.requests.withdraw(message_id)
        return replace(memory, outbox=kept)

    def _forget(self, ask: Request, memory: AgentMemory, now: Moment, *, window: bool) -> AgentMemory:
        after = forget(memory, now.wall, window=window)
        if window or replace(after, pardoned=memory.pardoned, pardoned_at=memory.pardoned_at) != memory:
            self._house.events.record(
                EventType.AGENT_RESET, agent=ask.agent, reason="the operator asked for it"
            )
        self._answer(ask.id, RequestOutcome.DONE, "tallies and verdicts are forgotten")
        self.amnesty = self.amnesty or bool(ask.args.get("budget"))
        return after

    def _answer(self, request: str, outcome: RequestOutcome, text: str = "", **facts: str) -> None:
        ok = outcome is RequestOutcome.DONE
        self._house.requests.answer(request, ok=ok, text=text, outcome=str(outcome), **facts)

    def _send(
        self, ask: Request, rules: tuple[TextRule, ...], memory: AgentMemory, now: Moment
    ) -> AgentMemory:
        text, file = str(ask.args.get("text", "")), ""
        given = prepared(text, rules)
        if given.refused:
            self._house.events.record(
                EventType.MESSAGE_FAILED, agent=ask.agent, reason=f"send {ask.id}: {given.refused}"
            )
            self._answer(ask.id, RequestOutcome.FAILED, given.refused, status=str(MessageState.FAILED))
            return memory
        self._taken.add(ask.id)
        tail = tail_of(text)
        if len(text) > INLINE:
            self._world.disk.make_dir(self._house.path("messages"))
            file, text = self._house.path(f"messages/{ask.id}.txt"), ""
            self._world.disk.write(file, str(ask.args["text"]).encode("utf-8", "surrogateescape"))
        if memory.limit is not None and memory.limit.until <= now.wall:
            # the window is over, and a person says: go on; what they say is the probe
            limit = replace(
                memory.limit, probed=now.steady, probes=memory.limit.probes + 1, source=Witness.OPERATOR
            )
            memory = replace(memory, limit=limit)
        self._house.events.record(EventType.MESSAGE_QUEUED, agent=ask.agent, reason=f"send {ask.id}")
        return queue(
            memory, Message(ask.id, MessageKind.SEND, text, file, tail, queued=now.steady, idle=given.idle)
        )

    def finished(self, messages: Iterable[Message]) -> None:
        """Leave the receipts of messages whose fate is known."""
        for message in messages:
            if message.kind is MessageKind.SEND:
                outcome = (
                    RequestOutcome.DONE if message.status is MessageState.CONFIRMED else RequestOutcome.FAILED
                )
                self._answer(message.id, outcome, message.why, status=str(message.status))
                self._taken.discard(message.id)
                if message.file:
                    self._world.disk.remove(message.file)


def _rules(fleet: Fleet, name: str) -> tuple[TextRule, ...]:
    """What its CLI wants of texts; what goes to a server needs none of that, unless it is typed after all."""
    agent = fleet.agent(name)
    backend = fleet.backend_of(agent) if agent is not None else None
    return backend.texts if backend is not None and backend.message_delivery == "keys" else ()


def forget(memory: AgentMemory, wall: float, *, window: bool = True) -> AgentMemory:
    """As if it had never failed. With `window` a limit window ends now too: `up` and `restart` keep it.

    It is ended, not forgotten: its old banner would arm it again.
    """
    limit = memory.limit
    if limit is not None and window:
        waiting = any(m.kind is MessageKind.PROBE for m in memory.outbox)  # then that is the one probe
        limit = replace(
            limit, until=wall, probed=limit.probed if waiting else 0.0, probes=0, source=Witness.OPERATOR
        )
    if memory.fatal:
        memory = dealt_with(memory)  # the words that condemned it may still stand there
    return replace(
        memory, deaths=(), exits=(), flapping=0.0, retry_at=0.0, fatal="", fix="", pardoned=memory.over,
        pardoned_at=wall, limit=limit, limit_hint=0.0, bad_resumes=0, presses=0, pressed="", kept="",
    )  # fmt: skip
