"""A ping: a message that wakes a side of the loop. Which agents it is for, and in which words.

A name in `claim_pings` and `review_pings` is an agent's, else it means every agent of that role. Words that
the agent's own backend would take for a banner or for work must not be typed into its pane.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from fleet.core.loop.loop_case import LoopCase
from fleet.core.memory import Message
from fleet.core.model import Fleet, Member
from fleet.core.queue import TAIL
from fleet.core.words import MessageKind, PingAbout


def ping(
    case: LoopCase, agent: Member, event: str, about: PingAbout, texts: tuple[str, ...], *, inbox: str = ""
) -> tuple[str, Message]:
    """Tell one agent of an event, in the first of these texts that fits. It is news in this phase only."""
    words = wording(case.fleet, agent, *texts)
    message = Message(
        ping_id(about, event, agent.name),
        MessageKind.PING,
        words,
        tail=words[-TAIL:],
        about=about,
        inbox=inbox,
        phase=case.phase,
    )
    return agent.name, message


def ping_id(about: PingAbout, event: str, agent: str) -> str:
    """The message's id. It follows from the event: putting it down twice is harmless."""
    name = f"{about}-{event}-{agent}"
    return f"{about}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def targets(fleet: Fleet, names: Iterable[str]) -> tuple[Member, ...]:
    """The agents meant, each once, in the order named."""
    found: dict[str, Member] = {}
    for name in names:
        agent = fleet.agent(name)
        meant = (agent,) if agent else tuple(a for a in fleet.agents if a.role == name)
        for one in meant:
            found.setdefault(one.name, one)
    return tuple(found.values())


def wording(fleet: Fleet, agent: Member, *texts: str) -> str:
    """The first of these texts that the agent's backend would not misread; the last one if all would be."""
    backend = fleet.backend_of(agent)
    traps = [p for p in (backend.active_re, backend.limit_re, backend.fatal_re) if p]
    return next((t for t in texts if not any(re.search(p, t) for p in traps)), texts[-1])
