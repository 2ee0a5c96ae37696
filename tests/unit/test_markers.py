"""WAITING-UNTIL: what counts as a marker, and which instant it names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.backends.lines import AHEAD, waiting_until

NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("WAITING-UNTIL: 2026-11-16T04:30:00Z", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL: 2026-11-16T04:30Z", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL: 2026-11-16T04:30", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL: 2026-11-16 04:30", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL: 2026-11-16T04:30:00.5Z", "2026-11-16T04:30:00.500000+00:00"),
        ("WAITING-UNTIL: 2026-11-16T06:30:00+02:00", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL: 2026-11-16T06:30+0200", "2026-11-16T04:30:00+00:00"),
        ("WAITING-UNTIL:2026-11-16T04:30Z", "2026-11-16T04:30:00+00:00"),
        ("  WAITING-UNTIL: 2026-11-16T04:30Z for CI", "2026-11-16T04:30:00+00:00"),
        ("● WAITING-UNTIL: 2026-11-16T04:30Z", "2026-11-16T04:30:00+00:00"),
        ("• **WAITING-UNTIL: 2026-11-16T04:30Z**", "2026-11-16T04:30:00+00:00"),
        ("`WAITING-UNTIL: 2026-11-16T04:30Z`", "2026-11-16T04:30:00+00:00"),
    ],
)
def test_a_marker_names_its_instant_and_without_a_zone_it_is_utc(line, expected):
    """R095, T76."""
    marker = waiting_until(line, NOW)
    assert marker is not None
    assert marker.until == datetime.fromisoformat(expected).timestamp()
    assert not marker.capped


@pytest.mark.parametrize(
    "line",
    [
        "",
        "waiting until tomorrow",
        "> WAITING-UNTIL: 2026-11-16T04:30Z",
        "print WAITING-UNTIL: 2026-11-16T04:30Z as your last line",
        "WAITING-UNTIL 2026-11-16T04:30Z",
        "┃ WAITING-UNTIL: 2026-11-16T04:30Z",
    ],
)
def test_a_quotation_or_an_instruction_is_no_marker(line):
    assert waiting_until(line, NOW) is None


@pytest.mark.parametrize(
    "when", ["<ISO-8601>", "soon", "", "2026-13-45T99:99Z", "04:30", "2026-11-16T04:30Zulu"]
)
def test_a_marker_that_cannot_be_read_is_there_without_an_instant(when):
    """T76: the prompt's own placeholder is no promise."""
    marker = waiting_until(f"WAITING-UNTIL: {when}", NOW)
    assert marker is not None
    assert marker.until is None


def test_nobody_waits_longer_than_a_day_on_one_line():
    """T76."""
    marker = waiting_until("WAITING-UNTIL: 2027-01-01T00:00Z", NOW)
    assert marker is not None
    assert (marker.until, marker.capped) == (NOW + AHEAD, True)


@given(st.text(max_size=200))
def test_no_line_can_break_it(line):
    waiting_until(line, NOW)
    waiting_until(f"WAITING-UNTIL: {line}", NOW)
