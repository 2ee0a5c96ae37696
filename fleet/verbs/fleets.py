"""The fleet that a verb is about: as its file declares it, or as it is in force.

A verb that changes something asks `fleets_of(io)`, because the simulation brings `Fleets` of its own.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleet import config, engine
from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.store import lastgood
from fleet.supervisor.declaration import alive, attend, borrowed_from, elsewhere, first_fault
from fleet.times.moment import Wall
from fleet.verbs.io import Fail, Io

if TYPE_CHECKING:
    from fleet.supervisor.operator import Operator


def config_path(args: argparse.Namespace, io: Io) -> str:
    """Which file declares the fleet; says so when it is not the obvious one."""
    path, fallback = config.find(args.config, engine.BESIDE, config.here(args.config))
    if fallback:
        io.note(f"using {path} (there is no agents.toml here)")
    return path


def running_fleet(args: argparse.Namespace, io: Io, *, trust: bool | None = None) -> Fleet:
    """The fleet in force, also with a broken file.

    `trust`: if another user could have changed the file, the state or what is run, True refuses it, False
    warns of it, None does not look.
    """
    standing = attend(_known_path(args) or config_path(args, io))
    for warning in standing.fleet.warnings:
        io.warn(warning)
    if standing.cause:
        io.warn(standing.sentence)
        io.aside = {"config": standing.facts}
    if trust:
        require_trust(standing.fleet)
    elif trust is False and (found := first_fault(standing.fleet)):
        what, fault = found
        io.warn(f"{what}: {fault}; change that before the next up: {fault.fix}")
    return standing.fleet


def _known_path(args: argparse.Namespace) -> str:
    """The agents.toml that was here, if it is gone and its fleet runs on; else empty."""
    if args.config is not None:
        return ""
    path = os.path.join(config.here(), config.FILE_NAME)
    if os.path.lexists(path):
        return ""
    record = lastgood.recall(path)
    return path if record is not None and alive(record.ground) else ""


def require_trust(fleet: Fleet) -> None:
    """Refuse to act on what another user could have changed: the file, the state, what is run."""
    if found := first_fault(fleet):
        what, fault = found
        raise Fail(f"{what}: {fault}; nothing was done", hint=fault.fix, code=2)


def fleets_of(io: Io) -> Fleets:
    """Where a verb that changes something gets its fleet from."""
    return io.fleets or Fleets()


class Fleets:
    """Gives a verb its declaration and its `Operator`. The simulation replaces it."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The caller's environment."""
        return os.environ

    def declared(self, args: argparse.Namespace, io: Io) -> tuple[Fleet, str]:
        """For a verb that starts: what the file says now, trusted, and its text. Raises ConfigError."""
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
        require_trust(fleet)
        return fleet, text

    def running(self, args: argparse.Namespace, io: Io, *, trust: bool | None) -> Fleet:
        """For a verb that looks or stops: see `running_fleet`."""
        return running_fleet(args, io, trust=trust)

    def require_ground(self, fleet: Fleet, text: str) -> None:
        """ConfigError for a loop that stands on nothing."""
        config.parse(text, fleet.config_path, ground=True)

    def keep(self, fleet: Fleet, text: str, now: Wall) -> None:
        """This declaration was taken in."""
        lastgood.keep(RealDisk(), fleet.ground, text, now)

    def operator(self, fleet: Fleet) -> Operator:
        """What carries the verb out."""
        # Only now: verbs that show something load this file, and take twice as long with the operator.
        from fleet.supervisor.operator import Operator

        return Operator(fleet)
