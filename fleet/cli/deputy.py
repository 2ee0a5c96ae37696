"""A supervisor on a verb's behalf: one that only glances, or one that acts for some agents.

The same code decides in all three, so a verb can never see or do anything that the watchdog would not.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.supervisor.tick import Supervisor
from fleet.world.real import real_world
from fleet.world.reload import Settled

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.world.world import Helpers, World


def observer(fleet: Fleet, names: Collection[str] | None = None, world: World | None = None) -> Supervisor:
    """Looks and decides, writes and does nothing."""
    return _opened(fleet, names, world or real_world(fleet), None)


def deputy(fleet: Fleet, names: Collection[str], world: World, helpers: Helpers) -> Supervisor:
    """Acts for these agents only; the caller holds the watchdog lock."""
    acting = _opened(fleet, names, world, helpers)
    acting.begin()
    return acting


def _opened(
    fleet: Fleet, names: Collection[str] | None, world: World, helpers: Helpers | None
) -> Supervisor:
    config = Settled(fleet if names is None else only(fleet, names))
    made = Supervisor(world, config, helpers)
    why = made.open(repair=helpers is not None)
    assert not why, why
    return made


def only(fleet: Fleet, names: Collection[str]) -> Fleet:
    """The same fleet with just these members."""
    wanted = set(names)
    return replace(fleet, members=tuple(m for m in fleet.members if m.name in wanted))
