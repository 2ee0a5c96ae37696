"""opencode: one SQLite database for all projects, or the JSON that `opencode export` prints.

Older versions kept a JSON file a message (`storage/message/<session>/<message>.json`); those are counted too.

The database belongs to the running CLI. It is opened read-only and each look is one short query, so a
writer is never made to wait; a busy or half-made database is simply looked at again at the next sweep.
Reasoning stands beside output here; both are billed as output, so both are counted as output.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fleet import reading
from fleet.backends.ledger import UNKNOWN, Counts, Four, Ledger, Transcript, number
from fleet.backends.readers import (
    DocumentFormat,
    Entry,
    Role,
    StoreFormat,
    UsageReader,
    clock,
    content_text,
    day_of,
    object_of,
    told_call,
)
from fleet.backends.readers import text_of as _text

if TYPE_CHECKING:
    import sqlite3

KIND = "opencode"
EXPORT = "opencode-export"
MESSAGE = "opencode-message"  # one message of the store of older versions, a file each
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
    """Read-only, whatever the file is; never creates one, and never waits for a pipe in its place."""
    import sqlite3

    try:
        reading.refuse_others(os.stat(path).st_mode, path)
    except OSError as error:
        raise sqlite3.OperationalError(f"unable to open database file: {error.strerror}") from None
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=_PATIENCE_S)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # one bad row must not hide the rest
    return connection


def split(tokens: Any) -> Four:
    """Our four from a message's tokens."""
    if not isinstance(tokens, dict):
        return (0, 0, 0, 0)
    cache = object_of(tokens.get("cache"))
    given, output = number(tokens.get("input")), number(tokens.get("output"))
    write, read = number(cache.get("write")), number(cache.get("read"))
    reasoning, total = number(tokens.get("reasoning")), number(tokens.get("total"))
    if given + output + write + read != total:  # else some provider told reasoning as part of its output
        output += reasoning
    return (given, output, write, read)


def _time(info: dict[str, Any], key: str = "created") -> float | None:
    times = info.get("time")
    return clock(times.get(key)) if isinstance(times, dict) else None


def count_message(ledger: Ledger, source: int, ident: str, info: dict[str, Any]) -> None:
    """Pour one message's usage into the ledger; it may come again with more tokens."""
    counts = split(info.get("tokens"))
    if info.get("role", "assistant") != "assistant" or not any(counts):
        return
    day = day_of(object_of(info.get("time")).get("created"))
    ledger.add(source, f"opencode\x00{ident}", "", counts, _model(info) or UNKNOWN, day)


def _model(info: dict[str, Any]) -> str:
    """The model's name, wherever that version keeps it."""
    model = object_of(info.get("model"))
    return _text(info.get("modelID")) or _text(model.get("modelID")) or _text(model.get("id"))


@dataclass(slots=True)
class Database:
    """How far one database has been read."""

    path: str
    ledger: Ledger
    stamp: tuple[tuple[int, int, int], ...] = ()
    newest: dict[str, int] = field(default_factory=dict)  # the latest time_updated seen, by table
    sources: dict[str, int] = field(default_factory=dict)

    def sweep(self) -> None:
        """Count what changed. Whatever cannot be read now is read at the next sweep."""
        stamp = _stamp(self.path)
        if not stamp or stamp == self.stamp:
            return
        import sqlite3

        try:
            with closing(connect(self.path)) as connection:
                if {"directory", "parent_id"} <= _columns(connection, "session"):
                    self._sessions(connection)
                for table in ("message", "session_message"):
                    if columns := _columns(connection, table):
                        self._messages(connection, table, columns)
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
                self._source(ident, family, _text(directory))

    def _source(self, ident: str, family: str, directory: str = "") -> int:
        found = Transcript(f"{self.path}#{ident}", KIND, family, directory)
        self.sources[ident] = number_ = self.ledger.source(found)
        return number_

    def _messages(self, connection: sqlite3.Connection, table: str, columns: set[str]) -> None:
        updated = "time_updated" if "time_updated" in columns else "0"
        role = "type" if "type" in columns else "null"
        query = f"select id, session_id, {updated}, {role}, data from {table} where {updated} >= ?"  # noqa: S608
        newest = self.newest.get(table, 0)
        since = newest - OVERLAP_MS if newest else 0
        for ident, session, changed, kind, data in connection.execute(query, (since,)):
            newest = max(newest, number(changed))
            source = self.sources.get(session)
            if source is None:  # its session is gone; what it used is not
                source = self._source(session, session)
            count_message(self.ledger, source, ident, {**({"role": kind} if kind else {}), **object_of(data)})
        self.newest[table] = newest


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """What a table holds in this version; nothing when there is no such table."""
    return {row[1] for row in connection.execute(f"pragma table_info({table})")}


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


def stored_entries(path: str) -> Iterator[Entry]:
    """The readable events of a database, of all sessions, in the order they happened."""
    query = (
        "select m.id, m.data, p.data from message m join part p on p.message_id = m.id"
        " order by m.time_created, m.id, p.id"
    )
    import sqlite3

    try:
        with closing(connect(path)) as connection:
            for ident, info, part in connection.execute(query):
                yield from part_entries({"id": ident, **object_of(info)}, object_of(part))
    except sqlite3.Error as fault:
        raise ValueError(f"cannot be read as opencode's database: {fault}") from None


def is_readable(path: str) -> bool:
    """Whether it is a database at all; one that is busy is."""
    import sqlite3

    try:
        with closing(connect(path)) as connection:
            connection.execute("select name from sqlite_master limit 1").fetchone()
    except sqlite3.OperationalError as fault:
        return "locked" in str(fault) or "busy" in str(fault)
    except sqlite3.Error:
        return False
    return True


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
            return object_of(self.data.get("state")).get("status") in ("completed", "error")
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
        told = {"id": message, **object_of(info)}
        yield Part(ident, session, _text(directory), number(changed), told, object_of(data))


def exported_entries(document: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of what `opencode export` printed."""
    for message in document.get("messages") or ():
        info = object_of(message.get("info")) if isinstance(message, dict) else {}
        for part in (message.get("parts") or ()) if info else ():
            yield from part_entries(info, object_of(part))


def count_export(ledger: Ledger, path: str, document: dict[str, Any]) -> None:
    """Pour an exported session into the ledger."""
    info = object_of(document.get("info"))
    session = _text(info.get("id"))
    source = ledger.source(Transcript(path, KIND, session, _text(info.get("directory"))))
    for index, message in enumerate(document.get("messages") or ()):
        told = object_of(message.get("info")) if isinstance(message, dict) else {}
        count_message(ledger, source, _text(told.get("id")) or f"{path}:{index}", told)


def count_file(ledger: Ledger, path: str, info: dict[str, Any]) -> None:
    """Pour one message that is a file of its own into the ledger."""
    source = ledger.source(Transcript(path, KIND, _text(info.get("sessionID"))))
    count_message(ledger, source, _text(info.get("id")) or path, info)


def part_entries(info: dict[str, Any], part: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one part of a message."""
    kind, state = part.get("type"), object_of(part.get("state"))
    speaker = Role.USER if info.get("role") == "user" else Role.ASSISTANT
    at = _time(part, "start") or _time(state, "start") or _time(info)
    counts = Counts(*split(info.get("tokens"))) if speaker is Role.ASSISTANT else None
    counts = counts if counts and counts.total else None
    model, ident = _model(info), _text(info.get("id"))
    if kind == "text" and _text(part.get("text")):
        yield Entry(at, speaker, _text(part.get("text")), "", None, counts, model, ident)
    elif kind == "reasoning" and _text(part.get("text")):
        yield Entry(at, Role.THINKING, _text(part.get("text")), "", None, counts, model, ident)
    elif kind == "tool":
        call, more = told_call(state.get("input"))
        yield Entry(at, Role.TOOL, call, _text(part.get("tool")), None, counts, model, ident, more=more)
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


def _first_words(source: Transcript) -> bytes:
    import sqlite3

    path, _, session = source.path.rpartition("#")
    query = "select data from part where session_id = ? order by time_created limit 20"
    try:
        with closing(connect(path)) as connection:
            rows = connection.execute(query, (session,)).fetchall()
    except sqlite3.Error:
        return b""
    return b"\n".join(str(row[0]).encode() for row in rows)


def _news(path: str, mark: Any) -> tuple[list[tuple[Transcript, list[Entry]]], Any] | None:
    """What was finished since the mark; nothing while the database cannot be read."""
    import sqlite3

    since, told = mark or (0, [])
    try:
        with closing(connect(path)) as connection:
            parts = list(parts_since(connection, int(since)))
    except sqlite3.Error:
        return None
    seen, found = set(told), []
    for part in parts:
        if part.finished and part.ident not in seen:
            seen.add(part.ident)
            source = Transcript(f"{path}#{part.session}", KIND, part.session, part.directory)
            found.append((source, list(part_entries(part.info, part.data))))
    # Next time from the first part still being written; what was told by then is not told again.
    newest = max((part.updated for part in parts), default=since) - OVERLAP_MS
    first = max(since, min([newest, *(part.updated for part in parts if not part.finished)]))
    return found, [first, [p.ident for p in parts if p.ident in seen and p.updated >= first]]


def _is_export(raw: bytes) -> bool:
    return b'"messages"' in raw and b'"info"' in raw and b'"projectID"' in raw


def _is_message(raw: bytes) -> bool:
    return b'"sessionID"' in raw and b'"role"' in raw and b'"messageID"' not in raw


READER = UsageReader(
    homes=homes,
    places=lambda home: (database(home), os.path.join(home, "storage", "message")),
    formats=(
        StoreFormat(
            name=KIND,
            called="opencode's database",
            marks=4,
            magic=b"SQLite format 3\x00",
            path=database,
            open=lambda path, ledger: Database(path, ledger).sweep,
            entries=stored_entries,
            news=_news,
            opening=_first_words,
            is_readable=is_readable,
        ),
        DocumentFormat(
            name=EXPORT,
            called="what `opencode export` prints",
            marks=4,
            is_line=lambda line: "messages" in line and "info" in line,
            is_opening=_is_export,
            count=count_export,
            entries=exported_entries,
        ),
        DocumentFormat(
            name=MESSAGE,
            called="",
            marks=3,
            is_line=lambda line: "sessionID" in line and "role" in line,
            is_opening=_is_message,
            count=count_file,
        ),
    ),
)
