"""How a verb that changes something gets at its fleet. The simulation has a desk of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from fleet import config
from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.store import lastgood
from fleet.supervisor.operator import Operator
from fleet.times.moment import Wall
from fleet.verbs.common import Io
from fleet.verbs.fleets import declared_fleet, require_trust, running_fleet, warn_of_distrust


def desk_of(io: Io) -> Desk:
    """The desk of this call: the simulation brings its own."""
    return io.desk or Desk()


class Desk:
    """How a verb gets its declaration and its `Operator`. The simulation has one of its own."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The caller's environment."""
        return os.environ

    def declared(self, args: argparse.Namespace, io: Io) -> tuple[Fleet, str]:
        """For a verb that starts: what the file says now, trusted, and its text."""
        fleet, text = declared_fleet(args, io)
        require_trust(fleet)
        return fleet, text

    def running(self, args: argparse.Namespace, io: Io, *, trust: bool | None) -> Fleet:
        """For a verb that looks or stops: the fleet in force. Not to be trusted is a fault, or a warning."""
        fleet = running_fleet(args, io)
        if trust:
            require_trust(fleet)
        elif trust is not None:
            warn_of_distrust(fleet, io)
        return fleet

    def require_ground(self, fleet: Fleet, text: str) -> None:
        """ConfigError for a loop that stands on nothing."""
        config.parse(text, fleet.config_path, ground=True)

    def keep(self, fleet: Fleet, text: str, now: Wall) -> None:
        """This declaration was taken in."""
        lastgood.keep(RealDisk(), fleet, text, now)

    def operator(self, fleet: Fleet) -> Operator:
        """What carries the verb out."""
        return Operator(fleet)
