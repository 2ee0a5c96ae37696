"""How opencode's server is given a message, and under which name it then keeps it.

The name is ours to choose. It follows from the message alone, so the same message always has the same one,
and it begins like opencode's own with the time, because messages are put in the order of their names.
"""

from __future__ import annotations

import json
from hashlib import blake2b

USER = "opencode"  # goes with the password of its server
_TICKS = 4096  # of opencode's clock, a millisecond
_BITS = 48
_REST = 7  # bytes: fourteen characters


def name(message: str, at: float) -> str:
    """The id under which the server keeps this message, first sent at that moment."""
    ticks = (round(at * 1000) * _TICKS + 1) % (1 << _BITS)
    return f"msg_{ticks:012x}{blake2b(message.encode(), digest_size=_REST).hexdigest()}"


def letter(server: str, conversation: str, identity: str, text: str) -> tuple[str, bytes, str]:
    """Where to post it, what, and where it can be looked up."""
    base = f"{server.rstrip('/')}/session/{conversation}"
    body = {"messageID": identity, "parts": [{"type": "text", "text": text}]}
    return f"{base}/prompt_async", json.dumps(body).encode(), f"{base}/message/{identity}"
