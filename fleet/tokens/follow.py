"""Entries of transcripts: of a whole file, or as they are written, for any number of files at once.

Where each file was left can be kept (`marks`) and given back, so that a follower which is restarted goes
on instead of telling everything again. `CleanLogs` does that for <log_dir>/clean/<name>.log: it saves the
marks after the logs, so that a crash in between repeats a few lines and loses none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fleet.backends.ledger import Transcript
from fleet.backends.readers import DocumentFormat, Entry, StoreFormat, Wanted, formats, lines_of, stores
from fleet.reading import Feed, Ident, Tail, ident_of
from fleet.text import as_object
from fleet.tokens.files import SHARED, Finder, describe, mentions, owner
from fleet.tokens.render import Manner, Renderer

CAP = 32 << 20  # bytes; a larger log becomes <name>.log.1, and the one before it goes
_MARKS = "marks.json"
_FLUSH = 1 << 20

Tell = Callable[[str, Entry], None]


def line_entries(kind: str, raw: bytes) -> Iterator[Entry]:
    """The events of one line; a line that cannot be read has none."""
    lines = lines_of(kind)
    yield from lines.entries(as_object(raw)) if lines else ()


def file_entries(path: str, kind: str) -> Iterator[Entry]:
    """The events of a whole file, of any format. Raises OSError or ValueError when it cannot be read."""
    one = formats()[kind]
    if isinstance(one, StoreFormat):
        yield from one.entries(path)
    elif isinstance(one, DocumentFormat):
        with open(path, "rb") as handle:
            document = as_object(handle.read())
        if not document:
            raise ValueError("is no JSON document")
        yield from one.entries(document) if one.entries else ()
    else:
        with open(path, "rb") as handle:
            for line in handle:
                yield from line_entries(kind, line)


class Follower:
    """New entries of some agents' transcripts.

    Files that are there at the first poll are told from their start, from their mark, or, with `back`,
    from about that many bytes before their end.
    """

    def __init__(
        self, wanted: Sequence[Wanted], *, marks: Mapping[str, Any] | None = None, back: int | None = None
    ) -> None:
        self._wanted = wanted
        self._finder = Finder(lambda ident: ident in self._tails)
        self._tails: dict[Ident, Tail] = {}
        self._sources: dict[Ident, Transcript] = {}
        self._marks = dict(marks or {})
        self._back = back

    def poll(self, tell: Tell) -> None:
        """Tell agent and entry, for everything written since the last poll."""
        for path, kind, stat in self._finder.files(self._wanted):
            ident = ident_of(stat)
            tail = self._tails.get(ident)
            if tail is None:
                tail = self._tails[ident] = self._recall(path, ident, stat.st_size)
            if tail.changed(stat):
                tail.path = path
                tail.read(self._feed(path, kind, ident, tell), again=False)
                self._marks[_mark(ident)] = [tail.offset, tail.seal.hex()]
        self._databases(tell)
        self._back = None

    def _feed(self, path: str, kind: str, ident: Ident, tell: Tell) -> Feed:
        source = self._sources.get(ident)
        if source is None or not source.cwd:
            source = self._sources[ident] = describe(path, kind)
        names = self._owners(source)

        def feed(buffer: bytearray, end: int, _offset: int) -> None:
            for line in bytes(buffer[:end]).split(b"\n") if names else ():
                for entry in line_entries(kind, line):
                    for name in names:
                        tell(name, entry)

        return feed

    @property
    def marks(self) -> dict[str, Any]:
        """Where every file was left."""
        return self._marks

    def _recall(self, path: str, ident: Ident, size: int) -> Tail:
        start = (
            0 if self._back is None else max(0, size - self._back)
        )  # the line it falls into is passed over
        offset, seal = self._marks.get(_mark(ident)) or (start, "")
        return Tail(path, ident, int(offset), bytes.fromhex(seal))

    def _owners(self, source: Transcript) -> list[str]:
        """Who a transcript is told under; one that several share is told under each of them."""
        name = owner(source, self._wanted, mentions)
        if name == SHARED:
            return [a.name for a in self._wanted if a.kind == source.kind and source.cwd in a.directories]
        return [name] if name else []

    def _databases(self, tell: Tell) -> None:
        for path, store in stores(self._wanted).items():
            news = store.news(path, self._marks.get(path)) if os.path.exists(path) else None
            if news is None:
                continue
            found, self._marks[path] = news
            for source, entries in found:
                names = self._owners(source)
                for entry in entries:
                    for name in names:
                        tell(name, entry)


def _mark(ident: Ident) -> str:
    return f"{ident[0]}:{ident[1]}"


class CleanLogs:
    """Appends what is new to each agent's log."""

    def __init__(self, directory: str, view: Manner) -> None:
        self._directory = directory
        self._view = view
        self._renderers: dict[str, Renderer] = {}
        self._pending: dict[str, list[str]] = {}
        self._waiting = 0
        self._follower: Follower | None = None
        self._wanted: Sequence[Wanted] = ()
        self._saved: dict[str, Any] = {}

    def poll(self, wanted: Sequence[Wanted]) -> None:
        """Bring every log up to date."""
        if self._follower is None or wanted != self._wanted:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            marks = self._follower.marks if self._follower else self._load()
            self._follower, self._wanted = Follower(wanted, marks=marks), wanted
        self._follower.poll(self._tell)
        self._flush()
        self._save(self._follower.marks)

    def _tell(self, name: str, entry: Entry) -> None:
        renderer = self._renderers.setdefault(name, Renderer(self._view))
        for line in renderer.lines([entry]):
            self._pending.setdefault(name, []).append(line + "\n")
            self._waiting += len(line)
        if self._waiting > _FLUSH:
            self._flush()

    def _flush(self) -> None:
        for name, lines in self._pending.items():
            path = os.path.join(self._directory, f"{name}.log")
            with suppress(OSError):
                if os.stat(path).st_size > CAP:
                    os.replace(path, f"{path}.1")
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as stream:
                stream.writelines(lines)
        self._pending.clear()
        self._waiting = 0

    def _load(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._directory, _MARKS), encoding="utf-8") as handle:
                data = json.load(handle)
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _save(self, marks: dict[str, Any]) -> None:
        if marks == self._saved:
            return
        path = os.path.join(self._directory, _MARKS)
        handle = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(marks, stream)
        os.replace(f"{path}.tmp", path)
        self._saved = dict(marks)
