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
    from fleet.world.world import World


def observer(fleet: Fleet, names: Collection[str] | None = None, world: World | None = None) -> Watchdog:
    """Looks and decides, writes and does nothing."""
    return _dog(fleet, names, world, observe=True)


def deputy(fleet: Fleet, names: Collection[str], world: World | None = None) -> Watchdog:
    """Acts for these agents only; the caller holds the watchdog lock."""
    return _dog(fleet, names, world, observe=False)


def _dog(fleet: Fleet, names: Collection[str] | None, world: World | None, *, observe: bool) -> Watchdog:
    dog = Watchdog(world or real_world(fleet), fleet.config_path, config.parse, observe=observe)
    dog.reloader = Settled(fleet if names is None else only(fleet, names))
    why = dog.open()
    assert not why, why
    return dog


def only(fleet: Fleet, names: Collection[str]) -> Fleet:
    """The same fleet with just these members."""
    wanted = set(names)
    return replace(fleet, members=tuple(m for m in fleet.members if m.name in wanted))
