"""The outbox of one agent: what is to be typed, oldest first, never two of a kind waiting."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.memory import AgentMemory, Message
from fleet.core.model import Backend
from fleet.core.wording import prepared
from fleet.core.words import FINAL, MessageKind, MessageState, Witness
from fleet.times.moment import Moment

# What the watchdog composes itself: only the newest on its topic is worth typing, and not too many an hour.
OWN = frozenset(
    {MessageKind.PING, MessageKind.WAKE, MessageKind.PROBE, MessageKind.NUDGE, MessageKind.MARKER}
)
TAIL = 24
PROBE = "The pause is over. Please go on where you stopped."
PASSED = "The time you were waiting for has come. Please go on."
NUDGE = "If this phase meets its definition of done, write its done marker now; otherwise go on."
OUR_WORDS = (PROBE, PASSED, NUDGE)  # what no pattern of a backend may take for a banner or for work
SAID = 6  # texts of ours that may still stand on a screen


def queue(memory: AgentMemory, message: Message) -> AgentMemory:
    """Add a message; the same id is never queued twice, a newer one replaces a waiting one on its topic."""
    if any(m.id == message.id for m in memory.outbox):
        return memory
    kept = memory.outbox
    if message.kind in OWN:
        kept = tuple(m for m in kept if m.status is not MessageState.QUEUED or m.topic != message.topic)
    return memory._replace(outbox=(*kept, message))


def own(kind: MessageKind, topic: str, text: str, now: Moment) -> Message:
    """A message that the watchdog composes; its id follows from what it is about."""
    return Message(f"{kind}-{topic}", kind, text, tail=tail_of(text), queued=now.steady)


def advance(memory: AgentMemory, message: Message) -> AgentMemory:
    """The outbox with this message brought up to date; a final one leaves it."""
    kept = [message if m.id == message.id else m for m in memory.outbox]
    return memory._replace(outbox=tuple(m for m in kept if m.status not in FINAL))


def admitted(message: Message, backend: Backend) -> Message:
    """An operator's words as its CLI can be given them: with what that needs, or FAILED with the reason."""
    # what goes to a server needs none of the rules for typing, unless it is typed after all
    given = prepared(message.text, backend.texts if backend.message_delivery == "keys" else ())
    if given.refused:
        return message._replace(status=MessageState.FAILED, why=given.refused)
    return message._replace(idle=given.idle)


def receive(memory: AgentMemory, now: Moment) -> AgentMemory:
    """Take in what was put into the outbox since the last look."""
    for message in memory.outbox:
        if message.queued:
            continue
        memory = memory._replace(outbox=tuple(m for m in memory.outbox if m.id != message.id))
        if message.kind is MessageKind.SEND and message.status is MessageState.QUEUED:
            memory = _tried_by_operator(memory, now)
        memory = queue(memory, message._replace(queued=now.steady))
    return memory


def _tried_by_operator(memory: AgentMemory, now: Moment) -> AgentMemory:
    """After the end of a window an operator says: go on. What they say is its probe."""
    limit = memory.limit
    if limit is None or limit.until > now.wall:
        return memory
    tried = limit._replace(probed=now.steady, probes=limit.probes + 1, source=Witness.OPERATOR)
    return memory._replace(limit=tried)


def handed_in(memory: AgentMemory, message: Message, now: Moment) -> AgentMemory:
    """The outbox with a message that is being submitted.

    After the end of a window the first message that is submitted tries it: it is the window's one probe.
    """
    memory = memory._replace(said=(*memory.said, message.text or message.tail)[-SAID:])
    memory = advance(memory, message)  # before the probe that waits is withdrawn: this may be it
    limit = memory.limit
    if limit is not None and now.wall >= limit.until:
        tried = limit._replace(probed=now.steady, probes=limit.probes + (not limit.probed))
        memory = withdrawn(memory)._replace(limit=tried)
    return memory


def withdrawn(memory: AgentMemory) -> AgentMemory:
    """The same without a probe that waits: it asks about a window, and that one is not there any more."""
    kept = tuple(
        m for m in memory.outbox if not (m.kind is MessageKind.PROBE and m.status is MessageState.QUEUED)
    )
    return memory if len(kept) == len(memory.outbox) else memory._replace(outbox=kept)


def of_this_phase(memory: AgentMemory, phase: str) -> tuple[AgentMemory, tuple[Message, ...]]:
    """The outbox without pings that wait and were made for another phase, and those."""
    if not phase:
        return memory, ()
    stale = tuple(m for m in memory.outbox if m.status is MessageState.QUEUED and m.phase not in {"", phase})
    if not stale:
        return memory, ()
    return memory._replace(outbox=tuple(m for m in memory.outbox if m not in stale)), stale


def taken_back(memory: AgentMemory, ids: Iterable[str]) -> tuple[AgentMemory, tuple[Message, ...]]:
    """The outbox without messages that wait and that their senders took back, and those."""
    wanted = frozenset(ids)
    gone = tuple(
        m._replace(status=MessageState.WITHDRAWN, why="its sender took it back")
        for m in memory.outbox
        if m.id in wanted and m.status is MessageState.QUEUED
    )
    for message in gone:
        memory = advance(memory, message)
    return memory, gone


def tail_of(text: str) -> str:
    """The last characters of a text as they will stand in a composer: enough to know our own words."""
    words = " ".join(text.split())
    return words[-TAIL:]
