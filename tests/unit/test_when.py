"""Moments as people write them: words in, an instant out, or a refusal that says why."""

from __future__ import annotations

import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from fleet.times.when import Asked, NeedsLibrary, Unreadable, instant

BERLIN, KOLKATA, NEW_YORK = (ZoneInfo(n) for n in ("Europe/Berlin", "Asia/Kolkata", "America/New_York"))
S, U, E = Asked.SINCE, Asked.UNTIL, Asked.END
TUESDAY = "2026-11-17T12:30:00+01:00"  # in Berlin
SPRING = "2026-03-29T12:00:00+02:00"  # that night 02:00 became 03:00
AUTUMN = "2026-10-25T12:00:00+01:00"  # that night 03:00 became 02:00
AUTUMN_US = "2026-11-01T12:00:00-05:00"


def at(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def read(text: str, asked: Asked, now: str, zone: ZoneInfo) -> str:
    found = instant(text, asked, now=at(now), zone=zone)
    return datetime.fromtimestamp(found, zone).isoformat()


READ = [
    # ages, as ever
    ("90m", S, TUESDAY, BERLIN, "2026-11-17T11:00:00+01:00"),
    ("1.5h", S, TUESDAY, BERLIN, "2026-11-17T11:00:00+01:00"),
    ("1h30m ago", U, TUESDAY, BERLIN, "2026-11-17T11:00:00+01:00"),
    ("2d", S, TUESDAY, BERLIN, "2026-11-15T12:30:00+01:00"),
    ("90m", E, TUESDAY, BERLIN, "2026-11-17T14:00:00+01:00"),
    ("in 1w", E, TUESDAY, BERLIN, "2026-11-24T12:30:00+01:00"),
    # ISO; without a zone it is the host's
    ("2026-11-16T08:00:00Z", S, TUESDAY, BERLIN, "2026-11-16T09:00:00+01:00"),
    ("2026-11-16 08:00", S, TUESDAY, BERLIN, "2026-11-16T08:00:00+01:00"),
    ("2026-11-16", U, TUESDAY, BERLIN, "2026-11-16T00:00:00+01:00"),
    ("2026-11-16T08:00+05:30", S, TUESDAY, BERLIN, "2026-11-16T03:30:00+01:00"),
    # days in words
    ("yesterday 22:00", S, TUESDAY, BERLIN, "2026-11-16T22:00:00+01:00"),
    ("22:00 yesterday", S, TUESDAY, BERLIN, "2026-11-16T22:00:00+01:00"),
    ("yesterday at 10 pm", S, TUESDAY, BERLIN, "2026-11-16T22:00:00+01:00"),
    ("yesterday", U, TUESDAY, BERLIN, "2026-11-16T00:00:00+01:00"),
    ("today noon", S, TUESDAY, BERLIN, "2026-11-17T12:00:00+01:00"),
    ("Tomorrow, 8am", E, TUESDAY, BERLIN, "2026-11-18T08:00:00+01:00"),
    ("tomorrow", E, TUESDAY, BERLIN, "2026-11-18T00:00:00+01:00"),
    # a clock time alone: the last one, or for an end the next one
    ("8am", S, TUESDAY, BERLIN, "2026-11-17T08:00:00+01:00"),
    ("8am", E, TUESDAY, BERLIN, "2026-11-18T08:00:00+01:00"),
    ("22:00", S, TUESDAY, BERLIN, "2026-11-16T22:00:00+01:00"),
    ("22:00", E, TUESDAY, BERLIN, "2026-11-17T22:00:00+01:00"),
    ("midnight", E, TUESDAY, BERLIN, "2026-11-18T00:00:00+01:00"),
    # weekdays
    ("fri 17:00", S, TUESDAY, BERLIN, "2026-11-13T17:00:00+01:00"),
    ("fri 17:00", E, TUESDAY, BERLIN, "2026-11-20T17:00:00+01:00"),
    ("last Friday 17:00", S, TUESDAY, BERLIN, "2026-11-13T17:00:00+01:00"),
    ("tue 9:00", S, TUESDAY, BERLIN, "2026-11-17T09:00:00+01:00"),
    ("last tue 9:00", S, TUESDAY, BERLIN, "2026-11-10T09:00:00+01:00"),
    ("tue 13:00", E, TUESDAY, BERLIN, "2026-11-17T13:00:00+01:00"),
    ("tue 12:00", E, TUESDAY, BERLIN, "2026-11-24T12:00:00+01:00"),
    ("Monday", E, TUESDAY, BERLIN, "2026-11-23T00:00:00+01:00"),
    # dates
    ("16 nov 8:30", S, TUESDAY, BERLIN, "2026-11-16T08:30:00+01:00"),
    ("nov 16, 8:30", S, TUESDAY, BERLIN, "2026-11-16T08:30:00+01:00"),
    ("December 24th 2025", S, TUESDAY, BERLIN, "2025-12-24T00:00:00+01:00"),
    ("24 dec", S, TUESDAY, BERLIN, "2025-12-24T00:00:00+01:00"),
    ("24 dec", E, TUESDAY, BERLIN, "2026-12-24T00:00:00+01:00"),
    ("2 jan 9am", E, TUESDAY, BERLIN, "2027-01-02T09:00:00+01:00"),
    ("16.11.2026 8:30", S, TUESDAY, BERLIN, "2026-11-16T08:30:00+01:00"),
    ("2026-11-12 8am", S, TUESDAY, BERLIN, "2026-11-12T08:00:00+01:00"),
    # zones
    ("yesterday 22:00 UTC", S, TUESDAY, BERLIN, "2026-11-16T23:00:00+01:00"),
    ("8am +05:30", S, TUESDAY, BERLIN, "2026-11-17T03:30:00+01:00"),
    ("2026-11-16 08:00 America/New_York", S, TUESDAY, BERLIN, "2026-11-16T14:00:00+01:00"),
    ("yesterday 08:00 (Asia/Kolkata)", S, TUESDAY, BERLIN, "2026-11-16T03:30:00+01:00"),
    ("16 nov 8:30 PST", S, TUESDAY, BERLIN, "2026-11-16T17:30:00+01:00"),
    ("8am", S, TUESDAY, KOLKATA, "2026-11-17T08:00:00+05:30"),
    # yesterday is yesterday there: 23:30 UTC on the 16th is the 17th in Kolkata
    ("yesterday 22:00", S, "2026-11-16T23:30:00+00:00", KOLKATA, "2026-11-16T22:00:00+05:30"),
    # the night the clocks go forward: what never happened is as much later
    ("today 2:30", S, SPRING, BERLIN, "2026-03-29T03:30:00+02:00"),
    ("2026-03-29 02:30", U, SPRING, BERLIN, "2026-03-29T03:30:00+02:00"),
    ("yesterday 12:00", S, SPRING, BERLIN, "2026-03-28T12:00:00+01:00"),
    ("24h", S, SPRING, BERLIN, "2026-03-28T11:00:00+01:00"),
    # the night they go back: what happened twice shows more
    ("today 2:30", S, AUTUMN, BERLIN, "2026-10-25T02:30:00+02:00"),
    ("today 2:30", U, AUTUMN, BERLIN, "2026-10-25T02:30:00+01:00"),
    ("2026-10-25 02:30", S, AUTUMN, BERLIN, "2026-10-25T02:30:00+02:00"),
    ("today 2:30 CEST", U, AUTUMN, BERLIN, "2026-10-25T02:30:00+02:00"),
    ("today 2:30 CET", S, AUTUMN, BERLIN, "2026-10-25T02:30:00+01:00"),
    ("tomorrow 2:30", E, "2026-10-24T12:00:00+02:00", BERLIN, "2026-10-25T02:30:00+01:00"),
    ("tomorrow 2:30", E, "2026-03-28T12:00:00+01:00", BERLIN, "2026-03-29T03:30:00+02:00"),
    ("1:30", S, AUTUMN_US, NEW_YORK, "2026-11-01T01:30:00-04:00"),
    ("1:30", U, AUTUMN_US, NEW_YORK, "2026-11-01T01:30:00-05:00"),
]


@pytest.mark.parametrize(("text", "asked", "now", "zone", "want"), READ)
def test_a_moment_is_read_as_people_write_it(text, asked, now, zone, want):
    assert read(text, asked, now, zone) == want


REFUSED = [
    ("", S, "empty"),
    ("x" * 200, S, "longer"),
    ("soon", S, "no such"),
    ("10", S, "a day or an hour"),
    ("2026", S, "a day or an hour"),
    ("november", S, "a day or an hour"),
    ("01/02/2026", S, "more than one way"),
    ("1 2 3", S, "more than one way"),
    ("3 nov 26", S, "more than one way"),
    ("next friday", E, "two people"),
    ("last 8am", S, '"last" goes with'),
    ("last friday", E, '"last" goes with'),
    ("yesterday friday", S, "two days"),
    ("yesterday 16 nov", S, "two days"),
    ("8am IST", S, "no such"),
    ("8am Europe/Atlantis", S, "no zone is called"),
    ("2026-02-30 8am", S, "2026-02-30"),
    ("25:00", S, "no such"),
    ("yesterday", E, "already past"),
    ("2020-01-01", E, "already past"),
    ("0s", E, "already past"),
    ("90m ago", E, "to come"),
    ("in 90m", S, "past"),
    ("99999999999w", E, "beyond"),
    ("²h", S, "no such"),
    ("-5m", S, "no day"),
    ("🕗", S, "no such"),
    ("8am; rm -rf /", S, "no such"),
]


@pytest.mark.parametrize(("text", "asked", "why"), REFUSED)
def test_what_names_no_moment_or_two_is_refused_and_says_why(text, asked, why):
    with pytest.raises(Unreadable, match=why):
        instant(text, asked, now=at(TUESDAY), zone=BERLIN)


@pytest.mark.parametrize(
    ("text", "needs"),
    [("90m", False), ("2026-11-16T08:00Z", False), ("2026-11-16", False), ("8am", True), ("mon 9:00", True)],
)
def test_ages_and_iso_times_need_no_library(text, needs, monkeypatch):
    monkeypatch.setitem(sys.modules, "dateutil", None)
    monkeypatch.setitem(sys.modules, "dateutil.parser", None)
    if needs:
        with pytest.raises(NeedsLibrary):
            instant(text, S, now=at(TUESDAY), zone=BERLIN)
    else:
        assert instant(text, S, now=at(TUESDAY), zone=BERLIN) > 0


def test_without_a_zone_it_is_that_of_the_host(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert instant("yesterday 22:00", S, now=at(TUESDAY)) == at("2026-11-16T22:00:00+05:30")
    finally:
        monkeypatch.undo()
        time.tzset()
