"""Intents: what we were about to do, on disk before we do it.

An intent without an outcome means that we died in between and do not know whether it was done. It is looked
at again in the world, then abandoned; it is never done again because it is written here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fleet.world.ports import Disk

COMPACT_AT = 256 << 10
_CAP = 8 << 20
OWED_MAX = 1000


@dataclass(frozen=True, slots=True)
class Intent:
    """One effect that costs something: money, a process, a keystroke."""

    effect: str  # start, stop, remove, type, press, ...
    agent: str
    run: str
    cause: str
    id: str = ""
    at: float = 0.0


class Intents:
    """The open intents of this project, in an append-only file that is rewritten when it grew."""

    def __init__(self, disk: Disk, path: str, wall: Callable[[], float]) -> None:
        self._disk = disk
        self._path = path
        self._wall = wall
        self._mine: dict[str, Intent] = {}
        self._owed: list[dict[str, Any]] = []  # outcomes not on disk yet
        self._size = 0

    def begin(self, effect: str, agent: str, run: str, cause: str) -> str:
        """Put one on record, durably; returns its id."""
        return self.begin_all([Intent(effect, agent, run, cause)])[0]

    def begin_all(self, intents: Sequence[Intent]) -> list[str]:
        """The same for many at the price of one flush."""
        now = round(self._wall(), 3)
        made = [Intent(i.effect, i.agent, i.run, i.cause, os.urandom(8).hex(), now) for i in intents]
        self._append([asdict(i) for i in made], sync=True)
        self._mine |= {i.id: i for i in made}
        return [i.id for i in made]

    def end(self, intent_id: str, outcome: str) -> None:
        """It is over. Losing this line is harmless: the intent is looked at once more."""
        self._mine.pop(intent_id, None)
        self._owed.append({"id": intent_id, "outcome": outcome})
        self.settle()
        if not self._mine and not self._owed and self._size > COMPACT_AT:
            self.compact()

    def settle(self) -> None:
        """Write down outcomes that a disk refused before; what it refuses now is owed for longer."""
        if self._owed:
            with contextlib.suppress(OSError):
                self._append(self._owed[-OWED_MAX:], sync=False)
                self._owed.clear()

    def open_intents(self) -> tuple[Intent, ...]:
        """Those without an outcome, oldest first, whoever began them."""
        found: dict[str, dict[str, Any]] = {}
        for line in self._read().decode("utf-8", "replace").split("\n"):
            record = _parse(line) if line else {}
            if "outcome" in record:
                found.pop(record.get("id", ""), None)
            elif "effect" in record:
                found[str(record.get("id", ""))] = record
        return tuple(map(_intent, found.values()))

    def compact(self) -> None:
        """Keep only what is open. The caller must be the only writer at this moment."""
        lines = b"".join(_line(asdict(i)) for i in self.open_intents())
        self._disk.write(self._path, lines)
        self._size = len(lines)

    def _append(self, records: list[dict[str, Any]], *, sync: bool) -> None:
        data = b"\n" + b"".join(map(_line, records))  # a line that a crash cut short ends here
        if not self._size:
            self._disk.make_dir(self._path.rpartition("/")[0])
            self._size = len(self._read())
        self._disk.append(self._path, data, sync=sync)
        self._size += len(data)

    def _read(self) -> bytes:
        try:
            return self._disk.read(self._path, _CAP)
        except FileNotFoundError:
            return b""


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _parse(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _intent(record: dict[str, Any]) -> Intent:
    text = {key: str(record.get(key, "")) for key in ("effect", "agent", "run", "cause", "id")}
    at = record.get("at", 0.0)
    return Intent(**text, at=float(at) if isinstance(at, int | float) else 0.0)
