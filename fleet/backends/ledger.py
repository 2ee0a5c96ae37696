"""Counting every message once, whatever the files repeat.

A CLI writes one message on several lines, writes it again when a conversation is resumed or forked, and
copies it into the file of a sub-agent. The Ledger keeps one entry per (message id, request id): of
equals the one with most tokens counts, and a line of the main conversation beats any side-chain copy of
the same message. What is counted does not depend on the order in which files are read, so reading again,
after a crash or a rotation, changes nothing.

Figures are kept in cells (source, model, day): callers add up the cells they need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ABSURD = 1 << 53  # no count is this large; what is, was not written by a CLI
UNKNOWN = "unknown"  # a model or day the record does not name
_SIDE = "\x00side"  # stands in the request's place: side-chain copies are told apart by message only


class Counts(NamedTuple):
    """The four kinds of token a provider bills, kept apart because their prices differ by fifty."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_write + self.cache_read

    def plus(self, other: Counts) -> Counts:
        return Counts(
            self.input + other.input,
            self.output + other.output,
            self.cache_write + other.cache_write,
            self.cache_read + other.cache_read,
        )

    def beyond(self, base: Counts) -> Counts:
        """What was added since `base`; a count that shrank because a file was pruned adds nothing."""
        return Counts(
            max(0, self.input - base.input),
            max(0, self.output - base.output),
            max(0, self.cache_write - base.cache_write),
            max(0, self.cache_read - base.cache_read),
        )

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def of(cls, data: Any) -> Counts:
        """As a record has them, or a bare figure of input; what is not a number counts as nothing."""
        if isinstance(data, dict):
            return cls(*(number(data.get(name)) for name in FIELDS))
        return cls(input=number(data))


FIELDS = ("input", "output", "cache_write", "cache_read")

Cell = tuple[str, str]  # model, day
Cells = dict[Cell, Counts]  # the usage of one agent, or of anything else that can be added up


def number(value: Any) -> int:
    """A token count as any JSON writer may spell it; nonsense is nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < ABSURD:
        return 0
    return int(value)


def sum_counts(parts: Iterable[Counts]) -> Counts:
    """All of them together."""
    total = Counts()
    for part in parts:
        total = total.plus(part)
    return total


def add_cells(into: Cells, cells: Cells) -> None:
    """Pour one heap of cells into another."""
    for cell, counts in cells.items():
        into[cell] = into[cell].plus(counts) if cell in into else counts


def cells_beyond(now: Cells, base: Cells) -> Cells:
    """Cell by cell, what was used since the base was taken. Cells without use are left out."""
    grown = {cell: counts.beyond(base.get(cell, Counts())) for cell, counts in now.items()}
    return {cell: counts for cell, counts in grown.items() if counts.total}


@dataclass(slots=True)
class Transcript:
    """One transcript: a file, or one session inside a database. `cwd` and `session` may be learnt late."""

    path: str
    kind: str
    session: str = ""
    cwd: str = ""


Four = tuple[int, int, int, int]  # counts while they are being added up: Counts would cost more than reading
_Best = tuple[int, str, Four, int, list[int]]  # total, request, counts, source, the cell it was poured into


@dataclass(slots=True)
class Ledger:
    """Every message once, summed by source, model and day."""

    sources: list[Transcript] = field(default_factory=list)
    cells: dict[tuple[int, str, str], list[int]] = field(default_factory=dict)
    _best: dict[str, _Best] = field(default_factory=dict)

    def source(self, source: Transcript) -> int:
        """Make a source known; its number is what `add` wants."""
        self.sources.append(source)
        return len(self.sources) - 1

    def add(
        self,
        source: int,
        ident: str,
        request: str,
        counts: Four,
        model: str,
        day: str,
        side: bool = False,  # noqa: FBT001, FBT002 - by position: this is the inner loop
    ) -> None:
        """Count one line. `ident` must never be empty: who has none makes one up from where it stands."""
        if side:
            request = _SIDE
        known = self._best.get(ident)
        if known is not None and known[1] != request:
            if side:
                return  # the main conversation has it
            if known[1] != _SIDE:
                ident = f"{ident}\x00{request}"
                known = self._best.get(ident)
        given, output, write, read = counts
        total = given + output + write + read
        if known is not None and known[1] == request and not self._beats(total, counts, source, known):
            return
        place = (source, model, day)
        cell = self.cells.get(place)
        if cell is None:
            cell = self.cells[place] = [0, 0, 0, 0]
        if known is not None:
            for index, size in enumerate(known[2]):
                known[4][index] -= size
        self._best[ident] = (total, request, counts, source, cell)
        cell[0] += given
        cell[1] += output
        cell[2] += write
        cell[3] += read

    def _beats(self, total: int, counts: Four, source: int, known: _Best) -> bool:
        """Most tokens; of equals the more expensive. The choice must not depend on which was read first."""
        if total != known[0]:
            return total > known[0]
        if counts != known[2]:
            return (counts[1], counts[2], counts) > (known[2][1], known[2][2], known[2])
        return source != known[3] and self.sources[known[3]].path > self.sources[source].path

    def dump(self) -> list[tuple[int, str, str, Four, str, str, bool]]:
        """Every counted message as the arguments of `add`, for another process to take over."""
        places = {id(cell): place for place, cell in self.cells.items()}
        rows = []
        for ident, (_, request, counts, source, cell) in self._best.items():
            _, model, day = places[id(cell)]
            name = ident.removesuffix(f"\x00{request}")
            rows.append((source, name, request, counts, model, day, request == _SIDE))
        return rows

    def by_source(self) -> list[Cells]:
        """The cells of each source, in the order of `sources`; nothing where nothing was used."""
        heaps: list[Cells] = [{} for _ in self.sources]
        for (source, model, day), four in self.cells.items():
            if any(four):
                heaps[source][model, day] = Counts(*four)
        return heaps

    def total(self) -> Counts:
        return sum_counts(Counts(*four) for four in self.cells.values())

    def messages(self) -> int:
        """How many distinct messages were counted."""
        return len(self._best)
