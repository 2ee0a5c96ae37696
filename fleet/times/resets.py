"""When does it reset? Limit banners name an instant in many ways; here they become one number.

A banner's own zone decides; without one the host's does. A time without a date is its next
occurrence. A dated instant is taken as written, even when it has passed: that is how a stale banner
is told from a fresh one. Everything else lies in the future, at most eight days ahead. A wall-clock
time that happens twice (clocks going back) is the later one, one that never happens is moved forward:
waiting a little longer is harmless, going too early is not. What cannot be read is None, never a guess.

The text is searched for a cue ("resets", "try again", ...), then the forms are tried right behind it,
longest first; the last cue that leads somewhere wins. Without any cue they are tried at every word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from fleet.times.iso import iso
from fleet.times.moment import Wall

CAP = 8 * 86400.0  # the longest window a CLI announces without a date is a week
MINUTE = 60.0
_NOON = 12
_MILLISECONDS = 1e11  # an epoch beyond this counts milliseconds

_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Only abbreviations that mean one place to every reader of a banner: IST, for one, is three.
_ABBREVIATED = {
    **dict.fromkeys(("PT", "PST", "PDT", "Pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("MT", "MST", "MDT", "Mountain"), "America/Denver"),
    **dict.fromkeys(("CT", "CST", "CDT", "Central"), "America/Chicago"),
    **dict.fromkeys(("ET", "EST", "EDT", "Eastern"), "America/New_York"),
    **dict.fromkeys(("AKST", "AKDT"), "America/Anchorage"),
    **dict.fromkeys(("WET", "WEST"), "Europe/Lisbon"),
    **dict.fromkeys(("CET", "CEST"), "Europe/Berlin"),
    **dict.fromkeys(("EET", "EEST"), "Europe/Helsinki"),
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    **dict.fromkeys(("NZST", "NZDT"), "Pacific/Auckland"),
    "BST": "Europe/London",
    "MSK": "Europe/Moscow",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_AMOUNT = (
    r"(?:\d+(?:\.\d+)?|an?\b)\s*(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
)
_SPAN = rf"(?P<span>{_AMOUNT}(?:,?\s*(?:and\s+)?{_AMOUNT})*)"
_CLOCK = r"(?P<h>\d{1,2})(?:[:.](?P<m>\d\d)(?::\d\d)?)?(?:\s*(?P<ap>[ap])\.?m\b\.?)?(?![\w:]|\.\d)"
_MONTH = rf"(?P<mon>{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4})(?![\d:]))?"
_WEEKDAY = rf"(?:(?P<later>next)\s+|this\s+)?(?P<wd>{'|'.join(_WEEKDAYS)})(?:[a-z]*day)?\.?(?![a-z])"
_DATES = (
    rf"{_MONTH}\s+{_DAY}(?![\d:]){_YEAR}",
    rf"{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}",
    r"(?P<ymd>\d{4}[-/]\d\d[-/]\d\d)(?!\d)",
    r"(?P<dmy>\d{1,2}\.\d{1,2}\.\d{4})(?!\d)",
)
_ISO = r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?Z|[+-]\d\d:?\d\d)?)(?!\w)"
_AT = r"[,;]?\s+(?:at\s+|\()?"
_NAMED = r"(?:Eastern|Central|Mountain|Pacific)(?:\s+(?:Standard\s+|Daylight\s+)?Time)?"
_ZONE = (
    r"(?:\s*\((?P<zone>[A-Za-z+-][\w+/: -]*)\)"
    r"|\s*(?P<offset>[+-]\d\d:?\d\d)(?!\d)"
    rf"|\s+(?P<bare>(?-i:(?:UTC|GMT)(?:[+-]\d{{1,2}}(?::?\d\d)?)?|{_NAMED}"
    r"|MSK|[A-Z]{1,3}T|[A-Z]\w*(?:/[A-Z][\w+-]*)+))(?!\w))?"
)

_HEADER = r"(?:retry-after|resets?_(?:in|after)_seconds)"  # a server's own words, shown as they came
_CUE = re.compile(
    r"\b(?:re(?:set|new|fresh)s?|try\s+again|retry(?:ing)?|retries|available(?:\s+again)?|until|back)"
    r"(?:\s*:)?(?:\s+(?:at|on|by))?\s+|\|"
    r"|\bresets?_at\"?\s*[:=]\s*\"?|(?=\b" + _HEADER + r"\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\w.:/-])(?=\w)")
_PIECE = re.compile(r"(\d+(?:\.\d+)?|\ban?\b)\s*([wdhms])", re.IGNORECASE)
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d\d))?$")
_TWELVE = re.compile(r"\b(?:(?P<noon>noon)|midnight)\b", re.IGNORECASE)


def parse_reset(text: str, *, now: Wall, zone: str) -> Wall | None:
    """The instant a banner announces, in seconds since the epoch, or None when it names none."""
    text = _TWELVE.sub(lambda twelve: "12pm" if twelve["noon"] else "12am", text)
    cues = [m.end() for m in _CUE.finditer(text)]
    for start in reversed(cues):
        value, _ = _read(text, start, now, zone)
        if value is not None:
            return Wall(value)
    last: Wall | None = None
    done = 0
    for word in () if cues else _WORD.finditer(text):
        if word.start() >= done:
            value, end = _read(text, word.start(), now, zone, loose=False)
            if value is not None:
                last, done = Wall(value), end
    return last


def parse_duration(text: str) -> float | None:
    """Seconds in "2h 15m", "3 hours" or "1 day and 2 minutes"; None when there is no such thing."""
    pieces = _PIECE.findall(text)
    return sum(_count(n) * _UNITS[unit.lower()] for n, unit in pieces) if pieces else None


def _count(word: str) -> float:
    return 1.0 if word.isalpha() else float(word)


def _read(text: str, start: int, now: float, zone: str, *, loose: bool = True) -> tuple[float | None, int]:
    """The reading of the first form that fits at `start`; strict readings want more than a bare number."""
    for pattern, instant in _FORMS:
        form = _compiled(pattern)
        match = form.match(text, start)
        if match and (loose or "h" not in form.groupindex or match["ap"] or match["m"]):
            value = instant(match, now, zone)
            if value is not None:
                return value, match.end()
    return None, start


def _relative(match: re.Match[str], now: float, _zone: str) -> float | None:
    seconds = parse_duration(match["span"])
    return None if seconds is None else now + min(seconds, CAP)


def _seconds(match: re.Match[str], now: float, _zone: str) -> float | None:
    return now + min(float(match["seconds"]), CAP)


def _epoch(match: re.Match[str], _now: float, _zone: str) -> float | None:
    value = float(match["epoch"])
    return value / 1000 if value > _MILLISECONDS else value


def _iso(match: re.Match[str], _now: float, zone: str) -> float | None:
    moment = iso(match["iso"])
    if moment is None:
        return None
    if moment.tzinfo is not None:
        return moment.timestamp()
    where = _where(match, zone)
    return None if where is None else _instant(moment.date(), moment.time(), where)


def _dated(match: re.Match[str], now: float, zone: str) -> float | None:
    where, clock = _where(match, zone), _clock(match)
    if where is None or clock is None:
        return None
    try:
        if "ymd" in match.re.groupindex:
            return _instant(date.fromisoformat(match["ymd"].replace("/", "-")), clock, where)
        if "dmy" in match.re.groupindex:
            day, month, year = map(int, match["dmy"].split("."))
            return _instant(date(year, month, day), clock, where)
        month, day = _MONTHS.index(match["mon"].lower()) + 1, int(match["day"])
        if match["year"]:
            return _instant(date(int(match["year"]), month, day), clock, where)
        # No year: the nearest one. A banner from the last days of December may speak of January.
        this = datetime.fromtimestamp(now, where).year
        days = [date(y, month, day) for y in (this - 1, this, this + 1) if _exists(y, month, day)]
        return min((_instant(d, clock, where) for d in days), key=lambda t: abs(t - now), default=None)
    except ValueError:
        return None


def _next(match: re.Match[str], now: float, zone: str) -> float | None:
    """A time of day, perhaps on a named weekday, today or tomorrow: the next time it is that late."""
    where, clock = _where(match, zone), _clock(match)
    if where is None or clock is None:
        return None
    today = datetime.fromtimestamp(now, where).date()
    named = match.groupdict()
    for ahead in range(-1, 9):
        day = today + timedelta(days=ahead)
        if named.get("wd") and day.weekday() != _WEEKDAYS.index(named["wd"].lower()):
            continue
        if named.get("later") and ahead < 1:
            continue
        if named.get("near") and ahead != (named["near"].lower() == "tomorrow"):
            continue
        moment = _instant(day, clock, where)
        # Banners drop the seconds: within the named minute the reset is still to come.
        if moment + MINUTE > now:
            return moment if moment > now else moment + MINUTE
    return None


def _clock(match: re.Match[str]) -> time | None:
    if "h" not in match.re.groupindex:
        return time()  # only a day was named: its first moment
    hour, minute, half = int(match["h"]), int(match["m"] or 0), (match["ap"] or "").lower()
    if half:
        if not 0 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if half == "p" else 0)
    elif match["m"] is None:
        return None  # a bare number is not a time
    try:
        return time(hour, minute)
    except ValueError:
        return None


def _instant(day: date, clock: time, where: tzinfo) -> float:
    """Twice on the clock: the later. Never on the clock: as far past the gap as it lies behind its edge."""
    moment = datetime.combine(day, clock, where)
    return max(moment.timestamp(), moment.replace(fold=1).timestamp())


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _where(match: re.Match[str], zone: str) -> tzinfo | None:
    """The banner's zone, else the host's. A zone we do not know is none; another word says nothing."""
    name = match["zone"] or match["offset"] or match["bare"]
    found = place(name or zone)
    if found is None and name and name[0].isalpha() and not name.isupper() and "/" not in name:
        return place(zone)
    return found


@lru_cache(maxsize=64)
def place(name: str) -> tzinfo | None:
    """The zone of that name, abbreviation or offset; None where it means none, or more than one."""
    if name.upper() in {"UTC", "GMT", "Z"}:
        return UTC
    offset = _OFFSET.match(name)
    if offset:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if span >= timedelta(hours=24):
            return None
        return timezone(-span if offset[1] == "-" else span)
    try:
        return ZoneInfo(_ABBREVIATED.get(name, _ABBREVIATED.get(name.partition(" ")[0], name)))
    except (KeyError, ValueError, OSError):
        return None


_Instant = Callable[[re.Match[str], float, str], float | None]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """At first use: most processes never see a banner."""
    return re.compile(pattern, re.IGNORECASE)


# Longest first: a time of day inside a date must not be read on its own.
_FORMS: tuple[tuple[str, _Instant], ...] = (
    (rf"(?:in|after|within)\s+(?:about\s+|~\s*)?{_SPAN}", _relative),
    (rf"{_HEADER}\"?\s*[:=]\s*\"?(?P<seconds>\d{{1,7}}(?:\.\d+)?)(?![\w:.-])", _seconds),
    (rf"{_ISO}{_ZONE}", _iso),
    (r"(?P<epoch>1\d{9}(?:\d{3})?)(?![\w.-])", _epoch),
    *((rf"(?:{_WEEKDAY},?\s+)?{day}{_AT}{_CLOCK}{_ZONE}", _dated) for day in _DATES),
    *((rf"{_CLOCK}(?:\s+on|,)\s+(?:{_WEEKDAY},?\s+)?{day}{_ZONE}", _dated) for day in _DATES),
    (rf"{_WEEKDAY}{_AT}{_CLOCK}{_ZONE}", _next),
    (rf"(?P<near>today|tonight|tomorrow){_AT}{_CLOCK}{_ZONE}", _next),
    (rf"{_CLOCK}\s+(?:on\s+)?{_WEEKDAY}{_ZONE}", _next),
    *((rf"(?:{_WEEKDAY},?\s+)?{day}(?!\w){_ZONE}", _dated) for day in _DATES),
    (rf"{_WEEKDAY}{_ZONE}", _next),
    (rf"(?P<near>tomorrow)\b{_ZONE}", _next),
    (rf"(?:after\s+)?{_CLOCK}{_ZONE}", _next),
)
