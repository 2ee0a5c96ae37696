"""Reading JSON that somebody else wrote: never trusted to be whole, or to be what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any


def as_object(data: bytes) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    try:
        value = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines text, one a line; anything else is passed over."""
    for line in data.split(b"\n"):
        record = as_object(line)
        if record:
            yield record


def instant(stamp: Any) -> float | None:
    """An ISO time as seconds since the epoch."""
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
