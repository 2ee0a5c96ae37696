"""Where things stand on an agent's screen: content above, composer and footer below, or an open dialog.

A profile's `[screen]` table names the landmarks as regexes; each is matched at the start of a line that
lost its trailing blanks:

  open, composer, close   the composer: an edge above, its first line (group `draft` is what was typed), an
                          edge below. Without `close` it is the last composer line with only chrome below;
                          with `close` but no `open` it is the run of `inside` lines above that edge
  inside, label           lines of a composer without an upper edge; the last one is a label, not a draft
  placeholder             a whole draft that is the CLI's own hint
  hint                    the key line under a dialog; `option` is one of its choices
  user, said, tool,       what a line at the left margin begins: a user's turn, the agent's words, a tool
  output, notice, status  call, a tool's output, the CLI's own notice, a spinner or a summary of a turn
  echo                    looks like a user's turn, but the CLI wrote it
  margin                  a group `cut` whose end is the right edge of the main column: a sidebar is cut off

Only what follows the last user's turn is live. A block reaches to the next landmark, so a quotation inside
the agent's words or a tool's output never stands on its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

COMPOSER_REACH = 40  # lines: a longer composer would fill the screen
FOOTER_REACH = 14  # lines below a composer: status lines, menus, lists of sub-agents
DIALOG_REACH = 30


class Kind(StrEnum):
    """Who speaks in a block."""

    USER = "user"
    SAID = "said"
    TOOL = "tool"
    OUTPUT = "output"
    NOTICE = "notice"
    STATUS = "status"
    OTHER = "other"  # nothing we know: the rest of something that scrolled away, or a new kind of line


@dataclass(slots=True)
class Block:
    """A landmark line and everything up to the next one."""

    kind: Kind
    lines: list[str]

    @property
    def text(self) -> str:
        """As one line, wrapping undone; the head of it, because a verdict is never deep inside."""
        return " ".join(" ".join(self.lines[:8]).split())

    @property
    def last(self) -> str:
        """The last line that is not blank."""
        return next((line for line in reversed(self.lines) if line), "")


@dataclass(slots=True)
class Parts:
    """One screen, cut up."""

    live: list[Block] = field(default_factory=list)
    composer: str | None = None  # its first line
    draft: str | None = None
    footer: list[str] = field(default_factory=list)
    dialog: str = ""  # the text of an open dialog

    @property
    def newest(self) -> Block | None:
        """The last block that is not the CLI's own summary or spinner."""
        return next((b for b in reversed(self.live) if b.kind is not Kind.STATUS), None)

    @property
    def status(self) -> Block | None:
        """The spinner or summary below everything else."""
        return self.live[-1] if self.live and self.live[-1].kind is Kind.STATUS else None


class Layout:
    """The compiled landmarks of one profile."""

    KINDS = (Kind.USER, Kind.TOOL, Kind.OUTPUT, Kind.NOTICE, Kind.STATUS, Kind.SAID)

    def __init__(self, landmarks: dict[str, str]) -> None:
        def mark(name: str) -> re.Pattern[str] | None:
            return re.compile(landmarks[name]) if landmarks.get(name) else None

        self.open, self.close, self.composer = mark("open"), mark("close"), mark("composer")
        self.inside, self.label = mark("inside"), bool(landmarks.get("label"))
        self.placeholder, self.echo, self.margin = mark("placeholder"), mark("echo"), mark("margin")
        self.hint, self.option, self.user = mark("hint"), mark("option"), mark("user")
        starts = [f"(?P<{kind}>{landmarks[kind]})" for kind in self.KINDS if landmarks.get(kind)]
        self.start = re.compile("|".join(starts)) if starts else None

    def cut(self, lines: list[str]) -> Parts:
        """The parts of a screen whose lines have no trailing blanks and whose last line is not empty."""
        lines = self._main_column(lines)
        parts = Parts()
        end = len(lines)
        if self.hint and any(self.hint.match(line) for line in lines[-4:]):
            end = self._dialog(lines, parts)
        else:
            span = self._find_composer(lines)
            if span:
                end = self._take_composer(lines, span, parts)
            elif self.option and any(self.option.match(line) for line in lines[-DIALOG_REACH:]):
                end = self._dialog(lines, parts)
        parts.live = self._blocks(lines, end)
        return parts

    def _main_column(self, lines: list[str]) -> list[str]:
        if self.margin:
            for line in reversed(lines):
                edge = self.margin.match(line)
                if edge:
                    width = edge.end("cut")
                    return [text[:width].rstrip() for text in lines]
        return lines

    def _find_composer(self, lines: list[str]) -> tuple[int, int, int] | None:
        """Indices of the upper edge, the first line and the line after the last; edges may be virtual."""
        if not self.composer:
            return None
        floor = max(len(lines) - FOOTER_REACH - 1, 0)
        if not self.close:
            for i in range(len(lines) - 1, -1, -1):
                if self.composer.match(lines[i]):
                    return (i, i, self._paragraph(lines, i)) if self._only_chrome(lines, i + 1) else None
            return None
        for bottom in range(len(lines) - 1, floor - 1, -1):
            if not self.close.match(lines[bottom]):
                continue
            if self.open:
                for top in range(bottom - 2, max(bottom - COMPOSER_REACH, -1), -1):
                    if self.open.match(lines[top]):
                        found = self.composer.match(lines[top + 1])
                        return (top, top + 1, bottom) if found else None
            elif self.inside:
                top = bottom
                while top and self.inside.match(lines[top - 1]):
                    top -= 1
                return (top, top, bottom) if top < bottom else None
        return None

    def _only_chrome(self, lines: list[str], start: int) -> bool:
        return self.start is None or not any(line and self.start.match(line) for line in lines[start:])

    @staticmethod
    def _paragraph(lines: list[str], start: int) -> int:
        end = start + 1
        while end < len(lines) and lines[end]:
            end += 1
        return end

    def _take_composer(self, lines: list[str], span: tuple[int, int, int], parts: Parts) -> int:
        top, first, after = span
        parts.composer = lines[first]
        parts.footer = [line for line in lines[after:] if line]
        inner = lines[first : after - 1 if self.label else after]
        typed = []
        for line in inner:
            found = self.composer.match(line) if self.composer else None
            if found and (line is inner[0] or self.inside):
                typed.append(found["draft"] or "")
            else:
                typed.append(line.removeprefix("  "))
        draft = "\n".join(text.rstrip() for text in typed).strip()
        hint = self.placeholder and self.placeholder.match(draft)
        parts.draft = "" if hint and hint.end() == len(draft) else draft
        return top

    def _dialog(self, lines: list[str], parts: Parts) -> int:
        """The dialog is what follows the last block; its options look like turns but are none."""
        top = max(len(lines) - DIALOG_REACH, 0)
        for i in range(len(lines) - 1, top - 1, -1):
            line = lines[i]
            if self.open and self.open.match(line) and not self._is_inner_rule(lines, i):
                top = i
                break
            if self.start and self.start.match(line) and not (self.option and self.option.match(line)):
                top = self._paragraph(lines, i)
                break
        parts.dialog = "\n".join(lines[top:])
        return top

    def _is_inner_rule(self, lines: list[str], i: int) -> bool:
        """A rule between two options belongs to the dialog."""
        before = lines[max(i - 3, 0) : i]
        return bool(self.option and any(self.option.match(line) for line in before))

    def _blocks(self, lines: list[str], end: int) -> list[Block]:
        begin = 0
        if self.user:
            for i in range(end - 1, -1, -1):
                if self.user.match(lines[i]) and not (self.echo and self.echo.match(lines[i])):
                    begin = i
                    break
        blocks: list[Block] = []
        for line in lines[begin:end]:
            found = self.start.match(line) if line and self.start else None
            kind = Kind(found.lastgroup or "other") if found else Kind.OTHER
            if found and not (kind is Kind.USER and self.echo and self.echo.match(line)):
                if kind is Kind.OUTPUT and blocks:
                    kind = self._owner(blocks)
                    if kind is Kind.STATUS:
                        blocks[-1].lines.append(line)
                        continue
                blocks.append(Block(kind, [line]))
            elif blocks:
                blocks[-1].lines.append(line)
            elif line:
                blocks.append(Block(Kind.OTHER, [line]))
        return blocks

    @staticmethod
    def _owner(blocks: list[Block]) -> Kind:
        """Output hung on a user's turn is the CLI's answer, on a spinner a tip, elsewhere a tool's."""
        above = blocks[-1].kind
        if above is Kind.USER or above is Kind.NOTICE:
            return Kind.NOTICE
        return Kind.STATUS if above is Kind.STATUS else Kind.OUTPUT
