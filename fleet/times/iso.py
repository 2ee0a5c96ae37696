"""ISO times, as programs write them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(text: str) -> datetime | None:
    """The moment as it is written, with or without a zone; None when it is none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def instant(text: str) -> float | None:
    """The same as seconds since the epoch; without a zone it is universal time."""
    found = iso(text)
    if found is None:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    try:
        return found.timestamp()
    except (OverflowError, OSError, ValueError):
        return None
