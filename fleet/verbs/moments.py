"""Moments and spans of time, as the options of verbs name them."""

from __future__ import annotations

from fleet import bootstrap
from fleet.times import when
from fleet.times.when import Asked
from fleet.verbs.io import Fail


def moment(option: str, text: str, asked: Asked, *, now: float) -> float:
    """A moment as a person writes it, for an option. Before anything is done: it may start us anew."""
    try:
        try:
            return when.instant(text, asked, now=now)
        except when.NeedsLibrary:
            bootstrap.enter(["dateutil"])
            return when.instant(text, asked, now=now)
    except when.Unreadable as fault:
        raise Fail(f"{option} {text!r}: {fault}; expected a moment {asked.examples}", code=2) from None
    except bootstrap.CannotBuild as fault:
        raise Fail(
            f"{option} {text!r} needs python-dateutil, and {fault}",
            hint="an age such as 90m, or an ISO time such as 2026-11-16T08:00+01:00, needs no library",
        ) from None


def span(since: str, until: str, *, now: float) -> tuple[float, float | None]:
    """The past span that --since and --until name; without an end, None."""
    begin = moment("--since", since, Asked.SINCE, now=now) if since else 0.0
    end = moment("--until", until, Asked.UNTIL, now=now) if until else None
    if end is not None and end < begin:
        raise Fail(f"--until {until!r} is before --since {since!r}: nothing lies between them", code=2)
    return begin, end
