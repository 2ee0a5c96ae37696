"""[loop]: the phases, who is told what, and what comes after the last one."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fleet.config.ground import handoff_is_grounded, plans_exist
from fleet.config.problems import KeyPath
from fleet.config.reader import DEFAULTS
from fleet.core.model import Gate, Handoff, Loop, Member, OnComplete, Phase
from fleet.core.text import did_you_mean

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
        build.report.warn(
            (*where, "kickoff_template"), "is not set: the prompts do not name the phase"
        )
    loop = Loop(
        kickoff_template=build.file(row["kickoff_template"], (*where, "kickoff_template")),
        roles_dir=roles_dir,
        phases=_phases(build, row["phases"], agents),
        handoff=_handoff(build, row["handoff"], agents),
        state_file=row["state_file"],
        resume_phase=row["resume_phase"],
        auto_advance=row["auto_advance"],
        done_marker=row["done_marker"],
        done_nudge=row["done_nudge"],
        on_complete=_on_complete(build, row["on_complete"], agents),
    )
    if row["handoff"] is not None:
        handoff_is_grounded(build, row["handoff"], loop.handoff, agents)
    plans_exist(build, loop, agents)
    return loop, row["log_tokens"]


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
