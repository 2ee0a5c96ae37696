"""Which tokens belong to which phase: a baseline when it begins, the difference when it ends.

Level-triggered: `observe` is told which phase is running and makes the books agree, whether a phase has
just begun, goes on, or ended while no watchdog ran. The order of writes makes every crash harmless: the
finished record is saved with the books, then appended to the log, then struck from the books; a restart
finds it still there and appends it if, and only if, the log does not have it yet.

Baselines are kept by day, so that an old transcript which the CLI throws away meanwhile takes nothing
from what the phase used; days long past are kept as one. The owner of a session is remembered too: an agent
that starts a new conversation keeps the old one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from fleet.backends.ledger import Cells, add_cells, cells_beyond
from fleet.backends.readers import Wanted
from fleet.core.codec import from_plain, to_plain
from fleet.tokens.meter import Meter, Tally
from fleet.tokens.price import PriceBook
from fleet.tokens.tokenlog import Record, TokenLog, make_record

BOOKS = "tokens"  # the name of our document in the store
SLICE = 32 << 20  # bytes a tick may spend on catching up with transcripts
_KEEP_CLAIMS = 2_000
_DAYS_APART_S = 7 * 86_400.0
_EARLIER = "earlier"


class Documents(Protocol):
    """Documents that survive us."""

    def load(self, name: str) -> dict[str, Any] | None: ...

    def save(self, name: str, data: dict[str, Any]) -> None: ...


class Open(NamedTuple):
    """The phase run under way. `limited_since` None: no agent is limited at the moment."""

    run: str
    phase: str
    start: float
    base: Mapping[str, Cells | None]
    shared: Cells
    limited_s: float = 0.0
    limited_since: float | None = None

    def limited_until(self, now: float) -> float:
        running = now - self.limited_since if self.limited_since is not None else 0.0
        return self.limited_s + max(0.0, running)


class PhaseMeter:
    """Keeps the books of the running phase, and writes one record when it is over."""

    def __init__(
        self, store: Documents, log: TokenLog, prices: PriceBook, *, meter: Meter | None = None
    ) -> None:
        self._store = store
        self._log = log
        self._prices = prices
        self._meter = meter or Meter()
        self._books: dict[str, Any] | None = None

    def observe(
        self,
        phase: str | None,
        wanted: Sequence[Wanted],
        now: float,
        *,
        limited: bool = False,
        changed_at: float | None = None,
        budget: int | None = SLICE,
    ) -> list[Record]:
        """Make the books agree with the phase that runs now (None: none does). Returns what was written.

        `changed_at` is when the running phase began, where that is known: the one before it then ends at that
        moment instead of now, also if no watchdog ran. `limited`: some agent waits for its usage limit.
        """
        written = self.recover()
        wanted = self._with_claims(wanted)
        if not self._meter.sweep(wanted, budget):
            return written  # still catching up; nothing can be said yet
        running = self.running()
        if running is not None and running.phase != phase:
            ended = changed_at if changed_at is not None and running.start <= changed_at <= now else now
            written += self._end(running, ended, wanted)
            running = None
        if phase is not None:
            running = running or self._begin(phase, now, wanted)
            self._save(open=to_plain(self._watch(running, wanted, now, limited=limited)))
        return written

    def _begin(self, phase: str, now: float, wanted: Sequence[Wanted]) -> Open:
        """Take the baseline."""
        tally = self._tally(wanted)
        base = {name: _fold(cells, now) for name, cells in tally.agents.items()}
        return Open(secrets.token_hex(8), phase, now, base, _fold(tally.shared, now) or {})

    def _end(self, running: Open, now: float, wanted: Sequence[Wanted]) -> list[Record]:
        """Close the run and write its record, once."""
        record = self._record(running, now, self._tally(wanted))
        self._save(open=None, pending=[*self._load().get("pending", ()), record])
        return self.recover()

    def recover(self) -> list[Record]:
        """Append records that were finished but may not have reached the log. Safe at any moment."""
        pending = self._load().get("pending") or []
        written = [record for record in pending if self._log.write(record)]
        if pending:
            self._save(pending=[])
        return written

    def live(self, wanted: Sequence[Wanted], now: float) -> Record | None:
        """The record the running phase would get if it ended now. Changes nothing."""
        running = self.running()
        if running is None:
            return None
        wanted = self._with_claims(wanted, keep=False)
        return {**self._record(running, now, self._tally(wanted)), "live": True}

    def running(self) -> Open | None:
        """The phase run under way, as the books have it."""
        found = self._load().get("open")
        return from_plain(Open, found) if found else None

    def _tally(self, wanted: Sequence[Wanted]) -> Tally:
        self._meter.sweep(wanted)
        return self._meter.tally(wanted)

    def _record(self, running: Open, now: float, tally: Tally) -> Record:
        used: dict[str, Cells | None] = {}
        for name, cells in tally.agents.items():
            folded = _fold(cells, running.start)
            known = folded is not None and name in running.base
            used[name] = cells_beyond(folded or {}, running.base[name] or {}) if known else None
        return make_record(
            run=running.run,
            phase=running.phase,
            start=running.start,
            end=now,
            limited_s=running.limited_until(now),
            used=used,
            shared=cells_beyond(_fold(tally.shared, running.start) or {}, running.shared),
            prices=self._prices,
        )

    def _watch(self, running: Open, wanted: Sequence[Wanted], now: float, *, limited: bool) -> Open:
        """Mind the limit clock, and give an agent that joined late a baseline of its own."""
        if limited and running.limited_since is None:
            running = running._replace(limited_since=now)
        elif not limited and running.limited_since is not None:
            running = running._replace(limited_s=running.limited_until(now), limited_since=None)
        if all(agent.name in running.base for agent in wanted):
            return running
        tally = self._meter.tally(wanted).agents
        late = {name: _fold(cells, running.start) for name, cells in tally.items()}
        return running._replace(base={**late, **running.base})

    def _with_claims(self, wanted: Sequence[Wanted], *, keep: bool = True) -> list[Wanted]:
        """Agents with every session they are known to have had."""
        claims: dict[str, str] = dict(self._load().get("claims") or {})
        fresh = {
            session: agent.name
            for agent in wanted
            for session in sorted(agent.sessions)
            if session not in claims
        }
        if fresh:
            claims.update(fresh)
            if keep:
                self._save(claims=dict(list(claims.items())[-_KEEP_CLAIMS:]))
        had: dict[str, set[str]] = {}
        for session, name in claims.items():
            had.setdefault(name, set()).add(session)
        return [replace(a, sessions=a.sessions | frozenset(had.get(a.name, ()))) for a in wanted]

    def _load(self) -> dict[str, Any]:
        if self._books is None:
            self._books = self._store.load(BOOKS) or {}
        return self._books

    def _save(self, **changes: Any) -> None:
        books = {**self._load(), **changes}
        if books != self._books:
            self._store.save(BOOKS, books)
            self._books = books


def _fold(cells: Cells | None, start: float) -> Cells | None:
    """The same figures with all days well before `start` put together: the books stay small."""
    if cells is None:
        return None
    first = datetime.fromtimestamp(start - _DAYS_APART_S, UTC).strftime("%Y-%m-%d")
    folded: Cells = {}
    for (model, day), counts in cells.items():
        add_cells(folded, {(model, _EARLIER if day < first else day): counts})
    return folded
