"""Where the view's facts come from besides `status`: the file, the events, and the token records."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fleet import config
from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.store.documents import Store, StoreError
from fleet.store.eventlog import Bookmark, end_of, read_on
from fleet.supervisor.declaration import attend
from fleet.tokens.books import PhaseMeter
from fleet.tokens.meter import Meter
from fleet.tokens.places import wanted_of
from fleet.tokens.price import PriceBook
from fleet.tokens.tokenlog import TokenLog


class Feed:
    """Remembers how far each of them was read."""

    def __init__(self, fleet: Fleet, wall: Callable[[], float]) -> None:
        self._fleet = fleet
        self._wall = wall
        self._config = self._mark()
        self._place: Bookmark | None = None
        self._meter = Meter()

    def fresh(self) -> Fleet:
        """The declaration as it is now, or the last good one."""
        mark = self._mark()
        if mark != self._config:
            self._config = mark
            with contextlib.suppress(config.ConfigError, OSError):
                self._fleet = attend(self._fleet.config_path).fleet
        return self._fleet

    def events(self, first: int) -> Sequence[Mapping[str, Any]]:
        """What was recorded since the last call; at first the newest there are."""
        path = os.path.join(self._fleet.log_dir, "events.jsonl")
        if self._place is None:
            end = end_of(path)
            found, self._place = read_on(path, Bookmark(end.inode))
            return found[-first:]
        found, self._place = read_on(path, self._place)
        return found

    def used(self, sessions: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, float | None]]:
        """Tokens and money of every agent: what is on record, and the phase under way."""
        if not self._fleet.watchdog.log_tokens:
            return {}
        log = TokenLog(os.path.join(self._fleet.log_dir, "token-log.jsonl"))
        store = Store(RealDisk(), os.path.join(self._fleet.log_dir, "state"), self._wall, repair=False)
        records = list(log.records())
        with contextlib.suppress(OSError, StoreError):
            meter = PhaseMeter(store, log, PriceBook(self._fleet.prices, library=False), meter=self._meter)
            known = {name: list(ids) for name, ids in sessions.items()}
            live = meter.live(wanted_of(self._fleet, os.environ, known), self._wall())
            records += [live] if live else []
        return summed(records)

    def _mark(self) -> object:
        try:
            stat = os.stat(self._fleet.config_path)
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


def summed(records: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float | None]]:
    """By agent; money is unknown as soon as a part of it is."""
    found: dict[str, tuple[int, float | None]] = {}
    for record in records:
        for name, column in (record.get("agents") or {}).items():
            if isinstance(column, dict):
                tokens, cost = found.get(name, (0, 0.0))
                more = column.get("cost")
                whole = None if cost is None or more is None else cost + float(more)
                found[name] = (tokens + int(column.get("total") or 0), whole)
    return found
