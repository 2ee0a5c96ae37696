"""From bytes to keys, as a full-screen program hears them.

A pasted text arrives between two markers when the terminal was asked for them. Without markers there is
only timing to tell a paste from typing: a carriage return that comes in the same read as text, or within
`gap` seconds of it, is taken for a line break and not for the Enter key. Real agent CLIs do the same.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

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
