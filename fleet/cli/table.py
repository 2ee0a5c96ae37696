"""Columns for people. Knows how wide characters are, and never lets a hostile one through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fleet.cli.common import clean

GAP = "  "


def render(
    header: Sequence[str], rows: Sequence[Sequence[Any]], *, limit: int, paint: Callable[[str, str], str]
) -> Iterator[str]:
    """Lines of a table. A cell is a text or (text, colour); `limit` 0 means as wide as needed."""
    grid = [[(name.upper(), "bold") for name in header]]
    grid += [[cell if isinstance(cell, tuple) else (str(cell), "") for cell in row] for row in rows]
    grid = [[(clean(str(text)), colour) for text, colour in row] for row in grid]
    widths = [max(width(row[i][0]) for row in grid) for i in range(len(header))]
    if limit and sum(widths) + len(GAP) * (len(widths) - 1) > limit:
        others = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        widths[-1] = max(limit - others, 8)
    for row in grid:
        cells = []
        for (text, colour), room in zip(row, widths, strict=True):
            shown = fit(text, room)
            cells.append(paint(shown, colour) + " " * (room - width(shown)))
        yield GAP.join(cells).rstrip()


def width(text: str) -> int:
    """How many terminal cells a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def fit(text: str, room: int) -> str:
    """The text, or as much of it as fits with a sign that something is missing."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…"
