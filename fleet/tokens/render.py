"""Entries as text: one event a line, longer words as a block below it.

    2026-11-16 00:53:25 assistant  I will run it.  [1,755 tokens: 1,000 in, 55 out, 200 written, 500 cached]
    2026-11-16 00:53:25 tool       Bash: for i in 1 2 3; do echo $i; done
    2026-11-16 00:53:34 result     Bash 55 characters: line 1 ...

Everything foreign is made safe to print, and secrets are taken out, before it is shown or matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

from fleet.backends.ledger import Counts
from fleet.backends.readers import USAGE, Entry, Role
from fleet.text import for_display, redact
from fleet.tokens.page import Facts, document, tiles

_PEEK = 100  # characters of a result that are shown when results are not asked for
_INDENT = " " * 4
_COLOURS = {
    Role.USER: "1;36", Role.ASSISTANT: "1", Role.THINKING: "2;3", Role.TOOL: "33", Role.RESULT: "2",
    Role.ERROR: "1;31", Role.SYSTEM: "2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manner:
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

    view: Manner = field(default_factory=Manner)
    _told: tuple[str, Counts | None] = ("", None)
    _calls: dict[str, str] = field(default_factory=dict)  # tools that have not answered yet

    def choose(self, entries: Iterable[Entry], *, brief: bool = False) -> Iterator[Entry]:
        """What is to be shown, cleaned. Tokens stay only where they are news.

        With `brief` the opening of what tools got and gave will do: the rest need not even be cleaned.
        """
        view = self.view
        for entry in map(self._named, entries):
            if entry.role is Role.THINKING and not view.thinking:
                continue
            if view.since is not None and (entry.at is None or entry.at < view.since):
                continue
            peek = brief and entry.role in (Role.TOOL, Role.RESULT)
            text = entry.text[: _PEEK * 40] if peek else entry.text
            text = for_display(redact(text, view.secrets)).strip("\n")
            more = for_display(redact(entry.more, view.secrets)) if entry.more else ""
            said = f"{_label(entry)} {text}".lstrip()
            if view.pattern and not view.pattern.search(f"{said}\n{more}" if view.tools else said):
                continue
            counts = self._news(entry)
            if counts or entry.text != USAGE:
                yield entry._replace(text=text, counts=counts, more=more)

    def _named(self, entry: Entry) -> Entry:
        """A result bears the name of the tool it came from."""
        if entry.call and entry.role is Role.TOOL:
            self._calls[entry.call] = entry.tool
        elif entry.call and not entry.tool:
            return entry._replace(tool=self._calls.pop(entry.call, ""))
        return entry

    def _news(self, entry: Entry) -> Counts | None:
        """The tokens of a message, once; again only when a later line of it knows more."""
        if entry.counts is None or (entry.message, entry.counts) == self._told:
            return None
        self._told = (entry.message, entry.counts)
        return entry.counts

    def lines(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Text, ready to print."""
        for entry in self.choose(entries, brief=not self.view.tools and self.view.pattern is None):
            yield from self._block(entry)

    def _block(self, entry: Entry) -> Iterator[str]:
        text = (
            entry.text
            if self.view.tools or entry.role not in (Role.TOOL, Role.RESULT)
            else _first(entry.text)
        )
        if self.view.tools and entry.more:
            text = f"{text}\n{entry.more}"
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
h2 { margin: 1.8rem 0 .6rem; color: var(--soft); font-weight: 600 }
article { border-left: 3px solid var(--line); padding: .1rem .9rem; margin: .8rem 0 }
article.user { border-color: var(--s5) } article.assistant { border-color: var(--s0) }
article.tool, article.result { border-color: var(--s4) } article.thinking { border-color: var(--s7) }
article.error, article.failed { border-color: var(--s6) }
article.error b, article.failed b { color: var(--s6) }
article.user b { color: var(--s5) } article.assistant b { color: var(--s0) }
article.tool b { color: var(--s4) }
article.side { margin-left: 2rem }
article.system { margin: .3rem 0 }
header, summary { color: var(--soft); font-size: .82rem }
header time { float: right; margin-left: 1rem; font-variant-numeric: tabular-nums }
pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.5 ui-monospace, monospace }
article.user pre, article.assistant pre, article.error pre, article.thinking pre { font: inherit }
article.thinking pre { font-style: italic; color: var(--soft) }
summary { cursor: pointer; overflow-wrap: anywhere }
"""


def page(entries: Iterable[Entry], renderer: Renderer, *, title: str, facts: Facts, note: str) -> str:
    """The same as a page to read and to pass on: results fold, nothing is loaded from anywhere."""
    body, day = [tiles(facts)], ""
    for entry in renderer.choose(entries):
        date, _, clock = moment(entry.at).rpartition(" ")
        if date and date != day:
            body.append(f"<h2>{date}</h2>")
            day = date
        body.append(_article(entry, clock))
    return document(title, "\n".join(body), note, _PAGE_STYLE)


def _article(entry: Entry, clock: str) -> str:
    kinds = [str(entry.role), *(["side"] if entry.side else []), *(["failed"] if entry.failed else [])]
    parts = [_label(entry).rstrip(":")]
    if entry.role is Role.SYSTEM and entry.text != USAGE and "\n" not in entry.text:
        parts.append(entry.text)
    if entry.counts:
        parts += [entry.model, told(entry.counts)]
    parts += ["sub-agent"] if entry.side else []
    head = f"<time>{clock}</time><b>{entry.role}</b> " + escape(" · ".join(part for part in parts if part))
    body = "" if entry.text == USAGE or entry.text in parts else f"<pre>{escape(entry.text)}</pre>"
    if entry.role is Role.RESULT and entry.text:
        body = _folded(_first(entry.text), body)
    elif entry.more:
        body += _folded("what else it was given", f"<pre>{escape(entry.more)}</pre>")
    return f'<article class="{" ".join(kinds)}"><header>{head}</header>{body}</article>'


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"
