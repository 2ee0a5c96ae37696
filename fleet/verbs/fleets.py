"""The fleet that a verb is about: as its file declares it, or as it is in force."""

from __future__ import annotations

import argparse
import os

from fleet import config, engine
from fleet.core.model import Fleet
from fleet.store.lastgood import recall
from fleet.supervisor.declaration import alive, attend, borrowed_from, elsewhere, first_fault
from fleet.verbs.common import Fail, Io


def config_path(args: argparse.Namespace, io: Io) -> str:
    """Which file declares the fleet; says so when it is not the obvious one."""
    path, fallback = config.find(args.config, engine.BESIDE, config.here(args.config))
    if fallback:
        io.note(f"using {path} (there is no agents.toml here)")
    return path


def declared_fleet(args: argparse.Namespace, io: Io) -> tuple[Fleet, str]:
    """What the file says now and its text, for verbs that start. ConfigError with every problem."""
    path = config_path(args, io)
    text = config.text_of(path)
    fleet = config.parse(text, path)
    for warning in fleet.warnings:
        io.warn(warning)
    if (standing := elsewhere(fleet)) is not None:
        raise Fail(standing.sentence, hint="agents.py down, then agents.py up")
    if theirs := borrowed_from(fleet):
        raise Fail(
            f"{path}: log_dir {fleet.log_dir} holds the records of the fleet of {theirs}, which runs",
            hint="if it is a copy, remove it; else choose another log_dir",
        )
    return fleet, text


def running_fleet(args: argparse.Namespace, io: Io) -> Fleet:
    """The fleet in force, for verbs that show or stop it: they work with a broken file."""
    standing = attend(_known_path(args) or config_path(args, io))
    for warning in standing.fleet.warnings:
        io.warn(warning)
    if standing.cause:
        io.warn(standing.sentence)
        io.aside = {"config": standing.facts}
    return standing.fleet


def _known_path(args: argparse.Namespace) -> str:
    """The agents.toml that was here, if it is gone and its fleet runs on; else empty."""
    if args.config is not None:
        return ""
    path = os.path.join(config.here(), config.FILE_NAME)
    if os.path.lexists(path):
        return ""
    record = recall(path)
    return path if record is not None and alive(record.ground) else ""


def require_trust(fleet: Fleet) -> None:
    """Refuse to act on what another user could have changed: the file, the state, what is run."""
    if found := first_fault(fleet):
        what, fault = found
        raise Fail(f"{what}: {fault}; nothing was done", hint=fault.fix, code=2)


def warn_of_distrust(fleet: Fleet, io: Io) -> None:
    """The same for a verb that only stops or shows: it goes on, and says so."""
    if found := first_fault(fleet):
        what, fault = found
        io.warn(f"{what}: {fault}; change that before the next up: {fault.fix}")
