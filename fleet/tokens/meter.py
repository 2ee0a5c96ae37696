"""The usage of a fleet's agents, kept up to date at the price of one stat per file.

A Meter owns one Ledger and remembers how far it has read each file and database. `sweep` reads what is new;
`tally` says which agent used it. A Meter can be thrown away at any time: a new one reads the same files and
arrives at the same figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fleet.backends.ledger import Cells, Ledger, Transcript, add_cells
from fleet.backends.readers import StoreFormat, Wanted, lines_of, store_of, stores
from fleet.reading import BLOCK, Feed, Ident, Tail, ident_of
from fleet.tokens.files import SHARED, Finder, describe, mentions, owner


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
        self._fast = fast
        self._buffer = bytearray(BLOCK)
        self._follows: dict[Ident, _Follow] = {}
        self._finder = Finder(lambda ident: ident in self._follows)
        self._stores: dict[str, Callable[[], None]] = {}
        self._signed: set[tuple[str, str]] = set()

    def sweep(self, wanted: Sequence[Wanted], budget: int | None = None) -> bool:
        """Read what is new, at most about `budget` bytes of it. True when nothing was left unread."""
        spent = 0
        for path, kind, stat in self._finder.files(wanted):
            if budget is not None and spent >= budget:
                return False
            spent += self._read(path, kind, stat)
        for database, store in stores(wanted).items():
            self._sweep(database, store)
        return True

    def read_file(self, path: str, kind: str) -> None:
        """One file by itself, of any writer."""
        try:
            stat = os.stat(path)
        except OSError:
            return
        store = store_of(kind)
        if store:
            self._sweep(path, store)
        else:
            self._read(path, kind, stat)

    def _sweep(self, path: str, store: StoreFormat) -> None:
        if path not in self._stores:
            self._stores[path] = store.open(path, self.ledger)
        self._stores[path]()

    def tally(self, wanted: Sequence[Wanted]) -> Tally:
        """The figures of each agent, by what is known of sessions and directories now."""
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
        lines = lines_of(kind)
        assert lines is not None, f"{path}: {kind} is no format of lines"
        feed, restarted = lines.count(self.ledger, source, ident, self._fast)
        return _Follow(Tail(path, ident), feed, restarted, source)
