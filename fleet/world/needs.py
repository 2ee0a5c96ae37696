"""What a fleet needs that decides what runs, and whether another user could change it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fleet.core.model import Fleet
from fleet.core.trust import Distrust
from fleet.world.trust import untrusted


def needs(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Everything outside of the repositories that decides what runs: what it is, and where."""
    yield "the config", fleet.config_path
    for folder in ("state", "logs"):
        yield "log_dir", os.path.join(fleet.log_dir, folder)
    for member in fleet.members:
        if member.env_file:
            yield f"{member.name}: env_file", member.env_file
    for agent in fleet.agents:
        if agent.prompt_file:
            yield f"{agent.name}: prompt_file", agent.prompt_file
    if fleet.loop is None:
        return
    if fleet.loop.kickoff_template:
        yield "loop.kickoff_template", fleet.loop.kickoff_template
    for agent in fleet.agents:
        if agent.is_loop:
            yield f"{agent.name}: role", os.path.join(fleet.loop.roles_dir, f"{agent.role}.md")


def first_fault(fleet: Fleet) -> tuple[str, Distrust] | None:
    """The first thing this fleet needs that another user could change."""
    for what, path in dict.fromkeys(needs(fleet)):
        if found := untrusted(path):
            return what, found
    return None
