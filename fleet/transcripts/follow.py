"""Entries of a transcript as they are written, for any number of files at once.

Where each file was left can be kept (`marks`) and given back, so that a follower which is restarted goes
on instead of telling everything again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from fleet.transcripts import claude, codex, opencode
from fleet.transcripts.entries import Entry
from fleet.transcripts.finder import Finder
from fleet.transcripts.places import EXPORT, SHARED, Wanted, describe, mentions, owner
from fleet.transcripts.tail import Feed, Ident, Tail, ident_of
from fleet.transcripts.usage import Transcript

Tell = Callable[[str, Entry], None]

_ENTRIES = {claude.KIND: claude.entries, codex.KIND: codex.entries}


def line_entries(kind: str, raw: bytes) -> Iterator[Entry]:
    """The events of one line; a line that cannot be read has none."""
    try:
        data = json.loads(raw.decode("utf-8", "replace").lstrip("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return
    if isinstance(data, dict):
        yield from _ENTRIES[kind](data)


def file_entries(path: str, kind: str) -> Iterator[Entry]:
    """The events of a whole file, of any format. Raises OSError or ValueError when it cannot be read."""
    if kind == opencode.KIND:
        yield from opencode.stored_entries(path)
    elif kind == EXPORT:
        with open(path, "rb") as handle:
            yield from opencode.exported_entries(json.loads(handle.read().decode("utf-8", "replace")))
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
        import sqlite3

        homes = (home for a in self._wanted if a.kind == opencode.KIND for home in a.homes)
        for path in dict.fromkeys(map(opencode.database, homes)):
            if not os.path.exists(path):
                continue
            since, told = self._marks.get(path) or (0, [])
            try:
                with closing(opencode.connect(path)) as connection:
                    parts = list(opencode.parts_since(connection, int(since)))
            except sqlite3.Error:
                continue
            seen = set(told)
            for part in parts:
                if part.finished and part.ident not in seen:
                    seen.add(part.ident)
                    self._tell_part(path, part, tell)
            # Next time from the first part still being written; what was told by then is not told again.
            newest = max((part.updated for part in parts), default=since) - opencode.OVERLAP_MS
            first = max(since, min([newest, *(part.updated for part in parts if not part.finished)]))
            self._marks[path] = [first, [p.ident for p in parts if p.ident in seen and p.updated >= first]]

    def _tell_part(self, path: str, part: opencode.Part, tell: Tell) -> None:
        source = Transcript(f"{path}#{part.session}", opencode.KIND, part.session, part.directory)
        for entry in opencode.part_entries(part.info, part.data):
            for name in self._owners(source):
                tell(name, entry)


def _mark(ident: Ident) -> str:
    return f"{ident[0]}:{ident[1]}"
