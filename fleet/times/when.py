"""A moment as people write it: 90m, "yesterday 22:00", 8am, "mon 09:00", 2026-11-16T08:00+01:00.

Ages and ISO times are read with the standard library. All other forms need python-dateutil; where it is not
installed, NeedsLibrary says so. A word that can mean two moments is refused, never guessed.

- A clock time without a day is its last occurrence, for the end of a pause its next one. So is a weekday.
- A day without a clock time is its first moment.
- A time without a zone is the host's.
- A clock time that happens twice (the clocks go back) is the earlier one after `since`, else the later one.
  One that never happens (they go forward) is as much later as they moved.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, tzinfo
from enum import StrEnum

from fleet.times import iso
from fleet.times.resets import place

EXAMPLES = (
    'such as 90m, 2h, 8am, "{day} 22:00", "mon 09:00", "16 nov 8:30", 2026-11-16T08:00+01:00 or '
    '"2026-11-16 08:00 Europe/Berlin"'
)
LONGEST = 80
_END = 253_402_300_800.0  # the year 10000
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(in )?((?:[0-9]+(?:\.[0-9]+)?[smhdw] ?)+)( ?ago)?")
_PART = re.compile(r"([0-9.]+)([smhdw])")
_ZONE = re.compile(
    r"(?P<rest>.*\S)(?:\s+\(?(?P<name>[A-Za-z]\w*(?:/[\w+-]+)+|[A-Z]{2,5}(?:[+-]\d{1,2}(?::?\d\d)?)?)\)?"
    r"|\s*(?P<offset>[+-]\d\d:?\d\d))"
)
_TIME = re.compile(r"(?:\d:\d\d|[ap]m)$", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHIFTS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_CLOCKS = {"noon": "12:00", "midnight": "00:00"}


class Asked(StrEnum):
    """What the moment is for: decides between two readings."""

    SINCE = "since"  # the begin of a past span
    UNTIL = "until"  # the end of a past span
    END = "end"  # a moment to come

    @property
    def ahead(self) -> bool:
        return self is Asked.END

    @property
    def late(self) -> bool:
        return self is not Asked.SINCE

    @property
    def examples(self) -> str:
        return EXAMPLES.format(day="tomorrow" if self.ahead else "yesterday")


class Unreadable(ValueError):
    """The words name no moment, or more than one; the text says which."""


class NeedsLibrary(Exception):
    """Only python-dateutil can read these words, and it is not here."""


def instant(text: str, asked: Asked, *, now: float, zone: tzinfo | None = None) -> float:
    """Seconds since the epoch. `zone` None: the host's."""
    words = " ".join(text.split())
    if not words or len(words) > LONGEST:
        raise Unreadable("it is empty" if not words else f"it is longer than {LONGEST} characters")
    found = _age(words.lower(), asked, now)
    if found is None:
        found = _iso(words, asked, zone)
    if found is None:
        found = _spoken(words, asked, now, zone)
    found = max(found, 0.0)
    if found >= _END:
        raise Unreadable("it lies beyond the year 9999")
    if asked.ahead and found <= now:
        raise Unreadable("it is already past")
    return found


def _age(words: str, asked: Asked, now: float) -> float | None:
    match = _AGE.fullmatch(words)
    if match is None:
        return None
    if match[1] and match[3]:
        raise Unreadable("it is both to come and past")
    if match[3] if asked.ahead else match[1]:
        raise Unreadable("expected a moment to come" if asked.ahead else "expected a moment that is past")
    span = sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(match[2]))
    return now + span if asked.ahead else now - span


def _iso(words: str, asked: Asked, zone: tzinfo | None) -> float | None:
    found = iso.iso(words)
    if found is None:
        return None
    try:
        return found.timestamp() if found.tzinfo else _at(found, zone, late=asked.late)
    except (OverflowError, ValueError, OSError):
        raise Unreadable("it lies outside the years that can be counted") from None


def _at(local: datetime, zone: tzinfo | None, *, late: bool, called: str = "") -> float:
    """The instant of a wall-clock time; one that happens twice or never is settled as the module says."""
    twice = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    first, second = (each.timestamp() for each in twice)
    if first >= second:  # it happens once; or never: then the first reading lies behind the gap
        return first
    named = [each for each in twice if each.tzname() == called]
    if len(named) == 1:  # "02:30 CEST" tells by itself which of the two
        return named[0].timestamp()
    return second if late else first


def _spoken(words: str, asked: Asked, now: float, zone: tzinfo | None) -> float:
    rest, zone, called = _split_zone(words, zone)
    today = datetime.fromtimestamp(now, zone).date()
    said, days = _split_day(rest.lower().split(), today, asked)
    clock = time()
    if said:
        day, clock_said = _parsed(" ".join(said), today, asked)
        if day is not None and days is not None:
            raise Unreadable("it names two days")
        days, clock = day or days, clock_said or clock
    elif days is None:
        raise Unreadable("no day and no time of day is in it")
    if days is None:  # a clock time alone: the day is the nearest one on the right side of now
        days = [today + timedelta(days=shift) for shift in (-1, 0, 1)]
    moments = [_at(datetime.combine(day, clock), zone, late=asked.late, called=called) for day in days]
    if len(moments) == 1:
        return moments[0]
    fitting = [moment for moment in moments if (moment > now) == asked.ahead]
    if not fitting:
        raise Unreadable("expected a moment to come" if asked.ahead else "expected a moment that is past")
    return min(fitting) if asked.ahead else max(fitting)


def _split_zone(words: str, zone: tzinfo | None) -> tuple[str, tzinfo | None, str]:
    """The words without a zone at their end, that zone or the one given, and what it was called."""
    match = _ZONE.fullmatch(words)
    name = (match["name"] or match["offset"]) if match else ""
    if match is None or (match["offset"] and not _TIME.search(match["rest"])):
        return words, zone, ""  # "16-11-2026": that is no offset
    found = place(name)
    if found is None and "/" in name:
        raise Unreadable(f"no zone is called {name}")
    return (match["rest"], found, name) if found is not None else (words, zone, "")


def _split_day(words: list[str], today: date, asked: Asked) -> tuple[list[str], list[date] | None]:
    """The words without a day among them, and the days it can be."""
    days: list[date] | None = None
    last, rest = False, []
    for word in (word.strip(",") for word in words):
        found = _days(word, today)
        if found and days:
            raise Unreadable("it names two days")
        days = found or days
        if word == "next":
            raise Unreadable('"next" means two days to two people; name the day: "fri 09:00" is the nearest')
        last = last or word == "last"
        if not found and word not in {"last", "this", "at", "on"}:
            rest.append(_CLOCKS.get(word, word))
    if last:
        if days is None or len(days) == 1 or asked.ahead:
            raise Unreadable('"last" goes with a weekday that is past: "last fri 17:00"')
        days = [day for day in days if day < today]
    return rest, days


def _days(word: str, today: date) -> list[date] | None:
    """The days that a word can mean; None: it names none."""
    if word in _SHIFTS:
        return [today + timedelta(days=_SHIFTS[word])]
    if _DAY.fullmatch(word):
        return [_date(word)]
    if word in _WEEKDAYS or word in _LONG:
        around = (today + timedelta(days=shift) for shift in range(-7, 8))
        return [day for day in around if day.weekday() == _WEEKDAYS.index(word[:3])]
    return None


def _date(word: str) -> date:
    try:
        return date.fromisoformat(word)
    except ValueError as fault:
        raise Unreadable(f"{word}: {fault}") from None


def _parsed(words: str, today: date, asked: Asked) -> tuple[list[date] | None, time | None]:
    """What dateutil reads: a day (of some years, where none is named), a clock time, or both.

    dateutil fills what is not said from a default, and takes the first of several readings. So it is asked
    with two defaults (what differs was not said) and in every order of day, month and year.
    """
    try:
        from dateutil import parser
    except ImportError:
        raise NeedsLibrary from None
    defaults = (datetime(2000, 1, 1, 0, 0), datetime(2004, 3, 2, 1, 0))  # noqa: DTZ001 - a wall-clock time
    orders = [(day, year) for day in (False, True) for year in (False, True)]
    readings = []
    for default in defaults:
        found = set()
        for dayfirst, yearfirst in orders:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    found.add(parser.parse(words, default=default, dayfirst=dayfirst, yearfirst=yearfirst))
                except (ValueError, OverflowError, Warning, TypeError, ArithmeticError):
                    raise Unreadable("no such day or time is known") from None
        if len(found) > 1:
            raise Unreadable("day, month and year can be read in more than one way")
        readings.append(found.pop())
    one, other = readings
    if one.tzinfo is not None:
        raise Unreadable("its zone is not known; name one such as UTC, +01:00 or Europe/Berlin")
    said = {key for key in ("year", "month", "day", "hour") if getattr(one, key) == getattr(other, key)}
    clock = one.time() if "hour" in said else None
    if not {"year", "month", "day"} & said:
        if clock is None:
            raise Unreadable("no day and no time of day is in it")
        return None, clock
    if not {"month", "day"} <= said:
        raise Unreadable("a number alone can be a day or an hour; write 10:00, 10am or 10 nov")
    if "year" in said:
        return [one.date()], clock
    shift = 1 if asked.ahead else -1
    return _in_years(one, sorted({today.year, today.year + shift})), clock


def _in_years(day: datetime, years: Iterable[int]) -> list[date]:
    found = []
    for year in years:
        try:
            found.append(date(year, day.month, day.day))
        except ValueError:  # the 29th of February
            continue
    if not found:
        raise Unreadable("that day is in neither of the nearest years")
    return found
