"""The list of agents: drawn line by line, so that two hundred cost what changed and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fleet.extras.top.cells import GAP, Cell, Column
from fleet.extras.top.style import CURSOR, STYLES, UNSEEN_CURSOR

Line = tuple[str, Mapping[str, Cell]]  # a name, and its cells by column


class Roster(ScrollView, can_focus=True):
    """One line an agent; knows who is selected by name, so that reordering does not move the choice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("home,g", "move(-100000)", show=False),
        Binding("end,G", "move(100000)", show=False),
    ]

    class Selected(Message):
        """Another agent is the chosen one."""

    def __init__(self) -> None:
        super().__init__(id="roster")
        self._lines: list[Line] = []
        self._columns: Sequence[tuple[int, Column]] = ()
        self.selected = ""
        self.drawn = 0  # lines that had to be drawn again so far

    @property
    def place(self) -> int:
        """Where the selected one stands; the first line when it is not there."""
        return next((n for n, (name, _) in enumerate(self._lines) if name == self.selected), 0)

    def show(self, lines: Sequence[Line], columns: Sequence[tuple[int, Column]]) -> None:
        """Draw these; only lines that differ are drawn."""
        before, old_place = self._lines, self.place
        whole = columns != self._columns or len(lines) != len(before)
        self._lines, self._columns = list(lines), columns
        if lines and self.selected not in {name for name, _ in lines}:
            self.selected = lines[min(old_place, len(lines) - 1)][0]
            self.post_message(self.Selected())
        if whole:
            width = sum(size + GAP for size, _ in columns)
            self.virtual_size = Size(width, len(lines))
            self.styles.height = max(1, len(lines))
            self.refresh()
            return
        changed = {n for n, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new}
        if self.place != old_place:
            changed |= {self.place, old_place}
        for number in changed:
            self._refresh_line(number)

    def action_move(self, step: int) -> None:
        """Choose another one."""
        if self._lines:
            self._choose(min(max(self.place + step, 0), len(self._lines) - 1))

    def on_click(self, event: events.Click) -> None:
        """Choose the line under the mouse."""
        number = event.y + self.scroll_offset.y
        if number < len(self._lines):
            self._choose(number)

    def render_line(self, y: int) -> Strip:
        """One line of the widget."""
        number = y + self.scroll_offset.y
        width = self.size.width
        if number >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        self.drawn += 1
        name, cells = self._lines[number]
        chosen = UNSEEN_CURSOR if self.app.no_color else CURSOR
        base = self.rich_style + (chosen if name == self.selected else Style())
        mark = "▌" if name == self.selected else " "
        segments = [Segment(mark, base + STYLES["title"]), *drawn(cells, self._columns, base)]
        return Strip(segments).adjust_cell_length(width, base)

    def _choose(self, number: int) -> None:
        old, self.selected = self.place, self._lines[number][0]
        for line in {old, number}:
            self._refresh_line(line)
        self.scroll_to_region(Region(0, number, 1, 1), animate=False)
        self.post_message(self.Selected())

    def _refresh_line(self, number: int) -> None:
        self.refresh(Region(0, number - self.scroll_offset.y, self.size.width, 1))


def drawn(cells: Mapping[str, Cell], columns: Sequence[tuple[int, Column]], base: Style) -> list[Segment]:
    """A row's cells, each exactly as wide as its column."""
    segments = []
    for size, column in columns:
        cell = cells.get(column.title, Cell(""))
        text = set_cell_size(cell.text, size)
        if column.right:
            text = " " * (size - len(cell.text)) + cell.text if len(cell.text) <= size else text
        segments.append(Segment(text + " " * GAP, base + STYLES[cell.style]))
    return segments
