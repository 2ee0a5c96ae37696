"""JSON that somebody else wrote: never trusted to be whole, or to be what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def as_object(raw: bytes | bytearray | str) -> dict[str, Any]:
    """A JSON object, or an empty one. Bytes that are no UTF-8 and bare control characters are forgiven."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    try:
        value = json.loads(text.lstrip("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines text, one a line; anything else is passed over."""
    start = 0
    while start < len(raw):  # a line at a time: mostly the first one tells all
        end = raw.find(b"\n", start) + 1 or len(raw)
        if record := as_object(raw[start:end]):
            yield record
        start = end
