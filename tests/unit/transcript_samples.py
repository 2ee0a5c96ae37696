"""Lines as the CLIs write them, for tests that need many or odd ones."""

from __future__ import annotations

import json
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "transcripts"


def claude_line(message="m", request="r", output=10, *, session="s", cwd="/proj/a", compact=True, **over):
    """One assistant line; `over` replaces or adds top-level keys, None takes one away."""
    usage = {
        "input_tokens": 1,
        "output_tokens": output,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 3,
    }
    line = {
        "isSidechain": False,
        "message": {
            "id": message,
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [],
            "usage": usage,
        },
        "requestId": request,
        "type": "assistant",
        "timestamp": "2026-11-16T01:00:00.000Z",
        "cwd": cwd,
        "sessionId": session,
        **over,
    }
    line = {key: value for key, value in line.items() if value is not None}
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(line, separators=separators).encode() + b"\n"


def codex_lines(*totals, cwd="/proj/a", session="t", model="gpt-6-sol", lasts=None, began=0, after=0, **meta):
    """A rollout whose running total of output goes through these values, a second each, `after` its start."""
    yield codex_line("session_meta", {"id": session, "cwd": cwd, **meta}, began)
    yield codex_line("turn_context", {"model": model}, began)
    for second, total in enumerate(totals):
        usage = _codex_usage(total)
        last = _codex_usage(lasts[second]) if lasts else usage
        info = {"total_token_usage": usage, "last_token_usage": last}
        yield codex_line("event_msg", {"type": "token_count", "info": info}, began + after + second)


def _codex_usage(output):
    return {"input_tokens": output * 10, "cached_input_tokens": output * 4, "output_tokens": output}


def codex_line(kind, payload, second=0):
    at = f"2026-11-16T01:{int(second) // 60:02}:{second % 60:06.3f}Z"
    return json.dumps({"timestamp": at, "type": kind, "payload": payload}).encode() + b"\n"
