"""The tokens of each phase, on record: the one place where the supervisor meets the bookkeeping of tokens."""

from __future__ import annotations

from fleet.core.loop.loop_case import LoopShown
from fleet.core.model import Fleet
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.world import World
from fleet.times.moment import LONG_AGO, Steady, Wall
from fleet.tokens.books import PhaseMeter
from fleet.tokens.files import conversations, wanted_of
from fleet.tokens.price import PriceBook
from fleet.tokens.tokenlog import Record, TokenLog

COUNT_EVERY_S = 10.0


class Bookkeeper:
    """One project's books of tokens: opened when a phase begins, closed when it ends.

    Reading transcripts costs a stat sweep when nothing is new. It is done when the phase changes and every
    few seconds otherwise, a slice at a time, so that catching up with an old project never delays a heal.
    """

    def __init__(self, world: World, house: House) -> None:
        self._world = world
        self._house = house
        self._meter: PhaseMeter | None = None
        self._phase: str | None = None
        self._noted = LONG_AGO

    def note(
        self, fleet: Fleet, loop: LoopShown, *, limited: bool, steady: Steady, wall: Wall
    ) -> list[Record]:
        """Bring the books up to date; returns the records of phases that are over."""
        if not fleet.watchdog.log_tokens or fleet.loop is None or loop.held:
            return []
        phase = None if loop.complete else loop.phase or None
        if phase == self._phase and steady - self._noted < COUNT_EVERY_S:
            return []
        if self._meter is None:
            log = TokenLog(fleet.log_dir, self._world.disk)
            self._meter = PhaseMeter(self._house.store, log, PriceBook(fleet.prices, library=False))
        self._phase, self._noted = phase, steady
        wanted = wanted_of(fleet, self._world.host.environ, conversations(fleet, self._world.disk.read))
        place = PhaseBook(self._house.store, self._world.locks.state, fleet.loop.state_file).read().place
        began = place.since if place is not None else None
        return self._meter.observe(phase, wanted, wall, limited=limited, changed_at=began)
