"""The declaration in force, and whether another user could change what it needs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from fleet.config import ConfigError, parse, text_of
from fleet.core.model import Fleet
from fleet.core.outline import Cause, Ground, cause, changed
from fleet.host.locks import watchdog_holder
from fleet.host.tmux.server import server_of
from fleet.host.trust import Distrust, untrusted
from fleet.ports import Unavailable
from fleet.store.lastgood import Record, real_ground, recall, recorded_in

_LOG_DIR = re.compile(r"""^[ \t]*(?:defaults\.)?log_dir[ \t]*=[ \t]*["']([^"'\n]+)["']""", re.MULTILINE)


class Standing(NamedTuple):
    """The declaration in force, and why it is not the file's."""

    fleet: Fleet
    text: str  # that it was read from
    cause: Cause = Cause.NONE
    problems: tuple[str, ...] = ()
    at: float = 0.0  # when it was taken in; only of a recorded one

    @property
    def facts(self) -> dict[str, object]:
        """The same for a program."""
        source = "last_good" if self.cause else "file"
        return {"source": source, "cause": str(self.cause), "problems": list(self.problems)}

    @property
    def sentence(self) -> str:
        """One line for a person; empty when the file is in force."""
        if not self.cause:
            return ""
        first, more = self.problems[0], len(self.problems) - 1
        others = f" (and {more} more: agents.py validate)" if more else ""
        if self.cause in {Cause.CHANGED, Cause.MOVED}:
            return first + others
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        return f"{first}{others}; the last good config is in force, taken in {when}"


def attend(path: str) -> Standing:
    """The declaration in force, for verbs that show or stop a fleet. ConfigError when there is none."""
    text, fleet, wrong = "", None, None
    try:
        text = text_of(path)
        fleet = parse(text, path)
    except ConfigError as error:
        wrong = error
    here = real_ground(fleet.ground) if fleet is not None else None
    record = recall(path, fleet.log_dir if fleet is not None else _salvaged(path, text))
    why = cause(wrong.cause if wrong else Cause.NONE, here, record.ground if record else None, alive)
    if fleet is not None and why is Cause.NONE:
        return Standing(fleet, text)
    if record is None or not why:
        assert wrong is not None
        raise wrong
    problems = wrong.lines() if wrong else _differences(path, here, record.ground)
    return Standing(fleet_of(record), record.text, why, tuple(problems), record.at)


def elsewhere(fleet: Fleet) -> Standing | None:
    """The fleet of this file that still runs where an earlier version of the file put it."""
    record = recall(fleet.config_path, fleet.log_dir)
    here = real_ground(fleet.ground)
    why = cause(Cause.NONE, here, record.ground if record else None, alive)
    if record is None or not why:
        return None
    problems = tuple(_differences(fleet.config_path, here, record.ground))
    return Standing(fleet_of(record), record.text, why, problems, record.at)


def borrowed_from(fleet: Fleet) -> str:
    """The config of another fleet that lives and whose records lie in this one's log_dir; empty if none.

    A project that was copied with its log_dir has them, and so have two files that name the same one.
    """
    record = recorded_in(fleet.log_dir)
    if record is None or record.ground.config_path == os.path.realpath(fleet.config_path):
        return ""
    theirs = os.path.lexists(record.ground.config_path) and alive(record.ground)
    return record.ground.config_path if theirs else ""


def _differences(path: str, here: Ground | None, there: Ground) -> list[str]:
    assert here is not None
    after = "takes effect after `down` and `up`"
    said = [
        f"{path}: {key} changed: {after}; the running fleet has {getattr(there, key)!r}"
        for key in changed(here, there)
    ]
    return said or [f"{path}: the fleet that runs was started from {there.config_path}: this file {after}"]


def fleet_of(record: Record) -> Fleet:
    """The recorded fleet. One that this engine does not read any more still has a place and a name."""
    ground = record.ground
    bare = Fleet(
        config_path=ground.config_path,
        project_dir=os.path.dirname(ground.config_path),
        session_prefix=ground.session_prefix,
        log_dir=ground.log_dir,
        tmux_socket=ground.tmux_socket,
        project_id=ground.project_id,
    )
    try:
        fleet = parse(record.text, ground.config_path, is_file=lambda _path: True)
    except ConfigError:
        return bare
    return replace(fleet, warnings=(), log_dir=bare.log_dir)


def alive(ground: Ground) -> bool:
    """Does anything of it run? What cannot be seen is not gone."""
    if watchdog_holder(os.path.join(ground.log_dir, "state")) is not None:
        return True
    try:
        return bool(server_of(ground).listing().panes)
    except Unavailable:
        return True


def _salvaged(path: str, text: str) -> str:
    """Where a text that cannot be read says its fleet lives. Believed only if a record lies there."""
    found = _LOG_DIR.search(text)
    if found is None:
        return ""
    return os.path.join(os.path.dirname(os.path.abspath(path)), os.path.expanduser(found[1]))


# --------------------------------------------------------------------------------------------------
# What a fleet needs that decides what runs, and whether another user could change it.


def needs(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Everything outside of the repositories that decides what runs: what it is, and where."""
    yield "the config", fleet.config_path
    for directory in ("state", "logs"):
        yield "log_dir", os.path.join(fleet.log_dir, directory)
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
