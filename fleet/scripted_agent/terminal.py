"""A terminal in raw mode: rows are painted only where they differ, bytes are read as keys.

An idle screen writes nothing at all, so that a watcher of the pane's activity sees a quiet program.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import re
import select
import struct
import termios
import tty
from dataclasses import dataclass
from typing import Any

from fleet.text import width


def wrap(text: str, columns: int) -> list[str]:
    """As many rows as it needs; never empty."""
    if width(text) <= columns:
        return [text]
    rows, row, used = [], "", 0
    for char in text:
        wide = width(char)
        if used + wide > columns:
            rows.append(row)
            row, used = "", 0
        row += char
        used += wide
    return [*rows, row]


class Terminal:
    """The screen and keyboard of this process. Without a terminal it still runs, at 80 x 24, unseen."""

    def __init__(self, *, alternate: bool, bracketed_paste: bool) -> None:
        self._in, self._out = 0, 1
        self._alternate = alternate
        self._paste = bracketed_paste
        self._saved: Any = None
        self._rows: list[str] = []
        self._cursor = (-1, -1)
        self._ours = False
        self.closed = False  # no more input will ever come

    def open(self) -> None:
        """Take the terminal over."""
        self._ours = True
        if os.isatty(self._in):
            self._saved = termios.tcgetattr(self._in)
            tty.setraw(self._in)
        self.write(("\x1b[?1049h" if self._alternate else "") + ("\x1b[?2004h" if self._paste else ""))

    def close(self) -> None:
        """Give it back as it was, once."""
        if not self._ours:
            return
        self._ours = False
        rows = len(self._rows)
        leave = "\x1b[?1049l" if self._alternate else f"\x1b[{max(rows, 1)};1H\r\n"
        with contextlib.suppress(OSError):
            self.write(("\x1b[?2004l" if self._paste else "") + "\x1b[?25h" + leave)
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._in, termios.TCSADRAIN, self._saved)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(self._out, termios.TIOCGWINSZ, b"\0" * 8))
        except OSError:
            return 80, 24
        return columns or 80, rows or 24

    def write(self, text: str) -> None:
        """Raw output."""
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._out, data) :]

    def read(self, timeout: float) -> bytes:
        """What came within that time; empty when nothing did."""
        if self.closed:
            select.select([], [], [], timeout)
            return b""
        ready, _, _ = select.select([self._in], [], [], max(timeout, 0.0))
        if not ready:
            return b""
        try:
            data = os.read(self._in, 65536)
        except OSError:
            data = b""
        self.closed = not data
        return data

    def scroll(self, count: int) -> None:
        """Push that many top rows into the terminal's own history."""
        self.write(f"\x1b[{self.size()[1]};1H" + "\n" * count)
        self._rows = self._rows[count:] + [""] * count

    def paint(self, rows: list[str], cursor: tuple[int, int]) -> None:
        """Make the screen show these rows, writing only what changed."""
        if rows == self._rows and cursor == self._cursor:
            return
        changed = [
            f"\x1b[{i + 1};1H{row}\x1b[K"
            for i, row in enumerate(rows)
            if i >= len(self._rows) or self._rows[i] != row
        ]
        if len(rows) < len(self._rows):
            changed.append(f"\x1b[{len(rows) + 1};1H\x1b[J")
        self.write("".join(changed) + f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H")
        self._rows, self._cursor = list(rows), cursor

    def forget(self) -> None:
        """The screen is not as we left it (resized, flooded): wipe it, and paint all of it next time.

        What a terminal knows of lines it has broken itself, at the old width, goes only with a wipe.
        """
        self.write("\x1b[2J")
        self._rows, self._cursor = [], (-1, -1)


# --- from bytes to keys ------------------------------------------------------------------------------------
# A pasted text arrives between two markers when the terminal was asked for them. Without markers there is
# only timing to tell a paste from typing: a carriage return that comes in the same read as text, or within
# `gap` seconds of it, is taken for a line break and not for the Enter key. Real agent CLIs do the same.

PASTE_BEGINS = b"\x1b[200~"
PASTE_ENDS = b"\x1b[201~"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])")
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}
_CONTROL = {
    "\r": "enter",
    "\n": "newline",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "ctrl-c",
    "\x04": "ctrl-d",
    "\x15": "ctrl-u",
    "\t": "tab",
}


@dataclass(frozen=True, slots=True)
class Stroke:
    """One thing the keyboard said. `name` is text, enter, newline, escape, up, down, ctrl-c ..."""

    name: str
    text: str = ""


class Keys:
    """A decoder that remembers where a paste began and when text last came."""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._pasting = False
        self._held = b""  # the beginning of a sequence that is not complete yet
        self._text_at = float("-inf")
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, now: float) -> list[Stroke]:
        """The keys of one read."""
        data = self._held + data
        self._held = b""
        soon = now - self._text_at < self._gap
        crowded = len(data) > 1 and not data.startswith(b"\x1b")
        keys: list[Stroke] = []
        while data:
            if self._pasting:
                data = self._paste(data, keys, now)
            elif data.startswith(b"\x1b"):
                data = self._escape(data, keys)
            else:
                plain, mark, rest = data.partition(b"\x1b")
                self._plain(plain, keys, newline=soon or crowded, now=now)
                data = mark + rest
        return keys

    def _paste(self, data: bytes, keys: list[Stroke], now: float) -> bytes:
        inside, mark, rest = data.partition(PASTE_ENDS)
        if not mark and data.endswith(tuple(PASTE_ENDS[:n] for n in range(1, len(PASTE_ENDS)))):
            cut = data.rindex(b"\x1b")
            inside, self._held = data[:cut], data[cut:]
        text = self._utf8.decode(inside).replace("\r\n", "\n").replace("\r", "\n")
        if text:
            keys.append(Stroke("text", text))
        self._pasting = not mark
        self._text_at = now
        return rest

    def _escape(self, data: bytes, keys: list[Stroke]) -> bytes:
        if data.startswith(PASTE_BEGINS):
            self._pasting = True
            return data[len(PASTE_BEGINS) :]
        found = _SEQUENCE.match(data)
        if found:
            arrow = _ARROWS.get(found[0][-1:]) if found[0][1:2] in b"[O" else None
            keys.append(Stroke(arrow or "other", found[0].decode("latin-1")))
            return data[found.end() :]
        if data == b"\x1b":
            keys.append(Stroke("escape"))
        else:
            self._held = data
        return b""

    def _plain(self, data: bytes, keys: list[Stroke], *, newline: bool, now: float) -> None:
        for char in self._utf8.decode(data):
            if char >= " " and char != "\x7f":
                if keys and keys[-1].name == "text":
                    keys[-1] = Stroke("text", keys[-1].text + char)
                else:
                    keys.append(Stroke("text", char))
                self._text_at = now
            elif char == "\r" and newline:
                keys.append(Stroke("newline"))
            else:
                keys.append(Stroke(_CONTROL.get(char, "other"), char))
