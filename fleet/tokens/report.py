"""Tables out of the token log. Rows are plain data: the verb prints them, the page draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.backends.ledger import FIELDS, Counts, sum_counts
from fleet.text import render
from fleet.tokens.tokenlog import Prices, Record, record_cells, sum_costs

Models = dict[str, Counts]
TOTAL = "TOTAL"  # the name of the row and of the column that add up

_CENT = 0.01


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

    def cost(self, prices: Prices) -> float | None:
        """None when nothing is known, or when some model of it has no price."""
        if self.models is None:
            return None
        return sum_costs(prices.cost(model, counts) for model, counts in self.models.items())


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


def agents_of(records: Sequence[Record]) -> list[str]:
    """Every column there is, in the order of appearance; what is shared stands last."""
    names = dict.fromkeys(name for record in records for name in record_cells(record))
    return sorted(names, key=lambda name: name.startswith("("))


def by_phase(records: Sequence[Record]) -> list[TableRow]:
    """A row a record, as the log has them."""
    rows = []
    for record in records:
        columns = record_cells(record)
        rows.append(
            TableRow(
                str(record.get("phase")),
                merge(columns.values()),
                columns,
                _seconds(record.get("duration_s")),
                _seconds(record.get("limited_s")),
                record.get("live") is True,
            )
        )
    return rows


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
        for day, models in (record.get("days") or {}).items():
            days.setdefault(day, []).append({model: Counts.of(counts) for model, counts in models.items()})
    return [TableRow(day, merge(parts)) for day, parts in sorted(days.items())]


BY = {"agent": by_agent, "model": by_model, "day": by_day}


def total_row(rows: Sequence[TableRow]) -> TableRow:
    """The line under the table."""
    names = dict.fromkeys(name for row in rows for name in row.columns or ())
    columns = {name: merge((row.columns or {}).get(name) for row in rows) for name in names}
    return TableRow(
        TOTAL,
        merge(row.models for row in rows),
        columns,
        sum(row.duration_s for row in rows),
        sum(row.limited_s for row in rows),
    )


def phase_grid(
    rows: Sequence[TableRow], agents: Sequence[str], prices: Prices | None
) -> tuple[list[str], list[list[Any]]]:
    """Header and cells of the table by phase: phase, dur(s), one column an agent, TOTAL."""
    header = ["phase", "dur(s)", *agents, TOTAL, *(["USD"] if prices else [])]
    grid = []
    for row in rows:
        cells = [_total((row.columns or {}).get(name)) for name in agents]
        cost = [row.cost(prices)] if prices else []
        name = f"{row.name} (running)" if row.live else row.name
        grid.append([name, round(row.duration_s, 1), *cells, _total(row.models), *cost])
    return header, grid


def kind_grid(
    rows: Sequence[TableRow], what: str, prices: Prices | None
) -> tuple[list[str], list[list[Any]]]:
    """Header and cells of a table of one kind of thing: the four counts, TOTAL."""
    header = [what, *FIELDS, TOTAL, *(["USD"] if prices else [])]
    grid = []
    for row in rows:
        counts = row.counts
        cells = [None] * 5 if counts is None else [*counts.as_dict().values(), counts.total]
        grid.append([row.name, *cells, *([row.cost(prices)] if prices else [])])
    return header, grid


def unpriced(rows: Sequence[TableRow], prices: Prices) -> list[str]:
    """Models that were used and have no price."""
    models = merge(row.models for row in rows) or {}
    return sorted(name or "unknown" for name, c in models.items() if prices.cost(name, c) is None)


def shown(value: Any, *, money: bool = False) -> str:
    """A cell for people: thousands separators; what is not known is a dash, never a nought."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if money and 0 < value < _CENT / 2:
            return "<0.01"  # a nought would say that it cost nothing
        return f"{value:,.2f}" if money else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def figures(
    header: Sequence[str], grid: Sequence[Sequence[Any]], paint: Callable[[str, str], str] | None = None
) -> Iterator[str]:
    """The lines of a table of figures; a line of dashes stands under the header and above the total."""
    money = header[-1] == "USD"
    rows: list[list[Any]] = []
    for cells in grid:
        last = len(cells) - 1
        texts = [shown(cell, money=money and i == last) for i, cell in enumerate(cells)]
        rows.append([(text, "bold") for text in texts] if texts[0] == TOTAL else texts)
    ruled = {0, len(grid) - 1} if grid and grid[-1][0] == TOTAL else {0}
    return render(header, rows, figures=True, ruled=ruled, paint=paint)


def _total(models: Models | None) -> int | None:
    return None if models is None else sum_counts(models.values()).total


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
