"""[loop]: the phases, which agents are pinged, what follows the last phase, and what all that stands on."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fleet.config.problems import KeyPath
from fleet.config.tables import DEFAULTS
from fleet.core.model import Gate, Handoff, Loop, Member, OnComplete, Phase
from fleet.text import did_you_mean

if TYPE_CHECKING:
    from fleet.config.build import Build

_GATES = ("run", "clean", "review", "ratchet")
_SIDES = 2


def build_loop(build: Build, agents: tuple[Member, ...]) -> tuple[Loop | None, bool]:
    """The loop, and whether it asks for a token log."""
    where: KeyPath = ("loop",)
    workers = [(index, agent) for index, agent in enumerate(agents) if agent.is_loop]
    if "loop" not in build.document:
        for index, _ in workers:
            build.report.error(
                ("agent", index, "kind"),
                'is "loop", but the file has no [loop]',
                'add [loop] with its phases, or use kind = "persistent"',
            )
        return None, False
    row = build.reader.table("loop", build.document["loop"], where)
    roles_dir = build.path(row["roles_dir"], (*where, "roles_dir"))
    _roles_exist(build, workers, roles_dir)
    if workers and not row["kickoff_template"]:
        build.report.warn((*where, "kickoff_template"), "is not set: the prompts do not name the phase")
    log_tokens = row.pop("log_tokens")
    worked_out = {
        "kickoff_template": build.file(row["kickoff_template"], (*where, "kickoff_template")),
        "roles_dir": roles_dir,
        "phases": _phases(build, row["phases"], agents),
        "handoff": _handoff(build, row["handoff"], agents),
        "on_complete": _on_complete(build, row["on_complete"], agents),
    }
    loop = Loop(**row | worked_out)
    if row["handoff"] is not None:
        handoff_is_grounded(build, row["handoff"], loop.handoff, agents)
    plans_exist(build, loop, agents)
    return loop, log_tokens


def _roles_exist(build: Build, workers: Iterable[tuple[int, Member]], roles_dir: str) -> None:
    for index, agent in workers:
        where: KeyPath = ("agent", index, "role")
        if not agent.role:
            build.report.error(
                where,
                "a loop agent needs a role: its prompt is roles_dir/ROLE.md",
                'such as role = "builder"',
            )
        else:
            build.file(os.path.join(roles_dir, f"{agent.role}.md"), where)


def _phases(build: Build, raw: Any, agents: tuple[Member, ...]) -> tuple[Phase, ...]:
    where: KeyPath = ("loop", "phases")
    if raw == "":  # missing: already reported
        return ()
    if not raw:
        build.report.error(where, "is empty: a loop needs at least one phase")
    rows = build.reader.tables("loop.phases", raw, where)
    ids: dict[str, int] = {}
    files: dict[str, int] = {}
    known = {agent.role or agent.name for agent in agents}
    phases = []
    for index, row in enumerate(rows):
        at = (*where, index)
        if row["id"] and ids.setdefault(row["id"], index) != index:
            build.report.error((*at, "id"), f'"{row["id"]}" is already taken by phases[{ids[row["id"]]}]')
        file = posixpath.normpath(row["status"]) if row["status"] else ""
        if file and files.setdefault(file, index) != index:
            build.report.error(
                (*at, "status"),
                f'"{row["status"]}" is also the status file of '
                f"phases[{files[file]}]: the first to be done would end both",
                "give every phase its own file",
            )
        for role, _ in row["models"]:
            if role not in known:
                meant = did_you_mean(role, known)
                build.report.warn((*at, "models", role), "names no role and no agent", meant)
        row["gates"] = tuple(_gate(build, gate, (*at, "gates", i)) for i, gate in enumerate(row["gates"]))
        phases.append(Phase(**row))
    return tuple(phases)


def _gate(build: Build, raw: Any, where: KeyPath) -> Gate:
    row = build.reader.table("loop.phases.gates", raw, where)
    chosen = [key for key in _GATES if row[key]]
    if len(chosen) != 1:
        said = f"has {' and '.join(chosen)}" if chosen else "checks nothing"
        build.report.error(
            where, f"{said}: a gate is exactly one of {', '.join(_GATES)}", 'such as { run = "make test" }'
        )
    elif row["metric"] and chosen != ["ratchet"]:
        build.report.error((*where, "metric"), "belongs to a ratchet")
    return Gate(**row)


def _handoff(build: Build, raw: Any, agents: tuple[Member, ...]) -> Handoff:
    where: KeyPath = ("loop", "handoff")
    row = DEFAULTS["loop.handoff"].copy() if raw is None else build.reader.table("loop.handoff", raw, where)
    row["repo"] = build.path(row["repo"], (*where, "repo"))
    for key in ("claim_pings", "review_pings"):
        row[key] = _agents_named(build, row[key], agents, (*where, key))
    if len(row["inboxes"]) > _SIDES:
        build.report.error(
            (*where, "inboxes"),
            f"has {len(row['inboxes'])} files, but there are two sides",
            "the first belongs to claim_pings, the second to review_pings",
        )
    return Handoff(**row)


def _agents_named(
    build: Build, words: tuple[str, ...], agents: tuple[Member, ...], where: KeyPath
) -> tuple[str, ...]:
    """A word is an agent's name, else a role, which stands for all agents that have it."""
    names: dict[str, None] = {}
    for index, word in enumerate(words):
        found = [a.name for a in agents if a.name == word] or [a.name for a in agents if a.role == word]
        if not found:
            known = {a.name for a in agents} | {a.role for a in agents if a.role}
            at = (*where, index) if len(words) > 1 else where
            build.report.error(at, f'"{word}" is no agent and no role', did_you_mean(word, known))
        names.update(dict.fromkeys(found))
    return tuple(names)


def _on_complete(build: Build, raw: Any, agents: tuple[Member, ...]) -> OnComplete | None:
    if raw is None:
        return None
    where: KeyPath = ("loop", "on_complete")
    row = build.reader.table("loop.on_complete", raw, where)
    trigger = build.path(row["trigger_file"], (*where, "trigger_file"), build.log_dir)
    if row["trigger_file"] and not trigger.startswith(build.log_dir + os.sep):
        build.report.error((*where, "trigger_file"), f"must be a file under log_dir ({build.log_dir})")
    agent = next((a for a in agents if a.name == row["run"]), None)
    if row["run"] and (agent is None or not agent.is_task):
        tasks = {a.name for a in agents if a.is_task}
        build.report.error(
            (*where, "run"), f'"{row["run"]}" is no agent of kind "task"', did_you_mean(row["run"], tasks)
        )
    return OnComplete(trigger, row["run"])


# --------------------------------------------------------------------------------------------------
# What a loop stands on: the repository that is watched, and the plans of its phases.
# A clone that `up` is going to make is not there yet. Then its source is looked at, as far as files can
# tell.


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
