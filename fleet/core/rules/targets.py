"""Whom a ping is for, and in which words.

A name in `claim_pings` and `review_pings` is an agent's, else it means everybody of that role. Words that
the agent's own backend would take for a banner or for work must not be typed into its pane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fleet.core.model import Fleet, Member


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
