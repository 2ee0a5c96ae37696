"""Claude Code: JSONL, one line a content block, each with the usage of the whole message.

Usage is found by jumping: only lines that hold the key `"output_tokens"`, which every usage has, are
decoded, and of those only the fields that are counted. (A long key is found twice as fast as a short one.)
Quotes inside JSON strings are escaped, so a hit inside a string is possible only at its end; the whole
line is decoded, so such a hit does no harm. Lines of user turns repeat a
sub-agent's total under toolUseResult: it is not under message, so it is not counted twice.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

from fleet.transcripts.entries import Entry, Role, clock, content_text, short_json
from fleet.transcripts.tail import Feed, Ident
from fleet.transcripts.usage import ABSURD, UNKNOWN, Counts, Four, Ledger, number

KIND = "claude"
SYNTHETIC = "<synthetic>"  # the model of lines the CLI wrote itself: errors, limits
_KEY = b'"output_tokens"'
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


# What is counted of one line: message id, request id, model, day, counts, said by a sub-agent.
# A plain tuple, because a quarter of a million of them are made for a gigabyte.
Line = tuple[str, str, str, str, Four, bool]
Decode = Callable[[bytearray], Line | None]


def homes(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where this CLI keeps its files, for a process with that environment."""
    named = env.get("CLAUDE_CONFIG_DIR", "")
    if named:
        return tuple(os.path.expanduser(part.strip()) for part in named.split(",") if part.strip())
    home = env.get("HOME") or os.path.expanduser("~")
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return (os.path.join(home, ".claude"), os.path.join(config, "claude"))


def slug(directory: str) -> str:
    """The folder name of a working directory. Not reversible, and two directories may share one."""
    return re.sub(r"[^A-Za-z0-9]", "-", directory)


def session_of(path: str) -> str:
    """The conversation a file belongs to; a sub-agent's file lies under its parent's id."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) == "subagents":
        return os.path.basename(os.path.dirname(folder))
    return os.path.basename(path).removesuffix(".jsonl")


def lenient(raw: bytes | bytearray) -> Line | None:
    """Decode with the standard library, forgiving bytes that are not UTF-8 and odd types."""
    try:
        data = json.loads(raw.decode("utf-8", "replace").lstrip("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return None
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict) or not isinstance(usage := message.get("usage"), dict):
        return None
    model = _text(message.get("model"))
    if model == SYNTHETIC or data.get("isApiErrorMessage") is True:
        return None
    i, o, w, r = (number(usage.get(name)) for name in _USAGE)
    counts = (i, o, w, r)
    day = _text(data.get("timestamp"))[:10]
    side = data.get("isSidechain") is True
    return _text(message.get("id")), _text(data.get("requestId")), model, day, counts, side


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def quick() -> Decode:
    """A decoder that builds only the counted fields; whatever it does not like goes the lenient way."""
    import msgspec

    # Built by call, not by annotation: with annotations kept as text the library could not resolve them here.
    usage_row = msgspec.defstruct("usage_row", [(name, int, 0) for name in _USAGE], gc=False)
    message_row = msgspec.defstruct(
        "message_row", [("id", str, ""), ("model", str, ""), ("usage", usage_row | None, None)], gc=False
    )
    row_type = msgspec.defstruct(
        "row",
        [
            ("message", message_row | None, None),
            ("requestId", str, ""),
            ("timestamp", str, ""),
            ("isSidechain", bool, False),
            ("isApiErrorMessage", bool, False),
        ],
        gc=False,
    )
    decode: Callable[[Any], Any] = msgspec.json.Decoder(row_type).decode

    def line(raw: bytearray) -> Line | None:
        try:
            row = decode(raw)
        except (ValueError, RecursionError):
            return lenient(raw)
        message = row.message
        if message is None or (usage := message.usage) is None:
            return None
        model = message.model
        if model == SYNTHETIC or row.isApiErrorMessage:
            return None
        counts = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
        )
        if min(counts) < 0 or max(counts) >= ABSURD:
            return lenient(raw)
        return message.id, row.requestId, model, row.timestamp[:10], counts, row.isSidechain

    return line


class Repeat:
    """Knows the next line of a message whose usage was just counted, without decoding it.

    Such a line has the same message id, and the same bytes from its usage to its request id. Counting it
    would change nothing. In a conversation of several blocks a message that is most lines.
    """

    def __init__(self) -> None:
        self._name = self._tail = b""
        self._reach = self._back = 0

    def known(self, buffer: bytearray, start: int, hit: int) -> bool:
        """Whether the line around `hit` is one more of the message learnt last."""
        if not self._tail or not buffer.startswith(self._tail, hit - self._back):
            return False
        return buffer.find(self._name, start, start + self._reach) >= 0

    def learn(self, raw: bytearray, hit: int, line: Line) -> None:
        """Remember a line of the main conversation; anything spelt otherwise is simply decoded again."""
        ident, request, *_, side = line
        self._tail = b""
        if not ident or not request or side:
            return
        self._name, end = f'"id":"{ident}"'.encode(), f'"requestId":"{request}"'.encode()
        usage, stop = raw.rfind(b'"usage"', 0, hit), raw.find(end, hit)
        at = raw.find(self._name, 0, usage)
        if at >= 0 and stop >= 0:
            self._tail, self._back = bytes(raw[usage : stop + len(end)]), hit - usage
            self._reach = at + len(self._name) + 64


def feeder(ledger: Ledger, source: int, file: Ident, decode: Decode) -> Feed:
    """The function a Tail feeds: pours a file's usage into the ledger."""
    record, add, repeat = ledger.sources[source], ledger.add, Repeat()

    def feed(buffer: bytearray, end: int, offset: int) -> None:
        find, rfind, position = buffer.find, buffer.rfind, 0
        while (hit := find(_KEY, position, end)) >= 0:
            start = rfind(b"\n", position, hit) + 1 or position
            stop = find(b"\n", hit, end)
            stop = end if stop < 0 else stop
            position = stop + 1
            record.records += 1
            if repeat.known(buffer, start, hit):
                continue
            raw = buffer[start:stop]
            line = decode(raw)
            if line is not None:
                ident, request, model, day, counts, side = line
                if not ident:
                    ident = f"\x00{file}:{offset + start}:{crc32(raw)}"
                add(source, ident, request, counts, model or UNKNOWN, day or UNKNOWN, side)
                repeat.learn(raw, hit - start, line)

    return feed


def head(lines: Iterator[dict[str, Any]]) -> tuple[str, str]:
    """Session id and first working directory, from the opening lines. The folder's name does not tell."""
    session = cwd = ""
    for line in lines:
        session = session or _text(line.get("sessionId"))
        cwd = cwd or _text(line.get("cwd"))
        if session and cwd:
            break
    return session, cwd


def entries(line: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one line; types that nobody knows yet give none."""
    kind, at = line.get("type"), clock(line.get("timestamp"))
    side = line.get("isSidechain") is True
    message = line.get("message")
    if kind in ("user", "assistant") and isinstance(message, dict):
        yield from _blocks(line, message, at, side=side)
    elif kind == "system":
        text = _text(line.get("content"))
        if line.get("subtype") == "turn_duration":
            text = f"turn took {number(line.get('durationMs')) / 1000:.1f}s"
        elif line.get("subtype") == "compact_boundary":
            text = text or "conversation compacted"
        if text:
            yield Entry(at, Role.SYSTEM, text, side=side)
    elif kind == "queue-operation" and _text(line.get("content")):
        yield Entry(at, Role.SYSTEM, f"queued: {_text(line.get('content'))}", side=side)
    elif kind == "summary" and _text(line.get("summary")):
        yield Entry(at, Role.SYSTEM, f"summary: {_text(line.get('summary'))}", side=side)


def _blocks(
    line: dict[str, Any], message: dict[str, Any], at: float | None, *, side: bool
) -> Iterator[Entry]:
    content, ident, model = message.get("content"), _text(message.get("id")), _text(message.get("model"))
    failed = line.get("isApiErrorMessage") is True or model == SYNTHETIC
    counts: Counts | None = None
    usage = message.get("usage")
    if isinstance(usage, dict) and not failed:
        counts = Counts(*(number(usage.get(name)) for name in _USAGE))
    speaker = Role.USER if line.get("type") == "user" else Role.ASSISTANT
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            role = Role.ERROR if failed else speaker
            yield Entry(
                at, role, content_text(block.get("text")), "", None, counts, model, ident, side, failed
            )
        elif kind in ("thinking", "redacted_thinking"):
            text = _text(block.get("thinking")) or "(not shown by the CLI)"
            yield Entry(at, Role.THINKING, text, "", None, counts, model, ident, side)
        elif kind in ("tool_use", "server_tool_use"):
            call = short_json(block.get("input"))
            yield Entry(at, Role.TOOL, call, _text(block.get("name")), None, counts, model, ident, side)
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            text = content_text(block.get("content"))
            wrong = block.get("is_error") is True
            yield Entry(at, Role.RESULT, text, "", len(text), None, "", ident, side, wrong)
        elif isinstance(kind, str):
            yield Entry(at, speaker, f"[{kind}]", "", None, counts, model, ident, side)
