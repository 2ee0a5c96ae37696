"""What the operator wants of each agent, apart from what the file declares.

The rule, once: an agent with an entry is wanted as the entry says. One without an entry is wanted when it
is enabled, but only by a bare `up`: `up` writes an entry for everything it starts, and the watchdog heals
only what has an entry that says up. So an agent newly added to a running fleet waits for its `up`, `down`
is remembered through restarts and reboots, and nothing is restarted that the operator stopped.

Every change makes a new generation; the process that acts on one can see that it was overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from fleet.times.moment import UNNAMED, Wall


class Want(StrEnum):
    """The two things an operator can want."""

    UP = "up"
    DOWN = "down"


class Hold(NamedTuple):
    """A verb is at work on this agent; the watchdog leaves it alone until that ends."""

    pid: int
    start: int  # with the pid, the identity of the holder: a hold ends with its process
    until: Wall  # it ends then in any case
    why: str = ""


class Desire(NamedTuple):
    """One agent or service."""

    want: Want
    paused: bool = False  # supervised, but nothing is typed into it
    frozen: bool = False  # left exactly as it is
    hold: Hold | None = None
    until: Wall = UNNAMED  # when a pause ends by itself; 0.0: never
    run: int = 0  # how often a run was called for: one that was made for an earlier call is replaced
    task: str = ""  # the call of completion that was the last of these
    tries: int = 0  # fresh tries: how often its tallies and verdicts were to be forgotten ...
    resets: int = 0  # ... and its limit window with them

    def left_alone(self, wall: Wall) -> bool:
        """Is it paused or frozen at that time?"""
        return (self.paused or self.frozen) and not self.over(wall)

    def over(self, wall: Wall) -> bool:
        """Has a pause come to its end, and is still on record?"""
        return (self.paused or self.frozen) and UNNAMED < self.until <= wall


class Desired(NamedTuple):
    """All entries, and how often they changed."""

    generation: int
    entries: Mapping[str, Desire]
    amnesty: int = 0  # how often the fleet's own budget of restarts was to be forgotten

    def wants_up(self, name: str) -> bool:
        """Whether the watchdog may bring it back."""
        entry = self.entries.get(name)
        return entry is not None and entry.want is Want.UP

    def set(self, names: Iterable[str], **changes: Any) -> Desired:
        """A new generation in which these names have these values; other values stay."""
        new = dict(self.entries)
        for name in names:
            entry = new.get(name, Desire(Want.UP))._replace(**changes)
            new[name] = entry if entry.paused or entry.frozen else entry._replace(until=UNNAMED)
        return self._replace(generation=self.generation + 1, entries=new)

    def pardon(self, names: Iterable[str], *, window: bool, budget: bool) -> Desired:
        """A new generation in which these are to be tried as if they had never failed."""
        new = dict(self.entries)
        for name in names:
            entry = new.get(name)
            if entry is not None and window:
                new[name] = entry._replace(resets=entry.resets + 1)
            elif entry is not None:
                new[name] = entry._replace(tries=entry.tries + 1)
        return Desired(self.generation + 1, new, self.amnesty + budget)

    def release(self, hold: Hold) -> Desired:
        """A new generation without this hold; one that another verb has taken since stays."""
        return self.set([name for name, entry in self.entries.items() if entry.hold == hold], hold=None)

    def call(self, names: Iterable[str]) -> Desired:
        """A new generation in which a new run of each of these is called for."""
        new = dict(self.entries)
        for name in names:
            entry = new.get(name, Desire(Want.UP))
            new[name] = entry._replace(run=entry.run + 1)
        return self._replace(generation=self.generation + 1, entries=new)

    def pauses_over(self, wall: Wall) -> tuple[str, ...]:
        """Whose pause has ended by itself."""
        return tuple(name for name, entry in self.entries.items() if entry.over(wall))

    def end_pauses(self, names: Iterable[str], wall: Wall) -> Desired:
        """A new generation in which those of the names whose pause is over go on; others stay as they are."""
        return self.set(frozenset(names) & frozenset(self.pauses_over(wall)), paused=False, frozen=False)


NOTHING = Desired(0, {})
