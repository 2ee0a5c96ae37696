"""Codex: rollout files, lines of {timestamp, type, payload}, with a running total of tokens.

The total only grows; the `last` figure beside it is repeated whenever rate limits change, so it is
never added up. What counts is the step from one total to the next, on the day and model of that moment.
Cached input is inside input here, and reasoning inside output.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.transcripts.entries import USAGE, Entry, Role, clock, content_text, short_json
from fleet.transcripts.tail import Feed
from fleet.transcripts.usage import UNKNOWN, Counts, Four, Ledger, number

KIND = "codex"
_TOTALS = b'"token_count"'
_CONTEXT = b'"turn_context"'


def homes(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where this CLI keeps its files, for a process with that environment."""
    home = env.get("HOME") or os.path.expanduser("~")
    return (env.get("CODEX_HOME") or os.path.join(home, ".codex"),)


def _object(raw: bytes | bytearray) -> dict[str, Any]:
    try:
        data = json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _payload(line: dict[str, Any]) -> dict[str, Any]:
    payload = line.get("payload")
    return payload if isinstance(payload, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def split(usage: dict[str, Any]) -> Four:
    """Our four from the CLI's figures, so that they add up to its own total."""
    whole, read = number(usage.get("input_tokens")), number(usage.get("cached_input_tokens"))
    write = number(usage.get("cache_write_input_tokens"))
    return (max(0, whole - read - write), number(usage.get("output_tokens")), write, read)


@dataclass(slots=True)
class Thread:
    """What must be remembered between two looks at one rollout."""

    ledger: Ledger
    source: int
    model: str = ""
    total: Four = (0, 0, 0, 0)

    def restart(self) -> None:
        """The file is read from its start again; what it repeats is known by instant and total."""
        self.model, self.total = "", (0, 0, 0, 0)

    def feeder(self) -> Feed:
        return self._feed

    def _feed(self, buffer: bytearray, end: int, _offset: int) -> None:
        position = 0
        while (hit := buffer.find(_TOTALS, position, end)) >= 0:
            self._learn_model(buffer, position, hit)
            raw, position = _line_at(buffer, hit, end)
            self._count(_object(raw))
        self._learn_model(buffer, position, end)

    def _learn_model(self, buffer: bytearray, start: int, end: int) -> None:
        """The newest turn context before `end` says which model answers from there on."""
        while (hit := buffer.rfind(_CONTEXT, start, end)) >= 0:
            line = _object(_line_at(buffer, hit, len(buffer))[0])
            if line.get("type") == "turn_context":
                self.model = _text(_payload(line).get("model")) or self.model
                return
            end = hit

    def _count(self, line: dict[str, Any]) -> None:
        payload = _payload(line)
        info = payload.get("info")
        usage = info.get("total_token_usage") if isinstance(info, dict) else None
        if payload.get("type") != "token_count" or not isinstance(usage, dict):
            return
        total = split(usage)
        if sum(total) < sum(self.total):
            self.total = (0, 0, 0, 0)  # the CLI began to count anew
        step = tuple(max(0, now - then) for now, then in zip(total, self.total, strict=True))
        self.total = total
        if any(step):
            instant = _text(line.get("timestamp"))
            name = f"codex\x00{instant}\x00{total}"
            day = instant[:10] or UNKNOWN
            counts = (step[0], step[1], step[2], step[3])
            self.ledger.sources[self.source].records += 1
            self.ledger.add(self.source, name, "", counts, self.model or UNKNOWN, day)


def _line_at(buffer: bytearray, hit: int, end: int) -> tuple[bytearray, int]:
    """The line around a hit, and where the next one begins."""
    start = buffer.rfind(b"\n", 0, hit) + 1
    stop = buffer.find(b"\n", hit, end)
    stop = end if stop < 0 else stop
    return buffer[start:stop], stop + 1


def head(lines: Iterator[dict[str, Any]]) -> tuple[str, str]:
    """Session id and working directory, from the opening lines."""
    for line in lines:
        if line.get("type") == "session_meta":
            meta = _payload(line)
            return _text(meta.get("session_id")) or _text(meta.get("id")), _text(meta.get("cwd"))
    return "", ""


def entries(line: dict[str, Any]) -> Iterator[Entry]:
    """The readable events of one line. What the CLI tells the model about itself is left out."""
    kind, payload, at = line.get("type"), _payload(line), clock(line.get("timestamp"))
    what = payload.get("type")
    if kind == "response_item" and what == "message":
        yield from _message(payload, at)
    elif kind == "response_item" and what == "reasoning":
        text = content_text(payload.get("summary")) or content_text(payload.get("content"))
        if text:
            yield Entry(at, Role.THINKING, text)
    elif kind == "response_item" and what in ("function_call", "custom_tool_call", "local_shell_call"):
        call = payload.get("arguments") or payload.get("input") or payload.get("action")
        yield Entry(at, Role.TOOL, short_json(call), _text(payload.get("name")) or _text(what))
    elif kind == "response_item" and what in ("function_call_output", "custom_tool_call_output"):
        text = content_text(payload.get("output"))
        yield Entry(at, Role.RESULT, text, size=len(text))
    elif kind == "event_msg" and what == "task_complete":
        error = payload.get("error")
        if isinstance(error, dict):
            yield Entry(at, Role.ERROR, _text(error.get("message")) or json.dumps(error), failed=True)
        else:
            yield Entry(at, Role.SYSTEM, f"turn took {number(payload.get('duration_ms')) / 1000:.1f}s")
    elif kind == "event_msg" and what == "token_count":
        info = payload.get("info")
        usage = info.get("last_token_usage") if isinstance(info, dict) else None
        if isinstance(usage, dict):
            counts = Counts(*split(usage))
            total = (
                json.dumps(info.get("total_token_usage"), sort_keys=True) if isinstance(info, dict) else ""
            )
            yield Entry(at, Role.SYSTEM, USAGE, counts=counts, message=f"usage {total}")
    elif kind == "compacted":
        yield Entry(at, Role.SYSTEM, "conversation compacted")


_SPEAKERS = {"user": Role.USER, "assistant": Role.ASSISTANT}


def _message(payload: dict[str, Any], at: float | None) -> Iterator[Entry]:
    role = _SPEAKERS.get(_text(payload.get("role")))
    text = content_text(payload.get("content"))
    if role is Role.USER and text.startswith("<environment_context>"):
        return
    if role and text:
        yield Entry(at, role, text, message=_text(payload.get("id")))
