"""What a person reads: one Entry an event, the same for every CLI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleet.backends.ledger import UNKNOWN, Counts
from fleet.times.iso import instant

USAGE = "usage"  # the text of an event that tells tokens and nothing else


class Role(StrEnum):
    """Whose event it is. The words are what stands in the second column."""

    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL = "tool"  # a call
    RESULT = "result"  # what came back
    ERROR = "error"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. `at` is seconds since the epoch, None where the record is not dated."""

    at: float | None
    role: Role
    text: str
    tool: str = ""
    size: int | None = None  # of a result, in characters, before anything is cut
    counts: Counts | None = None  # of the message this event belongs to, on its first event only
    model: str = ""
    message: str = ""
    side: bool = False  # a sub-agent speaks
    failed: bool = False
    call: str = ""  # what a result and the call it answers have in common
    more: str = ""  # of a call: what it was given beside the text, a line each


def clock(value: Any) -> float | None:
    """An instant as ISO text, seconds or milliseconds; None when it is none of them."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) / 1000 if value > 1e11 else float(value)  # noqa: PLR2004 - ms since 1973
    return instant(value) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """A word of a record as text that can be written anywhere: JSON may hold halves of characters."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def day_of(value: Any) -> str:
    """The day of an instant in universal time, as its records are compared: by name."""
    if isinstance(value, str) and value.endswith("Z"):
        return text_of(value[:10])
    at = clock(value)
    try:
        return UNKNOWN if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def content_text(content: Any) -> str:
    """The words of a content field: a string, or a list of blocks of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content_text(content.get("text") or content.get("content"))
    if not isinstance(content, list):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            text = content_text(block.get("text") or block.get("content"))
            parts.append(text or f"[{block.get('type', 'block')}]")
    return "\n".join(part for part in parts if part)


# Of a tool's arguments the one that says what it does; anything else is shown as JSON.
_TELLING = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
)


def told_call(arguments: Any) -> tuple[str, str]:
    """A tool call in one line, and the rest of what it was given."""
    if isinstance(arguments, str):
        try:
            return told_call(json.loads(arguments) or "")
        except (ValueError, RecursionError):
            return arguments, ""
    if isinstance(arguments, dict):
        for key in _TELLING:
            value = arguments.get(key)
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                value = " ".join(value)
            if isinstance(value, str) and value:
                rest = {name: given for name, given in arguments.items() if name != key}
                return value, "\n".join(f"{name}: {_plain(given)}" for name, given in rest.items())
    return _plain(arguments) if arguments else "", ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
