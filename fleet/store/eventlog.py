"""events.jsonl: everything that was decided or done, and why; and reading on from a place in it.

A record that was cut short by a crash costs that record alone: the next writer, which finds the file not
as it was left, begins a new line first. When the disk refuses, ordinary records wait in memory and are
written with the next one that succeeds; a record asked for with `sync` fails loudly, because its caller
must not go on without it. An effect is announced so before it happens (`begin`): the record names the cause
of everything that was done, also by a process that was killed in between.

What a full disk took is not written again: a line that it cut is completed where it ends, or, when another
process has written since, closed and written anew.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fleet.core.decision import Note
from fleet.core.words import EventType
from fleet.ports import Disk, Torn
from fleet.reading import Tail, ident_of
from fleet.text import as_object, redact

VERSION = 1
CAP = 10 << 20
KEEP = 5
WAITING_MAX = 1000
_READ_CAP = CAP + (2 << 20)  # a file is rotated after the record that filled it

Record = dict[str, Any]


def _redacted(value: object, secrets: tuple[str, ...]) -> object:
    """The same value, its strings without secrets."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {str(k): _redacted(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(v, secrets) for v in value]
    return value


class Begun(NamedTuple):
    """One effect that is about to happen: a start, a signal, a keystroke, a session taken away."""

    effect: str
    agent: str
    run: str
    cause: str


class Events:
    """The writer."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        wall: Callable[[], float],
        tick: Callable[[], int] = lambda: 0,
        secrets: Iterable[str] = (),
    ) -> None:
        self.path = path
        self.trouble = ""  # why the disk refuses, while it does
        self._disk = disk
        self._wall = wall
        self._tick = tick
        self._secrets = tuple(secrets)
        self._seq = 0
        self._size = -1  # the file as we left it; -1: never looked
        self._lead = b""  # what must come first, if that was in the middle of a line
        self._waiting: deque[bytes] = deque()
        self._cut = 0  # bytes of the first one that are in the file already
        self._lost = 0  # records that found no place in memory either

    def record(
        self, kind: EventType, *, agent: str = "", reason: str = "", sync: bool = False, **facts: Any
    ) -> Record:
        """Write down that it happened. Raises OSError only when asked to `sync`."""
        size, lead, as_left = self._look()
        record = self._made(kind, agent, reason, facts)
        self._mend(as_left=as_left)
        self._wait(record)
        self._flush(size, lead, synced=1 if sync else 0)
        return record

    def note(self, note: Note) -> None:
        """Write down what a decision says."""
        facts: dict[str, Any] = dict(note.facts)
        self.record(note.type, reason=note.reason, **facts)

    def begin(self, effects: Sequence[Begun]) -> None:
        """Put down what is about to be done, durably, with one flush. Raises OSError: then it is not done."""
        size, lead, as_left = self._look()
        self._mend(as_left=as_left)
        for one in effects:
            facts = {"effect": one.effect, "run": one.run}
            self._wait(self._made(EventType.EFFECT_BEGUN, one.agent, one.cause, facts))
        self._flush(size, lead, synced=len(effects))

    def _made(self, kind: EventType, agent: str, reason: str, facts: dict[str, Any]) -> Record:
        now = round(self._wall(), 3)
        self._seq += 1
        return {
            "v": VERSION,
            "seq": self._seq,
            "at": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "ts": now,
            "type": EventType(kind).value,
            "agent": agent,
            "reason": redact(reason, self._secrets),
            "tick": self._tick(),
            "facts": _redacted(facts, self._secrets),
        }

    def settle(self) -> bool:
        """Write what waits, if the disk takes it now: whether nothing waits any more."""
        if self._waiting:
            size, lead, as_left = self._look()
            self._mend(as_left=as_left)
            self._flush(size, lead, synced=0)
        else:
            self.trouble = ""  # what was refused was given up; the next record tells whether it still is
        return not self.trouble

    def _mend(self, *, as_left: bool) -> None:
        """A line that was cut can be completed only while it is the last of the file."""
        if self._cut and not as_left:
            if self._cut == len(self._waiting[0]) - 1:  # its line break was given by another
                self._waiting.popleft()
            self._cut = 0

    def _wait(self, record: Record) -> None:
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
        if len(self._waiting) == WAITING_MAX:
            del self._waiting[1 if self._cut else 0]
            self._lost += 1
        self._waiting.append(line)

    def _look(self) -> tuple[int, bytes, bool]:
        """How large the file is, what must come before our line, and whether it is as we left it."""
        try:
            found = self._disk.stat(self.path)
            size = found.size if found else 0
            if size == self._size and size < CAP:
                return size, self._lead, True
            raw = self._disk.read(self.path, _READ_CAP) if size else b""
        except OSError:
            return self._size, b"\n", False
        for line in reversed(raw[-65536:].split(b"\n")):
            last = parse(line)
            if last is not None:
                self._seq = max(self._seq, int(last.get("seq", 0)))
                break
        return size, b"\n" if raw and not raw.endswith(b"\n") else b"", False

    def _flush(self, size: int, lead: bytes, *, synced: int) -> None:
        """Write what waits. The caller of the last `synced` records must not go on without them."""
        data = lead + b"".join(self._waiting)[self._cut :]
        try:
            if self._size < 0 and not size:
                self._disk.make_dir(self.path.rpartition("/")[0])
            if size >= CAP:
                self._rotate()
                size = 0
            self._disk.append(self.path, data, sync=bool(synced))
        except OSError as error:
            written = error.written if isinstance(error, Torn) else 0
            here = self._torn_at()
            self._size = here if here == size + written else -1  # another process wrote: look anew
            self._take(written, lead)
            lost = f", {self._lost} are lost" if self._lost else ""
            waiting = f"{len(self._waiting)} records wait in memory{lost}"
            self.trouble = f"{self.path}: {error.strerror or error}; {waiting}"
            if synced:
                self._give_up(synced)
                raise
            return
        self._waiting.clear()
        self._cut = self._lost = 0
        self.trouble = ""
        self._size, self._lead = size + len(data), b""

    def _take(self, written: int, lead: bytes) -> None:
        """The disk took the first bytes of what waits, and no more: they are not written again."""
        if written < len(lead):
            self._lead = lead[written:]
            return
        self._lead = b""
        self._cut += written - len(lead)
        while self._waiting and self._cut >= len(self._waiting[0]):
            self._cut -= len(self._waiting.popleft())

    def _give_up(self, count: int) -> None:
        """Their caller gets the error and does not do what they announce; a part in the file is closed."""
        if not self._waiting:
            return  # they are there, only not for certain
        for _ in range(min(count, len(self._waiting))):
            self._waiting.pop()
        if not self._waiting and self._cut:
            self._lead, self._cut = b"\n", 0

    def _torn_at(self) -> int:
        """How large a write that failed left the file; -1 when that cannot be seen either."""
        try:
            found = self._disk.stat(self.path)
        except OSError:
            return -1
        return found.size if found and found.size else -1

    def _rotate(self) -> None:
        for number in range(KEEP - 1, 0, -1):
            old = self.path if number == 1 else f"{self.path}.{number - 1}"
            if self._disk.stat(old) is not None:
                self._disk.rename(old, f"{self.path}.{number}")


def parse(line: bytes | bytearray) -> Record | None:
    """One record, or None for a torn or foreign line."""
    record = as_object(line)
    known = isinstance(record.get("type"), str) and isinstance(record.get("ts"), int | float)
    return record if known else None


def _records(raw: bytes | bytearray) -> Iterator[Record]:
    """The records of some whole lines."""
    return (record for line in raw.split(b"\n") if (record := parse(line)) is not None)


def _names(path: str) -> list[str]:
    """The file in use and its predecessors, oldest first."""
    return [*(f"{path}.{n}" for n in range(KEEP - 1, 0, -1)), path]


def read(disk: Disk, path: str, *, since: float = 0.0) -> Iterator[Record]:
    """Records in the order they were written, oldest file first."""
    for file in _names(path):
        try:
            raw = disk.read(file, _READ_CAP)
        except FileNotFoundError:
            continue
        yield from (r for r in _records(raw) if _time(r) >= since)


# --------------------------------------------------------------------------------------------------
# Reading on in events.jsonl from a place that survives the reader, also when the file was rotated
# meanwhile.
# A place is a file (by inode) and an offset in it. Rotation only renames, so the rest of the old file is
# found under its new name; where even that is gone, the time of the last record read is the place.


class Bookmark(NamedTuple):
    """Up to where events were read. `at` is the time of the last one."""

    inode: int = 0
    offset: int = 0
    at: float = 0.0


def read_on(path: str, place: Bookmark) -> tuple[list[Record], Bookmark]:
    """The whole records after a place, oldest first, and the place after them."""
    files = [(name, stat) for name in _names(path) if (stat := _stat(name)) is not None]
    here = next((n for n, (_, stat) in enumerate(files) if stat.st_ino == place.inode), None)
    if here is not None and files[here][1].st_size < place.offset:
        here = None  # another file has got that inode
    start, skip = (0, place.at) if here is None else (place.offset, 0.0)
    found: list[Record] = []
    for name, stat in files[here or 0 :]:
        tail = Tail(name, ident_of(stat), start)
        tail.read(lambda lines, end, _at: found.extend(_records(lines[:end])), again=False)
        place, start = place._replace(inode=stat.st_ino, offset=tail.offset), 0
    fresh = [record for record in found if _time(record) > skip]
    return fresh, place._replace(at=max([place.at, *map(_time, fresh)]))


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


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _time(record: Record) -> float:
    at: float = record["ts"]
    return at
