"""Entries as text: one event a line, longer words as a block below it.

    2026-11-16 00:53:25 assistant  I will run it.  [1,755 tokens: 1,000 in, 55 out, 200 written, 500 cached]
    2026-11-16 00:53:25 tool       Bash: for i in 1 2 3; do echo $i; done
    2026-11-16 00:53:34 result     55 characters: line 1 ...

Everything foreign is made safe to print, and secrets are taken out, before it is shown or matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape

from fleet.core.record import dataclass, field, replace
from fleet.core.text import for_display, redact
from fleet.transcripts.entries import USAGE, Entry, Role
from fleet.transcripts.page import document
from fleet.transcripts.usage import Counts

_PEEK = 100  # characters of a result that are shown when results are not asked for
_INDENT = " " * 4
_COLOURS = {
    Role.USER: "1;36", Role.ASSISTANT: "1", Role.THINKING: "2;3", Role.TOOL: "33", Role.RESULT: "2",
    Role.ERROR: "1;31", Role.SYSTEM: "2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """What of a transcript is shown, and how."""

    tools: bool = False  # what tools were given and what they gave back, whole
    thinking: bool = False
    since: float | None = None
    pattern: re.Pattern[str] | None = None
    colour: bool = False
    secrets: tuple[str, ...] = ()


@dataclass(slots=True)
class Renderer:
    """Chooses and prints entries; remembers which message's tokens it has told."""

    view: View = field(default_factory=View)
    _told: tuple[str, Counts | None] = ("", None)

    def choose(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """What is to be shown, cleaned. Tokens stay only where they are news."""
        view = self.view
        for entry in entries:
            if entry.role is Role.THINKING and not view.thinking:
                continue
            if view.since is not None and (entry.at is None or entry.at < view.since):
                continue
            text = for_display(redact(entry.text, view.secrets)).strip("\n")
            if view.pattern and not view.pattern.search(f"{entry.tool}: {text}" if entry.tool else text):
                continue
            counts = self._news(entry)
            if counts or entry.text != USAGE:
                yield replace(entry, text=text, counts=counts)

    def _news(self, entry: Entry) -> Counts | None:
        """The tokens of a message, once; again only when a later line of it knows more."""
        if entry.counts is None or (entry.message, entry.counts) == self._told:
            return None
        self._told = (entry.message, entry.counts)
        return entry.counts

    def lines(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Text, ready to print."""
        for entry in self.choose(entries):
            yield from self._block(entry)

    def _block(self, entry: Entry) -> Iterator[str]:
        text = (
            entry.text
            if self.view.tools or entry.role not in (Role.TOOL, Role.RESULT)
            else _first(entry.text)
        )
        head, *rest = text.split("\n") if text else [""]
        parts = [_label(entry), head]
        if entry.counts:
            parts.append(f"[{told(entry.counts)}]")
        mark = "  » " if entry.side else " "
        role = self._paint(f"{entry.role:<9}", _COLOURS[entry.role])
        yield f"{moment(entry.at)} {role}{mark}{' '.join(part for part in parts if part)}".rstrip()
        for line in rest:
            yield f"{_INDENT}{line}".rstrip()

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.view.colour else text


def moment(at: float | None) -> str:
    """Local time to the second; a record without a date keeps the columns straight."""
    if at is None:
        return "-" * 19
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "-" * 19


def told(counts: Counts) -> str:
    """The tokens of one message in words."""
    parts = zip(counts.as_dict().values(), ("in", "out", "written", "cached"), strict=True)
    return f"{counts.total:,} tokens: " + ", ".join(f"{size:,} {word}" for size, word in parts if size)


def _label(entry: Entry) -> str:
    if entry.role is Role.RESULT:
        size = f"{entry.size:,} characters" if entry.size is not None else ""
        words = " ".join(word for word in (entry.tool, size, "FAILED" if entry.failed else "") if word)
        return f"{words}:" if words else ""
    return f"{entry.tool}:" if entry.tool else ""


def _first(text: str) -> str:
    """The opening of a text, in one line, with a sign when something is missing."""
    line = " ".join(text[: _PEEK * 4].split())
    return line if len(line) <= _PEEK and len(text) <= _PEEK * 4 else line[:_PEEK] + " ..."


_PAGE_STYLE = """
article { border-left: 3px solid var(--line); padding: .1rem .9rem; margin: .9rem 0 }
article.user { border-color: var(--s5) } article.assistant { border-color: var(--s0) }
article.tool, article.result { border-color: var(--s4) } article.error { border-color: var(--s6) }
article.thinking { border-color: var(--s7); font-style: italic }
article.side { margin-left: 2rem }
article.system { margin: .4rem 0; color: var(--soft) } article.system pre { margin: 0 }
header { color: var(--soft); font-size: .82rem }
pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.5 ui-monospace, monospace }
article.user pre, article.assistant pre { font: inherit }
summary { cursor: pointer; color: var(--soft) }
"""


def page(entries: Iterable[Entry], renderer: Renderer, *, title: str, note: str) -> str:
    """The same as a page to read and to pass on: results fold, nothing is loaded from anywhere."""
    return document(title, "\n".join(map(_article, renderer.choose(entries))), note, _PAGE_STYLE)


def _article(entry: Entry) -> str:
    tokens = f" · {told(entry.counts)}" if entry.counts else ""
    side = " · sub-agent" if entry.side else ""
    model = f" · {entry.model}" if entry.counts and entry.model else ""
    head = escape(
        f"{moment(entry.at)} · {entry.role} {_label(entry).rstrip(':')}".rstrip() + model + tokens + side
    )
    body = f"<pre>{escape(entry.text)}</pre>" if entry.text != USAGE else ""
    if entry.role is Role.RESULT and entry.text:
        body = f"<details><summary>{escape(_first(entry.text))}</summary>{body}</details>"
    kind = f"{entry.role} side" if entry.side else str(entry.role)
    return f'<article class="{kind}"><header>{head}</header>{body}</article>'
