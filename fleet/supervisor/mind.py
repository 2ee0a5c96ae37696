"""What the supervisor holds from one tick to the next: memory of each agent, its clock, its troubles."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fleet.core.agent.decide import AgentDecision
from fleet.core.case import Case
from fleet.core.loop.loop_case import NO_LOOP, LoopShown
from fleet.core.memory import AgentMemory, FleetMemory
from fleet.core.model import Member
from fleet.core.words import EventType
from fleet.ports import Clock, Unavailable
from fleet.store.documents import StoreError
from fleet.times.moment import Moment, Steady, Wall

AT_ONCE = Steady(0.0)
NOT_BY_ITSELF = Steady(1e15)  # only something that happens makes it due
JUMP_S = 60.0  # clocks that differ by more than this have been moved, or we slept
CARRY_OVER_MAX_S = 8 * 86_400.0
TRACE_MAX = 4000  # characters of a traceback that go on record


@dataclass(slots=True)
class Mind:
    """Memory, the last case and the last decision, and when each agent is due."""

    fleet: FleetMemory = field(default_factory=FleetMemory)
    memories: dict[str, AgentMemory] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    decided: dict[str, AgentDecision] = field(default_factory=dict)
    wakes: dict[str, Steady] = field(default_factory=dict)  # when each is due, on the steady clock
    loop: LoopShown = NO_LOOP

    def due(self, specs: Iterable[Member], now: Moment) -> frozenset[str]:
        """Whose time has come."""
        wakes, steady = self.wakes, now.steady
        return frozenset([s.name for s in specs if wakes.get(s.name, AT_ONCE) <= steady])

    def wake(self, names: Iterable[str]) -> None:
        """These are due at once."""
        self.wakes.update(dict.fromkeys(names, AT_ONCE))


class Ages:
    """The steady clock, which ages are measured on, beside the wall clock.

    It runs with the monotonic clock, also over a restart of the watchdog; over one of the machine it carries
    on by the wall time that passed. It never goes back. When the two clocks part, or a tick is long overdue,
    the machine was suspended, the watchdog stopped, or the clock moved: then no agent was idle, and all ages
    start anew.
    """

    def __init__(self, clock: Clock, memory: FleetMemory) -> None:
        self._clock = clock
        wall = clock.wall()
        self._mono0 = clock.mono()
        self._steady0 = memory.steady + self._away(memory, wall, self._mono0)
        self._wall, self._mono = wall, self._mono0
        self._first = True

    @staticmethod
    def _away(memory: FleetMemory, wall: Wall, mono: float) -> float:
        """How long no watchdog looked: by the monotonic clock within one boot, else by the wall clock."""
        if not memory.wall:
            return 0.0
        away = mono - memory.mono if memory.mono and mono >= memory.mono else wall - memory.wall
        return min(max(0.0, away), CARRY_OVER_MAX_S)

    def now(self) -> Moment:
        """This moment."""
        return Moment(Steady(self._steady0 + self._clock.mono() - self._mono0), self._clock.wall())

    def jumped(self, expected: float) -> str:
        """What went wrong with time since the last call, if we meant to sleep that long; "" if nothing."""
        wall, mono = self._clock.wall(), self._clock.mono()
        gap = mono - self._mono
        drift = (wall - self._wall) - gap
        overslept = gap > 3 * max(expected, 1.0) + JUMP_S
        first, self._first = self._first, False
        self._wall, self._mono = wall, mono
        if first or not (abs(drift) > JUMP_S or overslept):
            return ""
        return f"clocks moved by {drift:.0f} s, away for {gap:.0f} s: ages start anew"


class Trouble:
    """What cannot be looked at or written now: named, told once, taken back when all goes well again.

    Each cause has a place of its own. On a full disk several steps fail at every tick, each with its own
    words: one place for all of them would make every tick news. `tell` puts a change on record, with a
    traceback or "".
    """

    def __init__(self, tell: Callable[[EventType, str, str], None], *, strict: bool = False) -> None:
        """`strict`: a step that fails ends the verb, which says why."""
        self._strict = strict
        self._tell = tell
        self._words: dict[str, str] = {}  # what goes wrong now, by cause
        self._told: set[str] = set()  # causes on record since all was well
        self._fresh: set[str] = set()  # causes of this tick
        self._steps: set[str] = set()  # causes that only their own success ends

    @property
    def now(self) -> str:
        """In what way we are degraded; empty: not at all."""
        return "; ".join(f"{cause}: {why}" for cause, why in self._words.items())

    def begin(self) -> None:
        """A new tick: nothing has gone wrong in it yet."""
        self._fresh.clear()

    def degrade(self, cause: str, why: str) -> None:
        """Something went wrong in this tick; the same cause again is no news."""
        self._fresh.add(cause)
        self._words[cause] = why
        if cause not in self._told:
            self._told.add(cause)
            self._tell(EventType.WATCHDOG_DEGRADED, f"{cause}: {why}", "")

    def fault(self, cause: str, fault: Exception) -> None:
        """A fault of our own, with where it happened."""
        trace = "".join(traceback.format_exception(fault))[-TRACE_MAX:]
        self._tell(EventType.WATCHDOG_STEP_FAILED, f"{cause}: {fault!r}", trace)

    def recover(self) -> None:
        """A tick is over; if no cause is left, we are well."""
        self._words = {c: why for c, why in self._words.items() if c in self._fresh or c in self._steps}
        if self._told and not self._words:
            self._told.clear()
            self._tell(EventType.WATCHDOG_RECOVERED, "everything can be looked at and written again", "")

    def guard(self, cause: str, step: Callable[[], object], *, comes_again: bool = True) -> None:
        """One step that fails must not take the others with it. One that comes again ends its own trouble."""
        if self._strict:
            step()
            return
        try:
            step()
        except (OSError, StoreError, Unavailable) as error:
            if comes_again:
                self._steps.add(cause)
            self.degrade(cause, str(error))
        except Exception as fault:
            if comes_again:
                self._steps.add(cause)
            if cause not in self._told:
                self.fault(cause, fault)
            self.degrade(cause, repr(fault))
        else:
            if cause in self._steps:
                self._steps.discard(cause)
                self._words.pop(cause, None)
