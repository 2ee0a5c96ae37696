"""Pages of one file: inline style, no script, nothing loaded. The report of `agents.py tokens --html` is one.

Colours follow the reader's light or dark setting. All text from outside is escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from fleet.backends.ledger import Counts
from fleet.tokens.report import (
    Table,
    TableRow,
    agents_of,
    by_agent,
    by_day,
    by_model,
    by_phase,
    kind_table,
    phase_table,
    shown,
    total_row,
    unpriced,
)
from fleet.tokens.tokenlog import Record

if TYPE_CHECKING:
    from fleet.tokens.price import PriceBook

Series = list[tuple[str, int]]  # name and size of each piece of a bar
Facts = Sequence[tuple[str, str]]  # what it is, and how much


def tiles(facts: Facts) -> str:
    """What matters most, large."""
    drawn = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in facts)
    return f'<div class="tiles">{drawn}</div>'


def chart(title: str, rows: Sequence[tuple[str, Series | None]]) -> str:
    """Horizontal stacked bars. A name keeps its colour within the chart; hovering tells the figure."""
    names = list(dict.fromkeys(name for _, series in rows for name, size in series or () if size))
    most = max((sum(size for _, size in series or ()) for _, series in rows), default=0)
    if not most:
        return ""
    legend = "".join(
        f'<li><i class="s{index % 8}"></i>{escape(name)}</li>' for index, name in enumerate(names)
    )
    drawn = []
    for label, series in rows:
        pieces = [
            f'<i class="s{names.index(name) % 8}" style="width:{100 * size / most:.3f}%"'
            f' title="{escape(f"{label}: {name} {size:,}")}"></i>'
            for name, size in series or ()
            if size
        ]
        figure = shown(None if series is None else sum(size for _, size in series))
        drawn.append(f"<b>{escape(label)}</b><span>{''.join(pieces)}</span><em>{figure}</em>")
    heading = f'<h2>{escape(title)}</h2><ul class="legend">{legend}</ul>'
    return f'<section>{heading}<div class="bars">{"".join(drawn)}</div></section>'


def table(title: str, table: Table) -> str:
    """Figures as figures."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in table.header)
    rows = ["".join(f"<td>{escape(text)}</td>" for text in texts) for texts in table.texts()]
    total = f'<tr class="sum">{rows.pop()}</tr>' if table.total else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows) + total
    return (
        f'<section><h2>{escape(title)}</h2><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


STYLE = """
:root { color-scheme: light dark;
  --paper: #fbfaf8; --ink: #1d2126; --soft: #67707a; --line: #dcdfe3; --card: #fff;
  --s0: #2f6fb3; --s1: #d98032; --s2: #3f9268; --s3: #a8518f;
  --s4: #8a7a2e; --s5: #4aa3b5; --s6: #b5493f; --s7: #7566b8 }
@media (prefers-color-scheme: dark) { :root {
  --paper: #15181c; --ink: #e4e7ea; --soft: #97a1ab; --line: #2c3238; --card: #1c2025;
  --s0: #6ea8e0; --s1: #e9a15f; --s2: #6cc096; --s3: #cf86bb;
  --s4: #c5b45f; --s5: #7cc9d8; --s6: #e08177; --s7: #a79be0 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.25rem; max-width: 70rem;
  background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.45rem; margin: 0 0 1.25rem }
h2 { font-size: 1rem; margin: 0 0 .6rem }
section, .tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px }
section { padding: 1rem 1.1rem; margin: 1rem 0 }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem }
.tiles div { flex: 1 0 auto; min-width: 7rem; padding: .7rem .9rem }
.tiles b { display: block; font-size: 1.2rem; white-space: nowrap }
.tiles span, footer { color: var(--soft); font-size: .85rem }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem;
  margin: 0 0 .6rem; padding: 0; font-size: .85rem }
.legend i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .4em }
.bars { display: grid; grid-template-columns: minmax(3rem, max-content) 1fr max-content; gap: .35rem .7rem;
  align-items: center; font-size: .87rem }
.bars b { font-weight: 400; text-align: right; max-width: 12rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap }
.bars span { display: flex; height: 1.15rem; border-radius: 3px; overflow: hidden }
.bars i { min-width: 1px }
.bars em { font-style: normal; color: var(--soft); text-align: right }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
table, .tiles b, .bars { font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left }
th { color: var(--soft); font-weight: 600 }
tr.sum td { font-weight: 600; border-bottom: 0 } tr:last-child td { border-bottom: 0 }
""" + "".join(f".s{n} {{ background: var(--s{n}) }}\n" for n in range(8))


def document(title: str, body: str, note: str, style: str = "") -> str:
    """A page around some sections."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n<footer>{escape(note)}</footer></body></html>\n"
    )


# --------------------------------------------------------------------------------------------------
# The report on tokens.


def report(records: Sequence[Record], prices: PriceBook | None, *, title: str, note: str) -> str:
    """The whole report on tokens as one page."""
    rows, agents = by_phase(records), agents_of(records)
    total = total_row(rows)
    sections = [
        _tiles(rows, total, prices),
        chart("Tokens per phase and agent", [(row.name, _by_column(row, agents)) for row in rows]),
        chart("Tokens per agent and kind", [(row.name, _by_field(row)) for row in by_agent(records)]),
        chart("Tokens per model and kind", [(row.name, _by_field(row)) for row in by_model(records)]),
        chart("Tokens per day (UTC)", [(row.name, _by_model(row)) for row in by_day(records)]),
        table("By phase", phase_table(rows, agents, prices, total)),
        table("By agent", kind_table(by_agent(records), "agent", prices, None)),
        table("By model", kind_table(by_model(records), "model", prices, None)),
    ]
    missing = unpriced(rows, prices) if prices else []
    if prices and prices.sources:
        note += f" Prices: {', '.join(sorted(prices.sources))}."
    if missing:
        note += f" No price is known for {', '.join(missing)}: sums that contain it show no cost."
    return document(title, "\n".join(sections), note)


def _by_column(row: TableRow, agents: Sequence[str]) -> Series:
    return [(name, row.of(name) or 0) for name in agents]


def _by_field(row: TableRow) -> Series | None:
    if row.counts is None:
        return None
    return [(name.replace("_", " "), size) for name, size in row.counts.as_dict().items()]


def _by_model(row: TableRow) -> Series:
    return [(name or "unknown", counts.total) for name, counts in (row.models or {}).items()]


def _tiles(rows: Sequence[TableRow], total: TableRow, prices: PriceBook | None) -> str:
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
