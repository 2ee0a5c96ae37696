"""A terminal in raw mode: rows are painted only where they differ, input comes as raw bytes.

An idle screen writes nothing at all, so that a watcher of the pane's activity sees a quiet program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import tty
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
