"""What a loop stands on: the repository that is watched, and the plans of its phases.

A clone that `up` is going to make is not there yet. Then its source is looked at, as far as files can tell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fleet.config.problems import KeyPath
from fleet.core.model import Handoff, Loop, Member

if TYPE_CHECKING:
    from fleet.config.build import Build

_USES_GIT = ("repo", "claim_pings", "review_pings", "inboxes")


def handoff_is_grounded(build: Build, raw: Any, handoff: Handoff, agents: tuple[Member, ...]) -> None:
    """A handoff that is watched for in no repository never happens."""
    where: KeyPath = ("loop", "handoff", "repo")
    repo = handoff.repo
    if not isinstance(raw, dict) or not any(raw.get(key) for key in _USES_GIT):
        return
    if any(a.clone and _within(repo, a.dir) and not os.path.lexists(a.dir) for a in agents):
        return  # `up` makes it
    if not is_repository(repo, build.is_file):
        there = "is no git repository" if os.path.isdir(repo) else "does not exist"
        hint = "git init it, or name an agent's clone: handoff happens by commits"
        build.no_ground(where, f"{repo} {there}", hint)
        return
    real = os.path.realpath(repo)
    clones = [a for a in agents if a.is_loop and a.clone and os.path.realpath(a.clone) == real]
    if clones and not _is_bare(repo, build.is_file):
        hint = f'set repo = "{os.path.relpath(clones[0].dir, build.project_dir)}", or clone a bare repository'
        said = f"{clones[0].name} clones it, but git takes no push into a branch that is checked out"
        build.report.warn(where, said, hint)


def plans_exist(build: Build, loop: Loop, agents: tuple[Member, ...]) -> None:
    """Every plan is where an agent, or the project, can read it; a clone to come may hold it."""
    workers = [a for a in agents if a.is_loop]
    repo = loop.handoff.repo
    dirs = [build.project_dir, repo, os.path.join(repo, loop.handoff.state_subdir), *(a.dir for a in workers)]
    to_come = [a for a in agents if a.clone and not os.path.lexists(a.dir)]
    dirs += [a.clone for a in to_come]
    dirs = list(dict.fromkeys(os.path.normpath(d) for d in dirs))
    unknown = [a for a in to_come if not os.path.isdir(a.clone) or _is_bare(a.clone, build.is_file)]
    for index, phase in enumerate(loop.phases):
        if not phase.plan or any(build.is_file(os.path.join(d, phase.plan)) for d in dirs):
            continue
        where: KeyPath = ("loop", "phases", index, "plan")
        if unknown:
            said = f"{phase.plan} is not in the project; {unknown[0].clone} is looked at when it is cloned"
            build.report.warn(where, said)
            continue
        there = ", ".join(d for d in dirs if os.path.isdir(d))
        hint = "paths are relative to these; one that is to be written later needs an empty file now"
        build.missing_file(where, f"there is no file {phase.plan} in {there or build.project_dir}", hint)


def is_repository(path: str, is_file: Callable[[str], bool]) -> bool:
    """Would git find a repository there, in it or above it?"""
    if _has_git(path, is_file):
        return True
    return os.path.isdir(path) and any(_has_git(above, is_file) for above in _above(path))


def _has_git(path: str, is_file: Callable[[str], bool]) -> bool:
    dot = os.path.join(path, ".git")
    return is_file(os.path.join(dot, "HEAD")) or is_file(dot) or _is_bare(path, is_file)


def _is_bare(path: str, is_file: Callable[[str], bool]) -> bool:
    return is_file(os.path.join(path, "HEAD")) and os.path.isdir(os.path.join(path, "objects"))


def _above(path: str) -> Iterable[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
