"""Reset times: every form, in every zone, on both days when the clocks change."""

from __future__ import annotations

import os
import random
import time as clock
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone

import pytest
from dateutil import parser
from hypothesis import given
from hypothesis import strategies as st

from fleet.times.resets import CAP, MINUTE, parse_duration, parse_reset

NOW = datetime(2026, 11, 16, 3, 0, 30, tzinfo=UTC).timestamp()  # 04:00:30 in Berlin, a Monday
ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
QUICK = 60  # zones in the quick suite
CHANGES = (datetime(2026, 3, 29), datetime(2026, 10, 25))  # noqa: DTZ001  local dates, a zone comes with each


def berlin(text: str, *, now: float = NOW, zone: str = "Europe/Berlin") -> str | None:
    value = parse_reset(text, now=now, zone=zone)
    if value is None:
        return None
    return datetime.fromtimestamp(value, zoneinfo.ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You've hit your session limit · resets 4:25am (Europe/Berlin)", "2026-11-16 04:25:00"),
        ("resets 4am (Europe/Berlin)", "2026-11-16 04:01:00"),  # the named minute is not over yet
        ("resets 3am (Europe/Berlin)", "2026-11-17 03:00:00"),
        ("resets Nov 19, 1:15pm (Europe/Berlin)", "2026-11-19 13:15:00"),
        ("resets Nov 23, 6pm (Europe/Berlin)", "2026-11-23 18:00:00"),
        ("resets Jan 3, 2027, 7:13pm (Europe/Berlin)", "2027-01-03 19:13:00"),
        ("or try again at 4:30 AM.", "2026-11-16 04:30:00"),
        ("or try again at 4:30\u202fAM.", "2026-11-16 04:30:00"),
        ("try again at Nov 20th, 2026 7:37 PM.", "2026-11-20 19:37:00"),
        ("resets 04:30 on 20 Nov", "2026-11-20 04:30:00"),
        ("resets at 04:30 · /status", "2026-11-16 04:30:00"),
        ("resets 3pm", "2026-11-16 15:00:00"),
        ("resets tonight at 11pm", "2026-11-16 23:00:00"),
        ("Resets Nov 17 (9:00 AM)", "2026-11-17 09:00:00"),
        ("429 Too Many Requests, Retry-After: 3600", "2026-11-16 05:00:30"),
        ('{"type":"usage_limit_reached","resets_at":1794808800}', "2026-11-16 07:00:00"),
        ('{"type":"usage_limit_reached","resets_in_seconds":5400}', "2026-11-16 05:30:30"),
        ("resets 3:45 pm", "2026-11-16 15:45:00"),
        ("resets 15:00", "2026-11-16 15:00:00"),
        ("resets Apr 23, 3pm", "2027-04-23 15:00:00"),
        ("resets Mon 9am", "2026-11-16 09:00:00"),
        ("resets Mon 3am", "2026-11-23 03:00:00"),
        ("resets Thursday at 9:00 AM UTC", "2026-11-19 10:00:00"),
        ("resets Thursday, Nov 19 at 9am", "2026-11-19 09:00:00"),
        ("resets tomorrow at 9am", "2026-11-17 09:00:00"),
        ("resets in 2h 15m", "2026-11-16 06:15:30"),
        ("resets in 3 hours", "2026-11-16 07:00:30"),
        ("try again in 5 days 3 hours 10 minutes.", "2026-11-21 07:10:30"),
        ("[retrying in 27s attempt #1]", "2026-11-16 04:00:57"),
        ("[retrying in 1h 59m attempt #1]", "2026-11-16 05:59:30"),
        ("retry after 30s", "2026-11-16 04:01:00"),
        ("resets in 20 days", "2026-11-24 04:00:30"),  # capped
        ("reset at 2026-11-16T08:00:00Z", "2026-11-16 09:00:00"),
        ("reset at 2026-11-16T08:00:00+02:00", "2026-11-16 07:00:00"),
        ("resets at 2026-11-19 13:15 (Europe/Berlin)", "2026-11-19 13:15:00"),
        ("limit reached|1794800000", "2026-11-16 04:33:20"),
        ("limit reached|1794800000000", "2026-11-16 04:33:20"),
        ("Your limit will reset at 3pm (America/New_York).", "2026-11-16 21:00:00"),
        ("resets 3pm UTC+2", "2026-11-16 14:00:00"),
        ("resets 3pm (GMT-03:30)", "2026-11-16 19:30:00"),
        ("resets 3pm PST", "2026-11-17 00:00:00"),
        ("usage limit hit, 3:45pm", "2026-11-16 15:45:00"),
        ("resets 3pm (Pro)", "2026-11-16 15:00:00"),
        ("resets 12am", "2026-11-17 00:00:00"),
        ("resets 12pm", "2026-11-16 12:00:00"),
        ("resets 15:00+02:00", "2026-11-16 14:00:00"),
        ("resets 3pm +0200", "2026-11-16 14:00:00"),
        ("resets 3pm (+05:30)", "2026-11-16 10:30:00"),
        ("resets 3pm MSK", "2026-11-16 13:00:00"),
        ("resets 3pm CDT", "2026-11-16 22:00:00"),
        ("resets 3pm AEDT", "2026-11-16 05:00:00"),
        ("resets 3pm Eastern", "2026-11-16 21:00:00"),
        ("resets 3pm (Pacific Time)", "2026-11-17 00:00:00"),
        ("resets 3pm, Nov 19", "2026-11-19 15:00:00"),
        ("resets 13:15, 19 Nov 2026 (Europe/Berlin)", "2026-11-19 13:15:00"),
        ("resets 19th of November at 1pm", "2026-11-19 13:00:00"),
        ("resets 19.11.2026 13:15", "2026-11-19 13:15:00"),
        ("resets 2026/11/19 13:15", "2026-11-19 13:15:00"),
        ("resets Thu, 19 Nov 2026 13:15:00 GMT", "2026-11-19 14:15:00"),
        ("spend limit reached · resets Dec 1", "2026-12-01 00:00:00"),
        ("resets Thursday", "2026-11-19 00:00:00"),
        ("resets tomorrow", "2026-11-17 00:00:00"),
        ("resets next Monday at 9am", "2026-11-23 09:00:00"),
        ("resets this Friday at 5pm", "2026-11-20 17:00:00"),
        ("resets tomorrow at noon", "2026-11-17 12:00:00"),
        ("resets at midnight", "2026-11-17 00:00:00"),
        ("try again in an hour", "2026-11-16 05:00:30"),
        ("available within 2 hours", "2026-11-16 06:00:30"),
        ("try again in 2 days 4 hours", "2026-11-18 08:00:30"),
    ],
)
def test_a_banner_names_this_instant(text, expected):
    """T71."""
    assert berlin(text) == expected


DATED = (
    "%b %d, %Y %I:%M %p",
    "%B %d, %Y %H:%M",
    "%d %b %Y %H:%M",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
    "%a, %d %b %Y %H:%M:%S %z",
    "%A, %B %d, %Y %I:%M %p",
)


@given(
    st.sampled_from(DATED),
    st.datetimes(datetime(2026, 11, 17), datetime(2027, 10, 1)),  # noqa: DTZ001  local, an offset is added
    st.integers(-12 * 4, 14 * 4),
)
def test_a_dated_form_is_what_dateutil_reads_where_that_reads_it_well(form, local, quarters):
    """Somebody else's eyes on the same text: months, days, noon and midnight, and the sign of an offset."""
    text = local.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=15 * quarters))).strftime(form)
    theirs = parser.parse(text, default=datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")))
    assert parse_reset(f"resets {text}", now=NOW, zone="Europe/Berlin") == pytest.approx(theirs.timestamp())


@pytest.mark.parametrize(
    "text",
    [
        "or try again later.",
        "resets soon",
        "resets 25:00",
        "resets 13pm",
        "resets Feb 30, 3pm",
        "resets 3pm (Mars/Phobos)",
        "resets 3pm (XYZT)",
        "resets 3pm IST",  # India, Israel or Ireland
        "resets 11/19/2026 1:15 PM",  # or is it a month that does not exist?
        "resets 31.11.2026 13:15",
        "resets 3pm +99:00",
        "try again in a few minutes",
        "resets 3",
        "API Error: Request rejected (429)",
        "You've hit your monthly spend limit",
        "attempt 3/10 of 2026",
        "",
    ],
)
def test_what_cannot_be_read_is_none_and_never_a_guess(text):
    assert berlin(text) is None


def test_the_last_time_of_several_counts():
    """T71."""
    assert berlin("resets 2pm (Europe/Berlin) … resets 5pm (Europe/Berlin)") == "2026-11-16 17:00:00"
    assert berlin("resets 2pm, or try again later") == "2026-11-16 14:00:00"


def test_a_dated_instant_that_has_passed_is_told_as_it_is():
    """T71: that is how a stale banner is known."""
    assert berlin("resets Nov 12, 1pm (Europe/Berlin)") == "2026-11-12 13:00:00"


def test_a_date_without_a_year_is_the_nearest_one():
    late = datetime(2026, 12, 30, tzinfo=UTC).timestamp()
    assert berlin("resets Jan 3, 7pm", now=late) == "2027-01-03 19:00:00"


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        # Clocks go back at 03:00 on 25 October 2026: 02:30 happens twice, the later one counts.
        ("2026-10-24T23:00:00+00:00", "resets 2:30am", "2026-10-25T01:30:00+00:00"),
        # Clocks go forward at 02:00 on 29 March 2026: 02:30 never happens, 03:30 does.
        ("2026-03-28T23:00:00+00:00", "resets 2:30am", "2026-03-29T01:30:00+00:00"),
        ("2026-03-28T23:00:00+00:00", "resets Mar 29, 2:30am", "2026-03-29T01:30:00+00:00"),
    ],
)
def test_when_clocks_change_the_later_or_the_shifted_instant_counts(now, text, expected):
    """T71."""
    begin = datetime.fromisoformat(now).timestamp()
    assert parse_reset(text, now=begin, zone="Europe/Berlin") == datetime.fromisoformat(expected).timestamp()


def forms(moment: datetime, zone: str) -> list[tuple[str, bool]]:
    """Every way to write that wall-clock time with its zone, and whether it carries a date."""
    half = moment.strftime("%I:%M%p").lstrip("0").lower()
    full, wall = moment.strftime("%H:%M"), moment.strftime
    return [
        (f"resets {half} ({zone})", False),
        (f"resets {full} ({zone})", False),
        (f"resets {wall('%a')} {half} ({zone})", False),
        (f"resets {wall('%b')} {moment.day}, {half} ({zone})", True),
        (f"resets {wall('%b')} {moment.day}, {moment.year}, {half} ({zone})", True),
        (f"resets {full} on {moment.day} {wall('%b')} ({zone})", True),
        (f"try again at {wall('%Y-%m-%d %H:%M')} ({zone})", True),
        (f"resets {half}, {wall('%b')} {moment.day} ({zone})", True),
        (f"resets {wall('%d.%m.%Y')} {full} ({zone})", True),
        (f"resets {wall('%Y/%m/%d')} at {half} ({zone})", True),
        (f"resets {wall('%A')}, {wall('%B')} {moment.day}, {moment.year} at {half} ({zone})", True),
    ]


def exact_forms(moment: datetime, now: float) -> list[str]:
    """Every way to name that very instant, wherever anybody is."""
    ahead, offset = round(moment.timestamp() - now), moment.strftime("%z")[:5]
    days, rest = divmod(ahead, 86400)
    hours, minutes, seconds = rest // 3600, rest % 3600 // 60, rest % 60
    half = moment.strftime("%I:%M%p").lstrip("0").lower()
    return [
        f"limit reached|{moment.timestamp():.0f}",
        f"limit reached|{moment.timestamp() * 1000:.0f}",
        f"resets at {moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        f"resets at {moment.astimezone(UTC):%a, %d %b %Y %H:%M:%S} GMT",
        f"resets in {days}d {hours}h {minutes}m {seconds}s",
        f"try again in {days} days, {hours} hours, {minutes} minutes and {seconds} seconds.",
        # offsets have minutes and no seconds; a local mean time that has is left out
        *(
            [
                f"resets {moment:%b} {moment.day}, {moment.year}, {half} {offset}",
                f"resets {moment:%Y-%m-%d %H:%M} UTC{offset[:3]}:{offset[3:]}",
            ]
            if moment.utcoffset() == timedelta(minutes=round(moment.utcoffset().total_seconds() / 60))
            else []
        ),
    ]


def check_zone(zone: str, dice: random.Random) -> None:
    place = zoneinfo.ZoneInfo(zone)
    for day in CHANGES:
        for _ in range(6):
            now = (day.replace(tzinfo=place) + timedelta(minutes=dice.randrange(-1440, 2880))).timestamp()
            ahead = datetime.fromtimestamp(now + dice.randrange(120, 6 * 86400), place)
            for text, dated in forms(ahead.replace(second=0), zone):
                value = parse_reset(text, now=now, zone="UTC")
                assert value is not None, (zone, text)
                assert value == parse_reset(text, now=now, zone="Asia/Kathmandu"), (zone, text)
                wall = datetime.fromtimestamp(value, place)
                if dated:
                    assert abs(value - ahead.timestamp()) <= 7200 + MINUTE, (zone, text, wall)
                else:
                    assert now < value <= now + CAP, (zone, text, wall)
                again = parse_reset(text, now=now + 1, zone="UTC")
                assert again is not None
                assert again >= value, (zone, text)
            minute = ahead.replace(second=0)
            for text in exact_forms(minute, float(round(now))):
                value = parse_reset(text, now=float(round(now)), zone="Asia/Kathmandu")
                assert value == minute.timestamp(), (zone, text)


@pytest.mark.parametrize("zone", random.Random(1).sample(ZONES, QUICK))
def test_in_any_zone_on_both_changing_days_every_form_lies_ahead_for_any_host(zone):
    """I24, sampled."""
    check_zone(zone, random.Random(zone))


@pytest.mark.long
def test_in_every_zone_of_the_database_every_form_lies_ahead_for_any_host():
    """I24."""
    for zone in ZONES:
        check_zone(zone, random.Random(zone))


def test_the_hosts_own_zone_setting_changes_nothing(monkeypatch):
    """I24: TZ of the process plays no part."""
    values = set()
    for zone in ("UTC", "Asia/Tokyo", "America/St_Johns"):
        monkeypatch.setitem(os.environ, "TZ", zone)
        clock.tzset()
        values.add(parse_reset("resets 4:25am (Europe/Berlin)", now=NOW, zone="UTC"))
        values.add(parse_reset("resets 4:25am", now=NOW, zone="Europe/Berlin"))
    monkeypatch.delitem(os.environ, "TZ")
    clock.tzset()
    assert len(values) == 1


@given(st.text(max_size=120), st.sampled_from(["resets ", "try again at ", "", "in ", "|"]))
def test_no_text_can_break_it(text, lead):
    value = parse_reset(lead + text, now=NOW, zone="Europe/Berlin")
    assert value is None or isinstance(value, float)


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 3_000_000))
def test_a_time_of_day_is_its_next_occurrence(hour, minute, later):
    now = NOW + later
    value = parse_reset(f"resets {hour:02}:{minute:02}", now=now, zone="Europe/Berlin")
    assert value is not None
    assert now < value <= now + 25 * 3600


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h 15m", 8100),
        ("3 hours", 10800),
        ("1 day and 2 minutes", 86520),
        ("45s", 45),
        ("1.5h", 5400),
        ("soon", None),
    ],
)
def test_a_span_in_words_is_so_many_seconds(text, seconds):
    assert parse_duration(text) == seconds
