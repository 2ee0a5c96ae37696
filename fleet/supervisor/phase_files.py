"""The files a phase is made of: its status, its plan, its prompts, and the marker after the last one.

Shared by the watchdog and the verbs, so that both mean the same file by the same name.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence

from fleet.core.loop.done import read_done
from fleet.core.loop.loop_case import GitView, StatusView
from fleet.core.model import Fleet, Loop, Phase
from fleet.host import git
from fleet.ports import Disk
from fleet.supervisor.prompts import NoPrompt, prompt_for
from fleet.times.moment import Wall

MARKER = "SEQUENCE-COMPLETE"
STATUS_CAP = 64 << 10


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
