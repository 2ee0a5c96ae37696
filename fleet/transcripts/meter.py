"""The usage of a fleet's agents, kept up to date at the price of a stat a file.

A Meter owns one Ledger and remembers how far it has read each file and database. `sweep` looks for what
is new; `tally` says whose it is. Everything can be thrown away at any time: a new Meter reads the same
files and arrives at the same figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fleet.transcripts import claude, codex, opencode
from fleet.transcripts.finder import Finder
from fleet.transcripts.places import SHARED, Wanted, describe, mentions, owner
from fleet.transcripts.tail import BLOCK, Feed, Ident, Tail, ident_of
from fleet.transcripts.usage import Cells, Ledger, Transcript, add_cells


@dataclass(frozen=True, slots=True)
class Tally:
    """Who used what. None: the agent has no transcript, which is not the same as having used nothing."""

    agents: dict[str, Cells | None]
    shared: Cells = field(default_factory=dict)  # of transcripts that several agents could have written


@dataclass(slots=True)
class _Follow:
    tail: Tail
    feed: Feed
    restarted: Callable[[], None] | None
    source: int


class Meter:
    """Reads transcripts as they grow."""

    def __init__(self, *, fast: bool = True) -> None:
        self.ledger = Ledger()
        self._decode = _decoder(fast=fast)
        self._buffer = bytearray(BLOCK)
        self._follows: dict[Ident, _Follow] = {}
        self._finder = Finder(lambda ident: ident in self._follows)
        self._stores: dict[str, opencode.Database] = {}
        self._signed: set[tuple[str, str]] = set()

    def sweep(self, wanted: Sequence[Wanted], budget: int | None = None) -> bool:
        """Read what is new, at most about `budget` bytes of it. True when nothing was left unread."""
        spent = 0
        for path, kind, stat in self._finder.files(wanted):
            if budget is not None and spent >= budget:
                return False
            spent += self._read(path, kind, stat)
        for database in dict.fromkeys(
            opencode.database(home) for agent in wanted if agent.kind == opencode.KIND for home in agent.homes
        ):
            self._stores.setdefault(database, opencode.Database(database, self.ledger)).sweep()
        return True

    def read_file(self, path: str, kind: str) -> None:
        """One file by itself, whoever wrote it."""
        try:
            stat = os.stat(path)
        except OSError:
            return
        if kind == opencode.KIND:
            self._stores.setdefault(path, opencode.Database(path, self.ledger)).sweep()
        else:
            self._read(path, kind, stat)

    def tally(self, wanted: Sequence[Wanted]) -> Tally:
        """Whose the figures are, by what is known of sessions and directories now."""
        agents: dict[str, Cells | None] = dict.fromkeys((agent.name for agent in wanted), None)
        shared: Cells = {}
        for source, cells in zip(self.ledger.sources, self.ledger.by_source(), strict=True):
            name = owner(source, wanted, self._mentions)
            if name == SHARED:
                add_cells(shared, cells)
            elif name:
                heap = agents.get(name)
                if heap is None:
                    heap = agents[name] = {}
                add_cells(heap, cells)
        return Tally(agents, shared)

    def _mentions(self, source: Transcript, signature: str) -> bool:
        """A signature once found stays found; one not yet written may still come."""
        if (source.path, signature) not in self._signed and mentions(source, signature):
            self._signed.add((source.path, signature))
        return (source.path, signature) in self._signed

    def _read(self, path: str, kind: str, stat: os.stat_result) -> int:
        ident = ident_of(stat)
        follow = self._follows.get(ident)
        if follow is None:
            follow = self._follows[ident] = self._follow(path, kind, ident)
        if not follow.tail.changed(stat):
            return 0
        follow.tail.path = path
        source = self.ledger.sources[follow.source]
        if not source.cwd:
            fresh = describe(path, kind)
            source.session, source.cwd = fresh.session, fresh.cwd
        return follow.tail.read(follow.feed, buffer=self._buffer, restarted=follow.restarted)

    def _follow(self, path: str, kind: str, ident: Ident) -> _Follow:
        source = self.ledger.source(describe(path, kind))
        if kind == codex.KIND:
            thread = codex.Thread(self.ledger, source)
            return _Follow(Tail(path, ident), thread.feeder(), thread.restart, source)
        return _Follow(
            Tail(path, ident), claude.feeder(self.ledger, source, ident, self._decode), None, source
        )


def _decoder(*, fast: bool) -> claude.Decode:
    if fast:
        try:
            return claude.quick()
        except ImportError:
            pass  # the standard library gives the same figures, more slowly
    return claude.lenient
