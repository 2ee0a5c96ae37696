"""Reading on in events.jsonl from a place that survives the reader, also when the file was rotated meanwhile.

A place is a file (by inode) and an offset in it. Rotation only renames, so the rest of the old file is
found under its new name; where even that is gone, the time of the last record read is the place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fleet.journal.events import KEEP, Once, Record, parse

BLOCK = 4 << 20  # of the file in use, read at once; the rest is there next time


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Up to where events were read. `at` is the time of the last one."""

    inode: int = 0
    offset: int = 0
    at: float = 0.0


def read_on(path: str, place: Bookmark) -> tuple[list[Record], Bookmark]:
    """The whole records after a place, oldest first, and the place after them."""
    files = _files(path)
    here = next((n for n, (_, inode, _) in enumerate(files) if inode == place.inode), None)
    if here is not None and files[here][2] < place.offset:
        here = None  # another file has got that inode
    skip = place.at if here is None else 0.0
    found: list[Record] = []
    for number, (name, inode, _) in enumerate(files[here or 0 :]):
        start = place.offset if here is not None and number == 0 else 0
        records, end = _rest(name, inode, start, BLOCK if name == path else -1)
        found += [r for r in records if _time(r) > skip]
        place = replace(place, inode=inode, offset=end)
    return found, replace(place, at=max([place.at, *map(_time, found)]))


def end_of(path: str, since: Iterable[str] = ()) -> Bookmark:
    """The end of the file, or the last record of one of these types if there is one in it."""
    kinds = frozenset(since)
    try:
        with open(path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            place, offset = Bookmark(inode), 0
            for line in file:
                record = parse(line)
                if record is not None and (not kinds or record["type"] in kinds):
                    place = Bookmark(inode, offset if kinds else offset + len(line), _time(record))
                offset += len(line)
    except OSError:
        return Bookmark()
    return place


def _files(path: str) -> list[tuple[str, int, int]]:
    """Name, inode and size of the files there are, oldest first."""
    found = []
    for name in [*(f"{path}.{n}" for n in range(KEEP - 1, 0, -1)), path]:
        try:
            stat = os.stat(name)
        except OSError:
            continue
        found.append((name, stat.st_ino, stat.st_size))
    return found


def _rest(path: str, inode: int, offset: int, most: int) -> tuple[list[Record], int]:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_ino != inode:
                return [], offset  # rotated just now: next time
            file.seek(offset)
            raw = file.read(most)
    except OSError:
        return [], offset
    whole = raw.rfind(b"\n") + 1
    return list(Once().records(raw[:whole])), offset + whole


def _time(record: Record) -> float:
    stamp = record.get("ts")
    return float(stamp) if isinstance(stamp, int | float) else 0.0
