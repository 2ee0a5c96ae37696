"""Which model and backend an agent really gets.

For one invocation the environment wins; then the phase, the agent, [defaults]. The watchdog never
calls `override`: what it does follows from the file alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from fleet.config.backend_tables import Backends
from fleet.config.problems import ConfigError, Findings, Problem
from fleet.config.tables import Reader
from fleet.core.model import Fleet, Member
from fleet.text import did_you_mean

_MODEL = "AGENT_MODEL_"
_BACKEND = "AGENT_BACKEND_"


class Override(NamedTuple):
    """One variable that changes one agent, this once; no agent when there is none of that name."""

    agent: str
    variable: str
    text: str


def override(fleet: Fleet, environ: Mapping[str, str]) -> tuple[Fleet, list[Override]]:
    """The fleet as AGENT_MODEL_name and AGENT_BACKEND_name want it this once, and what to say about it."""
    notes: list[Override] = []
    agents = []
    for agent in fleet.agents:
        changed = agent
        if (model := _value(environ, _MODEL, agent, fleet)) and model[1] != agent.model:
            changed = replace(changed, model=model[1], model_pinned=True)
            notes.append(Override(agent.name, model[0], f"model {model[1]}, this time only"))
        elif model:
            changed = replace(changed, model_pinned=True)
        if (backend := _value(environ, _BACKEND, agent, fleet)) and backend[1] != agent.backend:
            fleet = _with_backend(fleet, *backend)
            changed = replace(changed, backend=backend[1])
            said = f"a watchdog goes by the file and will bring {agent.backend} back"
            notes.append(Override(agent.name, backend[0], f"backend {backend[1]}, this time only; {said}"))
        agents.append(changed)
    notes += [Override("", name, "there is no such agent") for name in _strangers(environ, fleet)]
    return replace(fleet, members=(*agents, *fleet.services)), notes


def _value(environ: Mapping[str, str], prefix: str, agent: Member, fleet: Fleet) -> tuple[str, str] | None:
    """A shell cannot spell my-agent, so my_agent stands for it, unless that is another's name."""
    spellings = [agent.name]
    spelt = agent.name.replace("-", "_")
    if fleet.agent(spelt) is None:
        spellings.append(spelt)
    return next(((prefix + name, value) for name in spellings if (value := environ.get(prefix + name))), None)


def _strangers(environ: Mapping[str, str], fleet: Fleet) -> list[str]:
    known = {name for agent in fleet.agents for name in (agent.name, agent.name.replace("-", "_"))}
    return sorted(
        name
        for name, value in environ.items()
        for prefix in (_MODEL, _BACKEND)
        if value and name.startswith(prefix) and name.removeprefix(prefix) not in known
    )


def _with_backend(fleet: Fleet, variable: str, name: str) -> Fleet:
    """The fleet with that backend in it; one that the file does not use may still be a shipped one."""
    if any(backend.name == name for backend in fleet.backends):
        return fleet
    shipped = Backends({}, Reader(Findings(), strict=False), None)
    backend = shipped.get(name)
    if backend is None:
        known = shipped.known() | {backend.name for backend in fleet.backends}
        said = f'there is no backend "{name}", neither in the config nor shipped'
        raise ConfigError([Problem("environment", None, variable, said, did_you_mean(name, known))])
    return replace(fleet, backends=(*fleet.backends, backend))
