"""Entries of a transcript as they are written, for any number of files at once.

Where each file was left can be kept (`marks`) and given back, so that a follower which is restarted goes
on instead of telling everything again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fleet.backends.entries import Entry
from fleet.backends.ledger import Transcript
from fleet.backends.readers import DocumentFormat, StoreFormat, Wanted, formats, lines_of, stores
from fleet.reading import Feed, Ident, Tail, ident_of
from fleet.text import as_object
from fleet.tokens.finder import Finder
from fleet.tokens.places import SHARED, describe, mentions, owner

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
