"""A record with other values, whichever kind it is of: a named tuple or a dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any


def replace(record: Any, **values: Any) -> Any:
    """The record with these values in place of its own."""
    if isinstance(record, tuple):
        return record._replace(**values)  # type: ignore[attr-defined]
    return dataclasses.replace(record, **values)
