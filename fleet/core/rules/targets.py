"""Who is meant by a name in `claim_pings` and `review_pings`: an agent, else everybody of that role."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.model import AgentSpec, Fleet


def targets(fleet: Fleet, names: Iterable[str]) -> tuple[AgentSpec, ...]:
    """The agents meant, each once, in the order named."""
    found: dict[str, AgentSpec] = {}
    for name in names:
        agent = fleet.agent(name)
        meant = (agent,) if agent else tuple(a for a in fleet.agents if a.role == name)
        for one in meant:
            found.setdefault(one.name, one)
    return tuple(found.values())
