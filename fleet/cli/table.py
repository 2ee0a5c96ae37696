"""Columns for people. Knows how wide characters are, and never lets a hostile one through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fleet.cli.common import clean
from fleet.core.text import width

GAP = "  "


def render(
    header: Sequence[str], rows: Sequence[Sequence[Any]], *, limit: int, paint: Callable[[str, str], str]
) -> Iterator[str]:
    """Lines of a table. A cell is a text or (text, colour); `limit` 0 means as wide as needed."""
    grid = [[(name.upper(), "bold", width(name)) for name in header]]
    grid += [[_cell(cell) for cell in row] for row in rows]
    widths = [max(cell[2] for cell in column) for column in zip(*grid, strict=True)]
    if limit and sum(widths) + len(GAP) * (len(widths) - 1) > limit:
        others = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        widths[-1] = max(limit - others, 8)
    for row in grid:
        cells = []
        for (text, colour, taken), room in zip(row, widths, strict=True):
            shown = text if taken <= room else fit(text, room)
            pad = " " * (room - (taken if shown is text else width(shown)))
            cells.append((paint(shown, colour) if colour else shown) + pad)
        yield GAP.join(cells).rstrip()


def _cell(cell: Any) -> tuple[str, str, int]:
    """What is shown, in which colour, and how wide it is."""
    text, colour = cell if isinstance(cell, tuple) else (cell, "")
    text = clean(str(text))
    return text, colour, width(text)


def fit(text: str, room: int) -> str:
    """The text, or as much of it as fits with a sign that something is missing."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…"
