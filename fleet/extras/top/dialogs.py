"""What opens over the view: a question, a line to type, a page to read. All of it shows text as text."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from fleet.text import for_display


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

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """A title and a field."""
        with Vertical(classes="box"):
            yield Static(Text(self._title))
            yield Input(self._value)

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
