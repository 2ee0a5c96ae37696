"""One page that needs nothing but itself: inline style, inline SVG, no script, nothing loaded.

Colours follow the reader's light or dark setting. All text from outside is escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fleet.transcripts.report import shown

Series = list[tuple[str, int]]  # name and size of each piece of a bar
_LEFT, _RIGHT, _WIDE, _HIGH = (
    150,
    110,
    760,
    26,
)  # room for names, for figures; the picture; a bar with its gap


def chart(title: str, rows: Sequence[tuple[str, Series | None]]) -> str:
    """Horizontal stacked bars. A name keeps its colour within the chart; hovering tells the figure."""
    names = list(dict.fromkeys(name for _, series in rows for name, size in series or () if size))
    most = max((sum(size for _, size in series or ()) for _, series in rows), default=0)
    if not most:
        return ""
    legend = "".join(
        f'<li><i class="s{index % 8}"></i>{escape(name)}</li>' for index, name in enumerate(names)
    )
    room, drawn = _WIDE - _LEFT - _RIGHT, []
    for line, (label, series) in enumerate(rows):
        top, left = line * _HIGH, float(_LEFT)
        drawn.append(f'<text x="{_LEFT - 8}" y="{top + 17}" text-anchor="end">{escape(_cut(label))}</text>')
        for name, size in series or ():
            wide = size * room / most
            if size:
                tip = escape(f"{label}: {name} {size:,}")
                drawn.append(
                    f'<rect class="s{names.index(name) % 8}" x="{left:.1f}" y="{top + 4}"'
                    f' width="{max(wide, 0.5):.1f}" height="18"><title>{tip}</title></rect>'
                )
            left += wide
        figure = shown(None if series is None else sum(size for _, size in series))
        drawn.append(f'<text class="figure" x="{left + 6:.1f}" y="{top + 17}">{figure}</text>')
    svg = f'<svg viewBox="0 0 {_WIDE} {len(rows) * _HIGH}" role="img" aria-label="{escape(title)}">'
    heading = f'<h2>{escape(title)}</h2><ul class="legend">{legend}</ul>'
    return f"<section>{heading}{svg}{''.join(drawn)}</svg></section>"


def _cut(label: str, room: int = 20) -> str:
    return label if len(label) <= room else label[: room - 1] + "…"


def table(title: str, header: Sequence[str], grid: Sequence[Sequence[object]]) -> str:
    """Figures as figures."""
    money = header[-1] == "USD"
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in header)
    body = ""
    for cells in grid:
        texts = [shown(c, money=money and i == len(cells) - 1) for i, c in enumerate(cells)]
        body += "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in texts) + "</tr>"
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
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem }
.tiles div { padding: .7rem .9rem }
.tiles b { display: block; font-size: 1.2rem; white-space: nowrap }
.tiles span, footer { color: var(--soft); font-size: .85rem }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem;
  margin: 0 0 .6rem; padding: 0; font-size: .85rem }
.legend i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .4em }
svg { display: block; width: 100%; height: auto }
svg text { fill: var(--ink); font-size: 13px }
svg .figure { fill: var(--soft) }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
table, .tiles b, svg { font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left }
th { color: var(--soft); font-weight: 600 }
""" + "".join(f".s{n} {{ fill: var(--s{n}); background: var(--s{n}) }}\n" for n in range(8))


def document(title: str, body: str, note: str, style: str = "") -> str:
    """A page around some sections."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n<footer>{escape(note)}</footer></body></html>\n"
    )
