"""opencode: one SQLite database for all projects, or the JSON that `opencode export` prints.

The database belongs to the running CLI. It is opened read-only and each look is one short query, so a
writer is never made to wait; a busy or half-made database is simply looked at again at the next sweep.
Reasoning stands beside output here; both are billed as output, so both are counted as output.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from fleet.transcripts.entries import Entry, Role, clock, content_text, short_json
from fleet.transcripts.usage import UNKNOWN, Counts, Four, Ledger, Source, number

KIND = "opencode"
_PATIENCE_S = 0.2
OVERLAP_MS = 60_000  # a row may be committed this much later than the time it bears


def homes(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where this CLI keeps its files, for a process with that environment."""
    home = env.get("HOME") or os.path.expanduser("~")
    data = env.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return (os.path.join(data, "opencode"),)


def database(home: str) -> str:
    """The store inside one of `homes`."""
    return os.path.join(home, "opencode.db")


def connect(path: str) -> sqlite3.Connection:
    """Read-only, whatever the file is; never creates one."""
    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=_PATIENCE_S)


def split(tokens: Any) -> Four:
    """Our four from a message's tokens."""
    if not isinstance(tokens, dict):
        return (0, 0, 0, 0)
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    output = number(tokens.get("output")) + number(tokens.get("reasoning"))
    return (number(tokens.get("input")), output, number(cache.get("write")), number(cache.get("read")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(raw: Any) -> dict[str, Any]:
    try:
        data = json.loads(raw) if isinstance(raw, str | bytes) else raw
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _time(info: dict[str, Any], key: str = "created") -> float | None:
    times = info.get("time")
    return clock(times.get(key)) if isinstance(times, dict) else None


def count_message(ledger: Ledger, source: int, ident: str, info: dict[str, Any]) -> None:
    """Pour one message's usage into the ledger; it may come again with more tokens."""
    counts = split(info.get("tokens"))
    if info.get("role") != "assistant" or not any(counts):
        return
    at = _time(info)
    day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") if at else UNKNOWN
    ledger.sources[source].records += 1
    ledger.add(source, f"opencode\x00{ident}", "", counts, _text(info.get("modelID")) or UNKNOWN, day)


@dataclass(slots=True)
class Store:
    """How far one database has been read."""

    path: str
    ledger: Ledger
    stamp: tuple[tuple[int, int, int], ...] = ()
    newest: int = 0  # the latest time_updated seen
    sources: dict[str, int] = field(default_factory=dict)

    def sweep(self) -> None:
        """Count what changed. Whatever cannot be read now is read at the next sweep."""
        stamp = _stamp(self.path)
        if not stamp or stamp == self.stamp:
            return
        try:
            with closing(connect(self.path)) as connection:
                self._sessions(connection)
                self._messages(connection)
        except sqlite3.Error:
            return
        self.stamp = stamp

    def _sessions(self, connection: sqlite3.Connection) -> None:
        query = "select id, directory, parent_id from session order by time_created"
        for ident, directory, parent in connection.execute(query):
            if ident not in self.sources:
                family = (
                    self.ledger.sources[self.sources[parent]].session if parent in self.sources else ident
                )
                found = Source(f"{self.path}#{ident}", KIND, family, _text(directory))
                self.sources[ident] = self.ledger.source(found)

    def _messages(self, connection: sqlite3.Connection) -> None:
        query = "select id, session_id, time_updated, data from message where time_updated >= ?"
        newest = self.newest
        for ident, session, updated, data in connection.execute(query, (self.newest - OVERLAP_MS,)):
            newest = max(newest, number(updated))
            if session in self.sources:
                count_message(self.ledger, self.sources[session], ident, _object(data))
        self.newest = newest


def _stamp(path: str) -> tuple[tuple[int, int, int], ...]:
    """Identity, size and time of the database and its log; empty when there is none."""
    found = []
    for name in (path, f"{path}-wal"):
        try:
            stat = os.stat(name)
        except OSError:
            continue
        found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def stored_entries(path: str, session: str = "") -> Iterator[Entry]:
    """The readable events of a database, all sessions or one, in the order they happened."""
    query = (
        "select m.id, m.data, p.data from message m join part p on p.message_id = m.id"
        " where ? in ('', m.session_id) order by m.time_created, m.id, p.id"
    )
    with closing(connect(path)) as connection:
        for ident, info, part in connection.execute(query, (session,)):
            yield from part_entries({"id": ident, **_object(info)}, _object(part))


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message as the database holds it now; it is written again until it is finished."""

    ident: str
    session: str
    directory: str
    updated: int
    info: dict[str, Any]
    data: dict[str, Any]

    @property
    def finished(self) -> bool:
        if self.data.get("type") == "tool":
            return _object(self.data.get("state")).get("status") in ("completed", "error")
        if self.info.get("role") == "assistant" and self.data.get("type") in ("text", "reasoning"):
            return _time(self.data, "end") is not None
        return True


def parts_since(connection: sqlite3.Connection, updated: int) -> Iterator[Part]:
    """Parts written or rewritten since then, in the order they happened."""
    query = (
        "select p.id, p.session_id, s.directory, p.time_updated, m.id, m.data, p.data"
        " from part p join message m on p.message_id = m.id join session s on p.session_id = s.id"
        " where p.time_updated >= ? order by m.time_created, m.id, p.id"
    )
    for ident, session, directory, changed, message, info, data in connection.execute(query, (updated,)):
        told = {"id": message, **_object(info)}
        yield Part(ident, session, _text(directory), number(changed), told, _object(data))


def exported_entries(document: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of what `opencode export` printed."""
    for message in document.get("messages") or ():
        info = _object(message.get("info")) if isinstance(message, dict) else {}
        for part in (message.get("parts") or ()) if info else ():
            yield from part_entries(info, _object(part))


def count_export(ledger: Ledger, path: str, document: dict[str, Any]) -> None:
    """Pour an exported session into the ledger."""
    info = _object(document.get("info"))
    session = _text(info.get("id"))
    source = ledger.source(Source(path, KIND, session, _text(info.get("directory"))))
    for index, message in enumerate(document.get("messages") or ()):
        told = _object(message.get("info")) if isinstance(message, dict) else {}
        count_message(ledger, source, _text(told.get("id")) or f"{path}:{index}", told)


def part_entries(info: dict[str, Any], part: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one part of a message."""
    kind, state = part.get("type"), _object(part.get("state"))
    speaker = Role.USER if info.get("role") == "user" else Role.ASSISTANT
    at = _time(part, "start") or _time(state, "start") or _time(info)
    counts = Counts(*split(info.get("tokens"))) if speaker is Role.ASSISTANT else None
    counts = counts if counts and counts.total else None
    model, ident = _text(info.get("modelID")), _text(info.get("id"))
    if kind == "text" and _text(part.get("text")):
        yield Entry(at, speaker, _text(part.get("text")), "", None, counts, model, ident)
    elif kind == "reasoning" and _text(part.get("text")):
        yield Entry(at, Role.THINKING, _text(part.get("text")), "", None, counts, model, ident)
    elif kind == "tool":
        call = short_json(state.get("input"))
        yield Entry(at, Role.TOOL, call, _text(part.get("tool")), None, counts, model, ident)
        failed = state.get("status") == "error"
        text = content_text(state.get("error") if failed else state.get("output"))
        if state.get("status") in ("completed", "error"):
            done = _time(state, "end") or at
            yield Entry(
                done, Role.RESULT, text, _text(part.get("tool")), len(text), failed=failed, message=ident
            )
    elif kind == "retry" and part.get("error"):
        yield Entry(
            at, Role.ERROR, json.dumps(part.get("error"), ensure_ascii=False), failed=True, message=ident
        )
