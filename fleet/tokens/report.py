"""Tables of tokens: one row a phase, agent, model or day; as lines, as bars, as objects, as CSV.

Rows carry counts by model. `-` stands for what is not known, 0 for nothing used.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleet.backends.ledger import FIELDS, Counts, sum_counts
from fleet.text import render
from fleet.tokens.tokenlog import Record, record_cells, record_days, sum_costs

if TYPE_CHECKING:
    from fleet.tokens.price import PriceBook

Models = dict[str, Counts]
TOTAL = "TOTAL"  # the name of the row and of the column that add up

_CENT = 0.01
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of a table: counts by model, None where nothing is known."""

    name: str
    models: Models | None
    columns: dict[str, Models | None] | None = None  # per agent, in the table by phase
    duration_s: float = 0.0
    limited_s: float = 0.0
    live: bool = False

    @property
    def counts(self) -> Counts | None:
        return None if self.models is None else sum_counts(self.models.values())

    def of(self, agent: str) -> int | None:
        """The tokens in the column of one agent."""
        return _total((self.columns or {}).get(agent))

    def cost(self, prices: PriceBook) -> float | None:
        """None when nothing is known, or when some model of it has no price."""
        if self.models is None:
            return None
        return sum_costs(prices.cost(model, counts) for model, counts in self.models.items())


def _total(models: Models | None) -> int | None:
    return None if models is None else sum_counts(models.values()).total


def merge(parts: Iterable[Models | None]) -> Models | None:
    """All together; None only when every part is."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    total: Models = {}
    for part in found:
        for model, counts in part.items():
            total[model] = total.get(model, Counts()).plus(counts)
    return total


# --------------------------------------------------------------------------------------------------
# Rows out of the token log.


def agents_of(records: Sequence[Record]) -> list[str]:
    """Every column there is, in the order of appearance; what is shared stands last."""
    names = dict.fromkeys(name for record in records for name in record_cells(record))
    return sorted(names, key=lambda name: name.startswith("("))


def by_phase(records: Sequence[Record]) -> list[TableRow]:
    """One row per record, in the order of the log."""
    rows = []
    for record in records:
        columns = record_cells(record)
        duration, limited = (_seconds(record.get(key)) for key in ("duration_s", "limited_s"))
        live, name = record.get("live") is True, str(record.get("phase"))
        rows.append(TableRow(name, merge(columns.values()), columns, duration, limited, live))
    return rows


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def by_agent(records: Sequence[Record]) -> list[TableRow]:
    """What each agent used over all phases."""
    columns = [record_cells(record) for record in records]
    return [TableRow(name, merge(c[name] for c in columns if name in c)) for name in agents_of(records)]


def by_model(records: Sequence[Record]) -> list[TableRow]:
    """What each model was used for over all phases and agents."""
    total = merge(models for record in records for models in record_cells(record).values()) or {}
    rows = [TableRow(name or "unknown", {name: counts}) for name, counts in total.items()]
    return sorted(rows, key=lambda row: -(row.counts or Counts()).total)


def by_day(records: Sequence[Record]) -> list[TableRow]:
    """What was used on each day, in universal time."""
    days: dict[str, list[Models]] = {}
    for record in records:
        for day, models in record_days(record).items():
            days.setdefault(day, []).append(models)
    return [TableRow(day, merge(parts)) for day, parts in sorted(days.items())]


BY = {"agent": by_agent, "model": by_model, "day": by_day}


def total_row(rows: Sequence[TableRow]) -> TableRow:
    """The line under the table."""
    names = dict.fromkeys(name for row in rows for name in row.columns or ())
    return TableRow(
        TOTAL,
        merge(row.models for row in rows),
        {name: merge((row.columns or {}).get(name) for row in rows) for name in names},
        sum(row.duration_s for row in rows),
        sum(row.limited_s for row in rows),
    )


def unpriced(rows: Sequence[TableRow], prices: PriceBook) -> list[str]:
    """Models that were used and have no price."""
    models = merge(row.models for row in rows) or {}
    return sorted(name or "unknown" for name, c in models.items() if prices.cost(name, c) is None)


# --------------------------------------------------------------------------------------------------
# Tables out of rows.


@dataclass(frozen=True, slots=True)
class Table:
    """Header and cells: names, numbers, or None for what is not known. `total` is the line under them."""

    header: list[str]
    cells: list[list[Any]]
    total: list[Any] | None = None

    def texts(self) -> list[list[str]]:
        """Every row for people, the total last."""
        money = len(self.header) - 1 if self.header[-1] == USD else None
        rows = [*self.cells, self.total] if self.total else self.cells
        return [[shown(cell, money=i == money) for i, cell in enumerate(row)] for row in rows]

    def lines(self, paint: Callable[[str, str], str] | None = None) -> Iterator[str]:
        """Text; a line of dashes stands under the header and above the total."""
        rows: list[list[Any]] = [*self.texts()]
        ruled = {0}
        if self.total:
            rows[-1] = [(text, "bold") for text in rows[-1]]
            ruled.add(len(rows) - 1)
        return render(self.header, rows, figures=True, ruled=ruled, paint=paint)

    def objects(self) -> list[dict[str, Any]]:
        """One object per row, without the total, for a program."""
        return [dict(zip(self.header, row, strict=True)) for row in self.cells]

    def csv(self) -> str:
        """The same for a spreadsheet: plain figures, nothing where nothing is known."""
        sheet = io.StringIO()
        csv.writer(sheet, lineterminator="\n").writerows([self.header, *self.cells])
        return sheet.getvalue()


USD = "USD"  # the last column, where there are prices


def phase_table(
    rows: Sequence[TableRow], agents: Sequence[str], prices: PriceBook | None, total: TableRow | None
) -> Table:
    """One row per phase: phase, dur(s), one column per agent, TOTAL."""

    def cells(row: TableRow) -> list[Any]:
        name = f"{row.name} (running)" if row.live else row.name
        return [name, round(row.duration_s, 1), *map(row.of, agents), _total(row.models), *_cost(row, prices)]

    return _table(["phase", "dur(s)", *agents, TOTAL], cells, rows, prices, total)


def kind_table(
    rows: Sequence[TableRow], what: str, prices: PriceBook | None, total: TableRow | None
) -> Table:
    """One row per agent, model or day: the four counts, TOTAL."""

    def cells(row: TableRow) -> list[Any]:
        counts = row.counts
        figures = [None] * 5 if counts is None else [*counts.as_dict().values(), counts.total]
        return [row.name, *figures, *_cost(row, prices)]

    return _table([what, *FIELDS, TOTAL], cells, rows, prices, total)


def _cost(row: TableRow, prices: PriceBook | None) -> list[float | None]:
    return [row.cost(prices)] if prices else []


def _table(
    header: list[str], cells: Callable[[TableRow], list[Any]], rows: Sequence[TableRow],
    prices: PriceBook | None, total: TableRow | None,
) -> Table:  # fmt: skip
    header = [*header, USD] if prices else header
    return Table(header, [cells(row) for row in rows], cells(total) if total else None)


def shown(value: Any, *, money: bool = False) -> str:
    """A cell for people: thousands separators; what is not known is a dash, never a zero."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if money and 0 < value < _CENT / 2:
            return "<0.01"  # a zero would say that it cost nothing
        return f"{value:,.2f}" if money else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def plot(
    rows: Sequence[TableRow], agents: Sequence[str], width: int, *, plain: bool = False
) -> Iterator[str]:
    """Tokens per phase and agent as horizontal bars, all on one scale. `plain` keeps to ASCII."""
    most = max((row.of(name) or 0 for row in rows for name in agents), default=0)
    label = min(max((len(name) for name in agents), default=0), max(8, width // 4))
    room = max(8, width - label - len(f"{most:,}") - 4)
    for row in rows if agents else ():
        yield f"{row.name}{' (running)' * row.live}  {row.duration_s:,.1f}s"
        for name in agents:
            size = row.of(name)
            drawn = f"{_bar(size or 0, most, room, plain=plain)} {shown(size)}".lstrip()
            yield f"  {name[:label]:<{label}} {drawn}"


def _bar(size: int, most: int, room: int, *, plain: bool) -> str:
    if not size:
        return ""
    eighths = max(1, round(size * room * 8 / most))
    if plain:
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
