"""Where things stand on an agent's screen: content above, composer and footer below, or an open dialog.

A profile's `screen` table names the landmarks as regexes, each matched at the start of a line that lost its
trailing blanks:

  open, composer, close   the composer: an edge above, its first line (group `draft` is what was typed), an
                          edge below. Without `close` it is the last composer line with just chrome below
  inside                  instead of `open`: every line of the composer (group `draft`); the last is a label,
                          and a row of words stands below its edge
  folded                  what the composer shows in place of a long paste
  commands                the composer's first line while it runs what is typed there as commands
  placeholder             a whole draft that is the CLI's own hint
  overlay                 the title of a window drawn over everything else; what is typed goes there
  hint, option            the key line under a dialog; the choice that its cursor points at
  user, said, tool,       what a line begins: a user's turn, the agent's words, a tool call, a tool's output,
  output, notice, status, a notice of the CLI itself, a spinner or the summary of a turn, the one-line
  summary                 account of tool calls that are not shown
  bar                     instead of `user`: turns, tool calls and errors all stand in boxes of such lines
  echo                    looks like a user's turn, but the CLI wrote it
  header                  how the CLI greets: what stands above is of an earlier life, or of the shell
  queued                  messages that wait to be taken: shown near the composer, not taken yet
  aside                   neither content nor composer: hints at the right margin
  margin                  group `cut` ends at the right edge of the main column: a sidebar is cut off

Only what follows the last user's turn, or the greeting below it, is live. A block reaches to the next
landmark, so a quotation inside the agent's words or inside a tool's output never stands on its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

COMPOSER_REACH = 40  # lines: a longer composer would fill the screen
OPTION_REACH = 12  # lines from the bottom in which a choice without a key line may stand
HINT_REACH = 4
HEAD = 8  # lines of a block that are looked at: a verdict is never deep inside


class Kind(StrEnum):
    """Who speaks in a block."""

    USER = "user"
    SAID = "said"
    TOOL = "tool"
    OUTPUT = "output"
    NOTICE = "notice"
    STATUS = "status"
    SUMMARY = "summary"
    QUEUED = "queued"
    BAR = "bar"
    OTHER = "other"  # the rest of something that scrolled away, or a kind of line we do not know


_KIND: dict[str | None, Kind] = {kind.value: kind for kind in Kind}
_ANSWERED = {Kind.TOOL, Kind.SAID, Kind.OTHER}  # blocks whose first output is their own


@dataclass(slots=True)
class Block:
    """A landmark line and everything up to the next one."""

    kind: Kind
    lines: list[str]

    @property
    def text(self) -> str:
        """Its head as one line: wrapping undone."""
        return " ".join(" ".join(self.lines[:HEAD]).split())

    @property
    def last(self) -> str:
        """Its last line."""
        return self.lines[-1]


@dataclass(slots=True)
class Parts:
    """One screen, cut up."""

    live: list[Block] = field(default_factory=list)
    composer: str | None = None  # its first line
    draft: str | None = None
    commands: bool = False
    queued: str = ""
    footer: list[str] = field(default_factory=list)
    dialog: str = ""  # the text of an open dialog

    @property
    def newest(self) -> Block | None:
        """The last block that is not a spinner or a summary of the turn."""
        return next((b for b in reversed(self.live) if b.kind is not Kind.STATUS), None)

    @property
    def status(self) -> Block | None:
        """The spinner or summary below everything else."""
        return self.live[-1] if self.live and self.live[-1].kind is Kind.STATUS else None

    @property
    def notices(self) -> list[Block]:
        """What the CLI itself said last, newest first: nothing but its own lines stands below."""
        found = []
        for block in reversed(self.live):
            if block.kind is Kind.NOTICE:
                found.append(block)
            elif block.kind is not Kind.STATUS:
                break
        return found


class Layout:
    """The compiled landmarks of one profile."""

    KINDS = (
        Kind.USER, Kind.BAR, Kind.NOTICE, Kind.TOOL, Kind.OUTPUT, Kind.QUEUED, Kind.STATUS, Kind.SUMMARY,
        Kind.SAID,
    )  # fmt: skip

    def __init__(self, landmarks: dict[str, str]) -> None:
        def mark(name: str) -> re.Pattern[str] | None:
            return re.compile(landmarks[name]) if landmarks.get(name) else None

        self.open, self.close, self.composer, self.inside = map(mark, ("open", "close", "composer", "inside"))
        self.placeholder, self.hint, self.option = map(mark, ("placeholder", "hint", "option"))
        self.user, self.echo, self.aside, self.margin = map(mark, ("user", "echo", "aside", "margin"))
        self.header, self.overlay, self.commands = map(mark, ("header", "overlay", "commands"))
        starts = [f"(?P<{kind}>{landmarks[kind]})" for kind in self.KINDS if landmarks.get(kind)]
        self.start = re.compile("|".join(starts)) if starts else None

    def cut(self, lines: list[str]) -> Parts:
        """The parts of a screen whose lines have no trailing blanks and whose last line is not empty."""
        lines = self._main_column(lines)
        parts = Parts()
        end = len(lines)
        over = self._overlaid(lines)
        composer = self._find_composer(lines) if over is None else None
        if over is not None:
            end, parts.dialog = over, "\n".join(lines[over:])
        elif composer and not self._is_choice(lines, composer):
            end = self._take_composer(lines, composer, parts)
        elif self._asks(lines):
            top, end = self._dialog_span(lines)
            parts.dialog = "\n".join(lines[top:])
        if parts.dialog and self.header and any(self.header.match(line) for line in lines[end:]):
            return parts  # it greets in a dialog: nothing above is its own
        blocks = self._blocks(lines, end)
        parts.live = [block for block in blocks if block.kind is not Kind.QUEUED]
        if len(parts.live) < len(blocks):
            parts.queued = "\n".join(line for b in blocks if b.kind is Kind.QUEUED for line in b.lines)
        return parts

    def _main_column(self, lines: list[str]) -> list[str]:
        for line in reversed(lines) if self.margin else ():
            edge = self.margin.match(line) if self.margin else None
            if edge:
                return [text[: edge.end("cut")].rstrip() for text in lines]
        return lines

    def _overlaid(self, lines: list[str]) -> int | None:
        begins = self.overlay.match if self.overlay else None
        return next((i for i, line in enumerate(lines) if begins(line)), None) if begins else None

    def _find_composer(self, lines: list[str]) -> tuple[int, int, int] | None:
        """Where content ends, where the composer's first line is, and where its last has been."""
        if not self.close:
            for i in range(len(lines) - 1, -1, -1) if self.composer else ():
                if self.composer and self.composer.match(lines[i]):
                    end = self._last_paragraph(lines, i)
                    return (i, i, end) if self._only_chrome(lines, i + 1, end) else None
            return None
        bottom = next((i for i in range(len(lines) - 1, -1, -1) if self.close.match(lines[i])), -1)
        while bottom > 0 and self.close.match(lines[bottom - 1]):
            bottom -= 1  # in a narrower terminal an edge takes several lines
        return self._above_edge(lines, bottom) if bottom > 0 else None

    def _above_edge(self, lines: list[str], bottom: int) -> tuple[int, int, int] | None:
        if self.open and self.composer:
            for top in range(bottom - 2, max(bottom - COMPOSER_REACH, -1), -1):
                if self.open.match(lines[top]):
                    return (top, top + 1, bottom) if self.composer.match(lines[top + 1]) else None
        elif self.inside:
            top = bottom
            while top and self.inside.match(lines[top - 1]):
                top -= 1
            return (top, top, bottom) if top < bottom and any(lines[bottom + 1 :]) else None
        return None

    def _only_chrome(self, lines: list[str], begin: int, footer: int) -> bool:
        """Below the line we type on stands more of what is typed, all of it indented, and then the chrome.

        What is typed may look like anything. The chrome is neither words nor the keys of a dialog.
        """
        chrome = lines[footer:]
        if not chrome or any(line and line[0] != " " for line in lines[begin:]):
            return False  # words, or the rest of the screen is missing: a turn that was taken long ago
        begun = self.start and any(self.start.match(line) for line in chrome)
        return not begun and not self._hinted(chrome)

    @staticmethod
    def _paragraph(lines: list[str], begin: int) -> int:
        end = begin + 1
        while end < len(lines) and lines[end]:
            end += 1
        return end

    @staticmethod
    def _last_paragraph(lines: list[str], first: int) -> int:
        """Where the row of chrome begins: what is typed may hold empty lines, the chrome holds none."""
        begin = len(lines)
        while begin > first + 1 and lines[begin - 1]:
            begin -= 1
        return begin if begin > first + 1 else len(lines)

    def _is_choice(self, lines: list[str], span: tuple[int, int, int]) -> bool:
        """A dialog's cursor line may look like a composer; the keys named below its edge tell."""
        _, first, after = span
        return bool(self.option and self.option.match(lines[first]) and self._hinted(lines[after:]))

    def _hinted(self, lines: list[str]) -> bool:
        return bool(self.hint and any(self.hint.match(line) for line in lines[-HINT_REACH:]))

    def _asks(self, lines: list[str]) -> bool:
        return self._hinted(lines) or bool(
            self.option and any(self.option.match(line) for line in lines[-OPTION_REACH:])
        )

    def _take_composer(self, lines: list[str], span: tuple[int, int, int], parts: Parts) -> int:
        top, first, after = span
        parts.composer = lines[first]
        parts.commands = bool(self.commands and self.commands.match(lines[first]))
        parts.footer = [line for line in lines[after:] if line]
        if self.inside:
            found = [self.inside.match(line) for line in lines[first : after - 1]]
            typed = [match["draft"] or "" for match in found if match]
        else:
            head = self.composer.match(lines[first]) if self.composer else None
            typed = [
                (head and head["draft"]) or "",
                *(t.removeprefix("  ") for t in lines[first + 1 : after]),
            ]
        draft = "\n".join(text.strip("\u00a0 ") for text in typed).strip()
        parts.draft = "" if self.placeholder and self.placeholder.fullmatch(draft) else draft
        return top

    def _dialog_span(self, lines: list[str]) -> tuple[int, int]:
        """Where an open dialog begins, and where the content above it ends."""
        for i in range(len(lines) - 1, -1, -1):
            line = lines[i]
            edge = self.open and self.open.match(line) and not self._between_choices(lines, i)
            if edge or (self.header and self.header.match(line)):
                return i, i
            if self.hint and i < len(lines) - HINT_REACH and self.hint.match(line):
                return i + 1, i + 1  # the keys of an older dialog
            choice = self.option and self.option.match(line)
            begun = self.start.match(line) if self.start and line and not choice else None
            if begun and begun.lastgroup == Kind.BAR:
                return (self._first_of_run(lines, i),) * 2
            if begun:  # a block may go on over some lines; the dialog may follow without a gap
                return i + 1, self._paragraph(lines, i)
        return 0, 0

    def _between_choices(self, lines: list[str], i: int) -> bool:
        return bool(self.option and any(self.option.match(line) for line in lines[max(i - 9, 0) : i]))

    def _first_of_run(self, lines: list[str], i: int) -> int:
        while i and self.start and lines[i - 1] and self.start.match(lines[i - 1]):
            i -= 1
        return i

    def _blocks(self, lines: list[str], end: int) -> list[Block]:
        blocks: list[Block] = []
        start, aside = self.start, self.aside
        last: Kind | None = None
        gap = True  # a blank line stands before this one
        for line in lines[self._live_from(lines, end) : end]:
            if not line:
                gap = True
            elif aside and aside.match(line):
                continue
            else:
                found = start.match(line) if start else None
                kind = _KIND[found.lastgroup] if found else None
                if kind is Kind.OUTPUT and last:
                    kind = self._owner(last)
                if kind is Kind.USER and self.echo and self.echo.match(line):
                    kind = None
                joins = kind is last and not gap and kind in {Kind.STATUS, Kind.BAR}
                if last is None or (kind and not joins):
                    last = kind or Kind.OTHER
                    blocks.append(Block(last, [line]))
                else:
                    blocks[-1].lines.append(line)
                gap = False
        return blocks

    def _live_from(self, lines: list[str], end: int) -> int:
        """The last user's turn or the last greeting, whichever is the lower."""
        for i in range(end - 1, -1, -1):
            line = lines[i]
            if self.header and self.header.match(line):
                return i
            if self.user and self.user.match(line) and not (self.echo and self.echo.match(line)):
                return i
        return 0

    @staticmethod
    def _owner(above: Kind) -> Kind:
        """On a spinner it is a tip; on a turn, a summary or another output it is the CLI's answer."""
        if above is Kind.STATUS:
            return Kind.STATUS
        return Kind.OUTPUT if above in _ANSWERED else Kind.NOTICE
