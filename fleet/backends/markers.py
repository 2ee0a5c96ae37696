"""WAITING-UNTIL: an agent's word that it waits for something and is not stuck.

The marker is a line of its own: `WAITING-UNTIL: 2026-11-16T04:30Z`, perhaps behind a bullet or in bold.
A time without a zone is UTC. Whether the line is the agent's last word is for the screen reader to say.
"""

from __future__ import annotations

import re

from fleet.core.seen import Marker
from fleet.times.iso import instant
from fleet.times.moment import Wall, later

AHEAD = 24 * 3600.0  # nobody waits longer on one line's word

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
