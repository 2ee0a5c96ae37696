"""Columns of text for people. Knows how wide characters are, and never lets a hostile one through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from fleet.core.text import escaped, width

GAP = "  "


def render(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    limit: int = 0,
    paint: Callable[[str, str], str] | None = None,
    figures: bool = False,
    ruled: Collection[int] = (),
) -> Iterator[str]:
    """Yield the lines of a table.

    A cell is a text or (text, colour). `limit`: how wide a line may be, 0 for as wide as needed; the last
    column is cut to fit. `figures` puts every column but the first to the right. A line of dashes stands
    above the rows whose numbers are in `ruled`.
    """
    grid = [[(name, "bold", width(name)) for name in map(escaped, header)]]
    grid += [[_cell(cell) for cell in row] for row in rows]
    widths = [max(cell[2] for cell in column) for column in zip(*grid, strict=True)]
    whole = sum(widths) + len(GAP) * (len(widths) - 1)
    if limit and whole > limit:
        widths[-1] = max(limit - (whole - widths[-1]), 8)
    for number, row in enumerate(grid, start=-1):
        if number in ruled:
            yield "-" * whole
        cells = []
        for column, ((text, colour, taken), room) in enumerate(zip(row, widths, strict=True)):
            shown = text if taken <= room else fit(text, room)
            pad = " " * (room - (taken if shown is text else width(shown)))
            painted = paint(shown, colour) if paint and colour else shown
            cells.append(pad + painted if figures and column else painted + pad)
        yield GAP.join(cells).rstrip()


def _cell(cell: Any) -> tuple[str, str, int]:
    """What is shown, in which colour, and how wide it is."""
    text, colour = cell if isinstance(cell, tuple) else (cell, "")
    text = escaped(str(text))
    return text, colour, width(text)


def fit(text: str, room: int) -> str:
    """The text, or as much of it as fits with a sign that something is missing."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…"
