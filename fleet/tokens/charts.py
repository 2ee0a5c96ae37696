"""Token figures as pictures: bars for a terminal, charts and tables for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.backends.ledger import Counts, sum_counts
from fleet.tokens.page import Series, chart, document, table, tiles
from fleet.tokens.report import (
    TableRow,
    agents_of,
    by_agent,
    by_day,
    by_model,
    by_phase,
    kind_grid,
    phase_grid,
    shown,
    total_row,
    unpriced,
)
from fleet.tokens.tokenlog import Prices, Record

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def plot(
    rows: Sequence[TableRow], agents: Sequence[str], width: int, *, plain: bool = False
) -> Iterator[str]:
    """Tokens per phase and agent as horizontal bars, all on one scale. `plain` keeps to ASCII."""
    bars = [(row, name, _size((row.columns or {}).get(name))) for row in rows for name in agents]
    most = max((size for _, _, size in bars if size), default=0)
    label = min(max((len(name) for name in agents), default=0), max(8, width // 4))
    room = max(8, width - label - len(f"{most:,}") - 4)
    last = None
    for row, name, size in bars:
        if row is not last:
            live = " (running)" if row.live else ""
            yield f"{row.name}{live}  {row.duration_s:,.1f}s"
            last = row
        drawn = f"{_bar(size or 0, most, room, plain=plain)} {shown(size)}".lstrip()
        yield f"  {name[:label]:<{label}} {drawn}"


def _bar(size: int, most: int, room: int, *, plain: bool) -> str:
    if not size or not most:
        return ""
    eighths = max(1, round(size * room * 8 / most))
    if plain:
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _size(models: dict[str, Counts] | None) -> int | None:
    return None if models is None else sum_counts(models.values()).total


def page(records: Sequence[Record], prices: Prices | None, *, title: str, note: str) -> str:
    """The whole report as one HTML document."""
    rows, agents = by_phase(records), agents_of(records)
    total = total_row(rows)
    sections = [
        _tiles(rows, total, prices),
        chart("Tokens per phase and agent", [(row.name, _by_column(row, agents)) for row in rows]),
        chart("Tokens per agent and kind", [(row.name, _by_field(row)) for row in by_agent(records)]),
        chart("Tokens per model and kind", [(row.name, _by_field(row)) for row in by_model(records)]),
        chart("Tokens per day (UTC)", [(row.name, _by_model(row)) for row in by_day(records)]),
        table("By phase", *phase_grid([*rows, total], agents, prices)),
        table("By agent", *kind_grid(by_agent(records), "agent", prices)),
        table("By model", *kind_grid(by_model(records), "model", prices)),
    ]
    missing = unpriced(rows, prices) if prices else []
    if prices and prices.sources:
        note += f" Prices: {', '.join(sorted(prices.sources))}."
    if missing:
        note += f" No price is known for {', '.join(missing)}: sums that contain it show no cost."
    return document(title, "\n".join(sections), note)


def _by_column(row: TableRow, agents: Sequence[str]) -> Series:
    return [(name, _size((row.columns or {}).get(name)) or 0) for name in agents]


def _by_field(row: TableRow) -> Series | None:
    if row.counts is None:
        return None
    return [(name.replace("_", " "), size) for name, size in row.counts.as_dict().items()]


def _by_model(row: TableRow) -> Series:
    return [(name or "unknown", counts.total) for name, counts in (row.models or {}).items()]


def _tiles(rows: Sequence[TableRow], total: TableRow, prices: Prices | None) -> str:
    counts = total.counts or Counts()
    cached = 100 * counts.cache_read / counts.total if counts.total else 0.0
    facts = [
        ("tokens", f"{counts.total:,}"),
        ("phases", str(len(rows))),
        ("time", _hours(total.duration_s)),
        ("of it limited", _hours(total.limited_s)),
        ("read from cache", f"{cached:.0f} %"),
    ]
    if prices:
        cost = total.cost(prices)
        facts.insert(1, ("US dollars", "-" if cost is None else f"{cost:,.2f}"))
    return tiles(facts)


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} m" if minutes >= 60 else f"{seconds:.0f} s"  # noqa: PLR2004
