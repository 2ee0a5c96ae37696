"""What the view is made of: the list of agents, the dialogs over it, a captured screen, and the colours.

Everything here shows text as text. Signs and words carry the meaning; colour only helps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from fleet.extras.top.cells import GAP, Cell, Column
from fleet.text import for_display

STYLES = {
    "": Style(),
    "title": Style(bold=True, color="#7dd3fc"),
    "name": Style(bold=True),
    "good": Style(color="#4ade80"),
    "calm": Style(color="#cbd5e1"),
    "warm": Style(color="#fbbf24"),
    "bad": Style(color="#f87171", bold=True),
    "soft": Style(color="#7c8aa0"),
}
CURSOR = Style(bgcolor="#1e3a5f")
UNSEEN_CURSOR = Style(reverse=True)  # where there is no colour

CSS = """
Screen { background: #0b1220; color: #e2e8f0; layout: vertical; overflow: hidden; }
#head { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 1; background: #16213a; }
#phases { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 1; }
#problems { height: auto; max-height: 4; padding: 0 1; background: #2a1215; }
#problems, #columns { text-wrap: nowrap; text-overflow: ellipsis; }
#columns { height: 1; }
#roster { height: auto; max-height: 40%; min-height: 1; scrollbar-size-vertical: 1; }
#filter { height: 3; border: round #334155; background: #0b1220; }
#pane { height: 1fr; min-height: 3; border: round #334155; border-title-color: #7dd3fc; }
#screen { height: auto; text-wrap: nowrap; text-overflow: clip; }
#stream { height: 25%; min-height: 3; max-height: 12; border: round #334155; border-title-color: #7c8aa0; }
#events { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
#keys { height: 1; background: #16213a; }
ModalScreen { align: center middle; background: #000000 50%; }
.box { width: 70%; height: auto; padding: 1 2; border: round #7dd3fc; background: #16213a; }
.page { width: 92%; height: 90%; padding: 0 1; border: round #7dd3fc; background: #0f1a2e; }
Toast { background: #16213a; }
"""

EMPTY = Cell("")
Line = tuple[str, Mapping[str, Cell]]  # a name, and its cells by column


def painted(said: Sequence[Cell]) -> Text:
    """Cells as one text; what they hold is never read as markup."""
    parts = ((cell.text, STYLES[cell.style]) for cell in said)
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis", end="")


# --- the list of agents -----------------------------------------------------------------------------------


class Roster(ScrollView, can_focus=True):
    """One line per agent, drawn line by line, so that two hundred agents cost what changed and no more.

    The selected agent is known by its name: reordering does not move the choice.
    """

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
    """A row's cells, each exactly as wide as its column. A text that is cut ends with an ellipsis."""
    return [
        Segment(
            fitted(cells.get(column.title, EMPTY).text, size, right=column.right) + " " * GAP,
            base + STYLES[cells.get(column.title, EMPTY).style],
        )
        for size, column in columns
    ]


def fitted(text: str, size: int, *, right: bool = False) -> str:
    """A text in exactly so many columns of the terminal."""
    if cell_len(text) > size:
        return set_cell_size(text, size - 1) + "…"
    return " " * (size - cell_len(text)) + text if right else set_cell_size(text, size)


# --- dialogs ----------------------------------------------------------------------------------------------


class Sure(ModalScreen[bool]):
    """Yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y,enter", "answer(True)", "Yes"),
        ("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """One line, and which keys answer it."""
        with Vertical(classes="box"):
            yield Static(Text(self._question))
            yield Static(Text("y  yes     n  no", style="dim"))

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001 - named by the binding
        """Give it."""
        self.dismiss(yes)


class Ask(ModalScreen[str]):
    """A line of the person's own words; empty when they changed their mind."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "leave", "Cancel")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        """A title and a field."""
        with Vertical(classes="box"):
            yield Static(Text(self._title))
            yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Leave it."""
        self.dismiss("")


class Page(ModalScreen[None]):
    """Something longer to read."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,enter", "leave", "Close")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, as long as it is."""
        with VerticalScroll(classes="page") as box:
            box.border_title = Text(self._title)
            box.border_subtitle = "esc closes"
            yield Static(Text(for_display(self._text), no_wrap=False))

    def on_mount(self) -> None:
        """The keys scroll at once."""
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        """Close it."""
        self.dismiss(None)


# --- a captured screen ------------------------------------------------------------------------------------
# As text with colours, and nothing else: no links, no titles, no cursor, no markup.

SGR = re.compile(r"\x1b\[([0-9;:]*)m")
FINER = re.compile(r"(\d+):[\d:]*")  # 4:3, a curly underline; the plain one will do


def screen_text(raw: str, height: int) -> Text:
    """The last lines of a screen that fit, as they look in a terminal."""
    lines = raw.split("\n")
    while lines and not SGR.sub("", lines[-1]).strip():
        lines.pop()
    # a colour may have begun on any line above: all of them are read, few are shown
    whole = Text.from_ansi("\n".join(map(safe, lines)), no_wrap=True, overflow="crop", end="")
    shown = whole.split("\n")[-height:] if height > 0 else []
    return Text("\n", no_wrap=True, overflow="crop", end="").join(shown)


def safe(line: str) -> str:
    """Only colours survive; everything else that could steer a terminal is taken out."""
    parts = SGR.split(line)
    return "".join(
        f"\x1b[{_plain(part)}m" if number % 2 else for_display(part) for number, part in enumerate(parts)
    )


def _plain(codes: str) -> str:
    return FINER.sub(r"\1", codes)
