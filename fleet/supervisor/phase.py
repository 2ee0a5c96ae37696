"""A phase: the prompts of its agents, its plan, its status file, the marker after the last one.

Shared by the watchdog and the verbs, so that both mean the same file by the same name. An agent outside of
the loop has a prompt, too. A file that is missing names its key.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence

from fleet.core.loop.done import read_done
from fleet.core.loop.loop_case import GitView, StatusView
from fleet.core.model import Fleet, Loop, Member, Phase
from fleet.core.starts import assemble, slots_for
from fleet.host import git
from fleet.ports import Disk
from fleet.times.moment import Wall

PROMPT_CAP = 2 << 20
STATUS_CAP = 64 << 10
MARKER = "SEQUENCE-COMPLETE"


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
        return disk.read(os.path.realpath(path), PROMPT_CAP).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise NoPrompt(f"{key}: {path}: {error.strerror}; create the file or correct the key") from error


def read_status(disk: Disk, loop: Loop, phase: Phase) -> StatusView:
    """The status file of a phase and what it says. Raises OSError when something unfit stands there."""
    for path in places(loop, phase.status):
        try:
            data = disk.read(path, STATUS_CAP)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return StatusView(path, hashlib.sha256(data).hexdigest()[:16], read_done(data, loop.done_marker))
    return StatusView()


def phase_trouble(disk: Disk, fleet: Fleet, loop: Loop, index: int) -> str:
    """Why the kickoffs of a phase cannot be built; empty when they can, or when it is the end."""
    if index >= len(loop.phases):
        return ""
    phase, repo = loop.phases[index], loop.handoff.repo
    dirs = [fleet.project_dir, repo, os.path.join(repo, loop.handoff.state_subdir)]
    dirs += [a.dir for a in fleet.agents if a.is_loop]
    if not any(_is_file(disk, os.path.join(d, phase.plan)) for d in dirs):
        return f"phase {phase.id}: plan {phase.plan} is in none of {', '.join(dict.fromkeys(dirs))}"
    try:
        for agent in fleet.agents:
            if agent.is_loop:
                prompt_for(disk, fleet, agent, phase.id)
    except NoPrompt as error:
        return str(error)
    return ""


def write_marker(disk: Disk, log_dir: str, ids: Sequence[str], wall: Wall) -> None:
    """Say that the sequence is complete: when, and what it was."""
    said = {"completed": wall, "count": len(ids), "phases": list(ids)}
    disk.write(f"{log_dir}/{MARKER}", json.dumps(said).encode() + b"\n")


def watched(disk: Disk, loop: Loop) -> GitView | None:
    """The repository as it is now; None when it is not there. Raises OSError when it cannot be read."""
    return git.Refs(disk).view(loop.handoff.repo, loop.handoff.branch)


def places(loop: Loop, name: str) -> tuple[str, ...]:
    """Where a coordination file may lie: the state directory of the repository, then its root."""
    handoff = loop.handoff
    both = (os.path.join(handoff.repo, handoff.state_subdir, name), os.path.join(handoff.repo, name))
    return tuple(dict.fromkeys(os.path.normpath(p) for p in both))


def identity(disk: Disk, path: str) -> str:
    """Which file of that name it is; empty when there is none."""
    found = disk.stat(path)
    return f"{found.inode}-{found.mtime_ns}-{found.size}" if found else ""


def _is_file(disk: Disk, path: str) -> bool:
    found = disk.stat(os.path.realpath(path))
    return found is not None and not stat.S_ISDIR(found.mode)


def watched_tip(disk: Disk, loop: Loop) -> str:
    """The commit the loop watches now; empty when there is none to be seen."""
    try:
        view = watched(disk, loop)
    except OSError:
        return ""
    return view.tip if view else ""
