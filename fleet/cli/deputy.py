"""A watchdog on a verb's behalf: one that only looks, or, where none runs, one that acts for some agents.

The same code decides in all three, so a verb can never see or do anything that the watchdog would not.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet import config
from fleet.watchdog import Watchdog
from fleet.world.real import real_world
from fleet.world.reload import Settled

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.world.world import Helpers, World


def observer(fleet: Fleet, names: Collection[str] | None = None, world: World | None = None) -> Watchdog:
    """Looks and decides, writes and does nothing."""
    return _dog(fleet, names, world or real_world(fleet), None)


def deputy(fleet: Fleet, names: Collection[str], world: World, helpers: Helpers) -> Watchdog:
    """Acts for these agents only; the caller holds the watchdog lock."""
    return _dog(fleet, names, world, helpers)


def _dog(fleet: Fleet, names: Collection[str] | None, world: World, helpers: Helpers | None) -> Watchdog:
    dog = Watchdog(world, fleet.config_path, config.parse, helpers, observe=helpers is None)
    dog.reloader = Settled(fleet if names is None else only(fleet, names))
    why = dog.open()
    assert not why, why
    return dog


def only(fleet: Fleet, names: Collection[str]) -> Fleet:
    """The same fleet with just these members."""
    wanted = set(names)
    return replace(
        fleet,
        agents=tuple(a for a in fleet.agents if a.name in wanted),
        services=tuple(s for s in fleet.services if s.name in wanted),
    )
