"""What one line of a screen tells, whatever CLI drew it: a wait, a quotation, our own words, mere drawing.

WAITING-UNTIL is an agent's word that it waits for something and is not stuck. The marker is a line of its
own: `WAITING-UNTIL: 2026-11-16T04:30Z`, perhaps behind a bullet or in bold. A time without a zone is UTC.
Whether the line is the agent's last word is for the screen reader to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from fleet.core.seen import Marker
from fleet.times.iso import instant
from fleet.times.moment import Wall, later

EVIDENCE = 200  # characters of a line that are kept as the reason of a reading
AHEAD = 24 * 3600.0  # seconds: a marker counts no longer than that
_SPINNER = re.compile(r"[⠀-⣿▀-▟·✢✳✶✻✽●⏺○◦•◐◓◑◒⬝■▪□]+")
_WORD = re.compile(r"[^\W_]")
_STILL = b"0123456789 \t\n|/\\-*"
_UNSTILL = dict.fromkeys(_STILL)
_PROMPTS = ">❯›»"  # before what is typed; also how mails and agents quote
_QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("«", "»"))
_VALUES = (":", "=", "{", "[", ",")  # before a quotation mark that belongs to data
WRAPPED = 12  # characters of a line from which it is told as a piece of a longer text
# Below a marker only this may stand: rules and boxes, an empty prompt, a line of key hints.
_CHROME = re.compile(
    r"[\s─━═╭╮╰╯│┃╹▀▄▁▔|+_=-]*$|\s*(?:[│┃]\s*)?[\u276f\u203a>$](?:\s|$)|\s*[⏵?]"
    r"|.*\b(?:shift\+tab|ctrl\+\w|esc) "
)
_BULLETS = r"\u2022\u23fa\u25a0-\u25ff\u2700-\u275a"  # dots, shapes and dingbats, but no prompt
_MARKER = re.compile(rf"^[\s{_BULLETS}*_`-]*WAITING-UNTIL:[\s*_`]*(?P<when>.*)$")
_TIME = r"\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?"
_ISO = re.compile(rf"\d{{4}}-?\d\d-?\d\d(?:[T ]{_TIME})?(?![\w:])")


def waiting_until(line: str, now: Wall) -> Marker | None:
    """The marker on this line: none, one without a time when it cannot be read, or the instant it names."""
    found = _MARKER.match(line)
    if not found:
        return None
    text = found["when"].strip()[:80]
    iso = _ISO.match(text)
    named = instant(iso[0].replace(" Z", "Z")) if iso else None
    if named is None:
        return Marker(None, text)
    until, latest = Wall(named), later(now, AHEAD)
    return Marker(min(until, latest), text, capped=until > latest)


def last_marker(tail: list[str], now: Wall) -> Marker | None:
    """The marker on the last line that is not mere drawing."""
    for line in reversed(tail):
        marker = waiting_until(line, now)
        if marker or not _CHROME.match(line):
            return marker
    return None


def is_quoted(line: str, at: int) -> bool:
    """Does it stand behind a prompt, or in quotation marks that are no program's JSON?"""
    if line.lstrip()[:1] in _PROMPTS:
        return True
    before = line[:at]
    for opening, closing in _QUOTES:
        start = before.rfind(opening)
        even = before.count(opening) % 2 == 0 if opening == closing else before.rfind(closing) > start
        if start >= 0 and not even and not before[:start].rstrip().endswith(_VALUES):
            return True
    return False


def is_said(line: str, ours: Sequence[str]) -> bool:
    """Are these an agent's words: neither typed nor drawn?"""
    return not _CHROME.match(line) and line.lstrip()[:1] not in _PROMPTS and not is_ours(line, ours)


def is_ours(line: str, ours: Sequence[str]) -> bool:
    """Is it a line of what we typed, whole or wrapped, with a prompt before it or without?"""
    words = squeezed(line)
    return any(text in words or (len(words) >= WRAPPED and words in text) for text in ours)


def squeezed(text: str) -> str:
    """A text without gaps and without the prompt before it: wrapping and typing change nothing of it."""
    return "".join(text.split()).lstrip(_PROMPTS)


def first_words(text: str) -> str:
    """The first line with words in it."""
    return next((line for line in text.split("\n") if _WORD.search(line)), "")


def content_hash(lines: Iterable[str]) -> str:
    """A hash that digits, clocks and spinners do not change: the same means nothing was written."""
    text = "\n".join(line if line.isascii() else _SPINNER.sub("", line) for line in lines)
    return blake2b(text.encode().translate(None, _STILL), digest_size=8).hexdigest()


def stilled(lines: Iterable[str]) -> str:
    """The ends of some lines, without what changes by itself."""
    return "\n".join(_SPINNER.sub("", line).translate(_UNSTILL)[-EVIDENCE:] for line in lines)


def evidence(text: str) -> str:
    """The opening of a text on one line, as a reading carries it."""
    line = " ".join(text.split())[:EVIDENCE]
    return line if line.isprintable() else "".join(c for c in line if c.isprintable())
