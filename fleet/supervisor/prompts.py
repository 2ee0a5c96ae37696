"""An agent's words at its start, read from the project's files. A file that is missing names its key."""

from __future__ import annotations

import os

from fleet.core.model import Fleet, Member, Phase
from fleet.core.starts import assemble, slots_for
from fleet.ports import Disk

CAP = 2 << 20


class NoPrompt(Exception):
    """A prompt cannot be built; the text says which file of which key is missing."""


def prompt_for(disk: Disk, fleet: Fleet, agent: Member, phase: str) -> tuple[str, str]:
    """The model and the exact prompt of this agent in this phase."""
    if not agent.is_loop or fleet.loop is None:
        text = (
            _read(disk, agent.prompt_file, f"agent {agent.name}: prompt_file")
            if agent.prompt_file
            else agent.prompt
        )
        return agent.model, text
    now = next((p for p in fleet.loop.phases if p.id == phase), None)
    if now is None:
        raise NoPrompt(f"agent {agent.name}: there is no phase {phase!r}; see `agents.py phase show`")
    path = fleet.loop.kickoff_template
    template = _read(disk, path, "loop.kickoff_template") if path else ""
    role = _read(disk, os.path.join(fleet.loop.roles_dir, f"{agent.role}.md"), f"agent {agent.name}: role")
    return model_in(agent, now), assemble(template, role, slots_for(now, agent.role))


def model_in(agent: Member, phase: Phase) -> str:
    """The phase may choose another model for a role, or for an agent by its name; this invocation, any."""
    if agent.model_pinned:
        return agent.model
    models = dict(phase.models)
    return models.get(agent.role or agent.name, models.get(agent.name, agent.model))


def _read(disk: Disk, path: str, key: str) -> str:
    try:
        # the project's own file: a link is the user's choice, unlike one that turns up in our state directory
        return disk.read(os.path.realpath(path), CAP).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise NoPrompt(f"{key}: {path}: {error.strerror}; create the file or correct the key") from error
