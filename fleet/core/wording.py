"""How a text reaches a CLI as text: what is put around it, what is refused, what a screen shows of it.

A CLI takes some beginnings for commands, some endings for the start of something else, and drops or changes
some characters. Which ones stands in its profile, in the rows of `texts`; nothing here knows a CLI. Every row
that matches counts. What no row and no terminal can carry is refused before a key is pressed.

A screen shows a text otherwise than it was typed: marks join their letters, what is invisible is dropped,
wide characters push their neighbours away. `canonical` is what any screen leaves of it, and is compared.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fleet.core.model import TextRule

Way = Literal["keys", "argument"]

# C0 but tab and newline, DEL, C1, and halves of characters: in a pane each would be a keystroke, or nothing.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_DROPPED = frozenset("MCZ")  # marks, control and format characters, gaps
_MODIFIERS = ("Sk",)  # skin tones, spacing accents


class Prepared(NamedTuple):
    """A text as it is typed or passed, or why it is not."""

    text: str
    refused: str = ""
    idle: bool = False  # only to an agent that is not at work: what it queues it reads otherwise


def prepared(text: str, rules: Sequence[TextRule], way: Way = "keys") -> Prepared:
    """What to hand over so that the CLI gets this text, or the reason why that cannot be."""
    text = text.replace("\r\n", "\n")
    found = _CONTROL.search(text)
    if found:
        return Prepared(text, refused=f"{_where(text, found)}: a control character would be a key press")
    before, after, idle = "", "", False
    for rule in rules:
        match = _compiled(rule.re).search(text) if rule.by in {way, "both"} else None
        if match is None:
            continue
        if rule.treat == "refuse":
            return Prepared(text, refused=f"{_where(text, match)}: {rule.why}")
        before = " " if rule.treat == "blank-before" else before
        after = " " if rule.treat == "blank-after" else after
        idle = idle or rule.treat == "when-idle"
    return Prepared(f"{before}{text}{after}", idle=idle)


def canonical(text: str) -> str:
    """What of a text can be told apart on any screen."""
    if text.isascii():
        return "".join(text.split())
    kept = unicodedata.normalize("NFKD", text)
    return "".join(c for c in kept if not _is_dropped(c))


def is_plain(text: str) -> bool:
    """Does every screen show it letter by letter?"""
    return text.isascii()


def same(said: str, meant: str) -> bool:
    """Is that the text? Gaps and the choice between composed and decomposed letters make no difference."""
    return _exact(said) == _exact(meant)


def _exact(text: str) -> str:
    return unicodedata.normalize("NFC", "".join(text.split()))


def _is_dropped(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] in _DROPPED or kind in _MODIFIERS


def _where(text: str, found: re.Match[str]) -> str:
    """The character, and where it stands, for a person."""
    at = found.start()
    char = text[at : at + 1]
    if not char:
        return "the text"
    named = repr(char) if char.isprintable() and char.strip() else f"U+{ord(char):04X}"
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"{named} (line {line}, character {column})"


@functools.lru_cache(maxsize=256)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
