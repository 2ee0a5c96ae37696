"""What a scripted agent writes down: records as claude keeps them, so that its reader counts them."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from fleet.backends.claude import files


def transcript_path(given: str, conversation: str) -> str:
    """Where usage records go: the file given, AO_TRANSCRIPT, or claude's layout where that is configured."""
    if given or os.environ.get("AO_TRANSCRIPT"):
        return given or os.environ["AO_TRANSCRIPT"]
    if not os.environ.get("CLAUDE_CONFIG_DIR"):
        return ""
    return files.transcript(files.home(os.environ), os.getcwd(), conversation)


def usage_line(conversation: str, model: str, tokens: int, step: dict[str, Any]) -> str:
    """One assistant record with its usage, as claude writes it, as often as asked for."""
    unique = f"{os.getpid():x}{time.time_ns():x}"
    record = {
        "type": "assistant",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        + f".{time.time_ns() // 10**6 % 1000:03d}Z",
        "sessionId": conversation,
        "cwd": os.getcwd(),
        "uuid": unique,
        "requestId": f"req_{unique}",
        "message": {
            "id": f"msg_{unique}",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": str(step.get("text", "scripted"))}],
            "usage": {
                "input_tokens": tokens,
                "output_tokens": int(step.get("output", 0)),
                "cache_creation_input_tokens": int(step.get("cache_write", 0)),
                "cache_read_input_tokens": int(step.get("cache_read", 0)),
            },
        },
    }
    return "\n".join([json.dumps(record)] * int(step.get("repeat", 1)))
