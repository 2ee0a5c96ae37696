"""What opencode's server says: status and permissions together, because a session stays busy while it asks.

Three small pages are read: who is busy or retrying, which permissions and questions are open, and, once the
conversation is known, its newest message, which has the error of a failed turn and the receipt of a prompt.

The server takes messages, too. The id of a message is ours to choose. It follows from the message alone, so
the same message always has the same one, and it begins like opencode's own with the time, because messages
are put in the order of their ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from fleet.backends.sources import WORDS, Adapter, Facts, Heading, Mailbox, Reach, Source, spoken
from fleet.core.model import Backend
from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness

_REFUSED = {401, 403}
USER = "opencode"  # goes with the password of its server
_TICKS = 4096  # of opencode's clock, a millisecond
_BITS = 48
_REST = 7  # bytes: fourteen characters


def pages(backend: Backend, facts: Facts) -> tuple[Source, ...]:
    """In this order: a later page knows better than an earlier one."""
    server = (facts.server or backend.server).rstrip("/")
    if not server.startswith(("http://127.", "http://localhost", "http://[::1]")):
        return ()
    paths = ["/session"] if not facts.conversation else [f"/session/{facts.conversation}/message?limit=2"]
    paths += ["/session/status", "/permission", "/question"]
    return tuple(Source("server", Reach.PAGE, server + path) for path in paths)


def from_page(heading: Heading, data: bytes) -> list[Report]:
    """One page; what is not JSON of the expected form says nothing."""
    try:
        page = json.loads(data)
    except ValueError:
        return []
    path = heading.source.where.split("?")[0]
    if path.endswith("/session/status") and isinstance(page, dict):
        return _status(heading, page)
    if not isinstance(page, list):
        return []
    rows = [row for row in page if isinstance(row, dict)]
    if path.endswith("/session"):
        return _sessions(heading, rows)
    if path.endswith("/message"):
        return [signal for row in rows for signal in _message(row.get("info") or {}, row.get("parts") or [])]
    return [_asked(heading, row) for row in rows if _mine(heading.facts, row.get("sessionID"))]


def _mine(facts: Facts, session: object) -> bool:
    return not facts.conversation or session == facts.conversation


def _status(heading: Heading, page: Mapping[str, Any]) -> list[Report]:
    said = []
    for session, status in page.items():
        if isinstance(status, dict) and _mine(heading.facts, session):
            kind = str(status.get("type"))
            if kind == "retry":
                until = float(status.get("next") or 0) / 1000 or None
                words = str(status.get("message") or "")[:WORDS]
                said.append(Report(ReportKind.RETRYING, heading.at, Witness.SERVER, session, until, words))
            elif kind == "busy":
                said.append(Report(ReportKind.TURN_BEGAN, heading.at, Witness.SERVER, session))
    return said or [Report(ReportKind.TURN_ENDED, heading.at, Witness.SERVER, heading.facts.conversation)]


def _sessions(heading: Heading, rows: list[dict[str, Any]]) -> list[Report]:
    """The newest conversation of this directory that began after the run did."""
    born = [(float((row.get("time") or {}).get("created") or 0) / 1000, str(row.get("id"))) for row in rows
            if row.get("directory") == heading.facts.dir and not row.get("parentID")]  # fmt: skip
    born = [(at, identity) for at, identity in born if at >= heading.facts.started]
    return [Report(ReportKind.SESSION, at, Witness.SERVER, identity) for at, identity in sorted(born)[-1:]]


def _asked(heading: Heading, row: Mapping[str, Any]) -> Report:
    what = str(row.get("permission") or row.get("type") or row.get("title") or "a question")
    return Report(
        ReportKind.ASKED, heading.at, Witness.SERVER, str(row.get("sessionID") or ""), text=what[:WORDS]
    )


def _message(info: Mapping[str, Any], parts: list[Any]) -> list[Report]:
    session = str(info.get("sessionID") or "")
    times = info.get("time") or {}
    at = float(times.get("completed") or times.get("created") or 0) / 1000
    if info.get("role") == "user":
        return [Report(ReportKind.PROMPT_TAKEN, at, Witness.SERVER, session, text=spoken(parts)[:WORDS])]
    said = []
    if info.get("modelID"):
        said.append(Report(ReportKind.MODEL, at, Witness.SERVER, session, text=str(info["modelID"])))
    error = info.get("error")
    if times.get("completed") and info.get("finish") == "stop" and not error:
        said.append(Report(ReportKind.ANSWERED, at, Witness.SERVER, session))
    if isinstance(error, dict) and error.get("name") != "MessageAbortedError":
        detail = error.get("data") or {}
        refused = error.get("name") == "ProviderAuthError" or detail.get("statusCode") in _REFUSED
        full = error.get("name") == "ContextOverflowError"
        kind = ReportKind.CONTEXT_FULL if full else ReportKind.TURN_FAILED
        if refused:
            kind = ReportKind.AUTH_FAILED
        said.append(
            Report(
                kind, at, Witness.SERVER, session, text=str(detail.get("message") or error["name"])[:WORDS]
            )
        )
    return said


def message_id(message: str, at: float) -> str:
    """The id under which the server keeps this message, first sent at that moment."""
    ticks = (round(at * 1000) * _TICKS + 1) % (1 << _BITS)
    return f"msg_{ticks:012x}{blake2b(message.encode(), digest_size=_REST).hexdigest()}"


def letter(server: str, conversation: str, identity: str, text: str) -> tuple[str, bytes, str]:
    """Where to post it, what, and where it can be looked up."""
    base = f"{server.rstrip('/')}/session/{conversation}"
    body = {"messageID": identity, "parts": [{"type": "text", "text": text}]}
    return f"{base}/prompt_async", json.dumps(body).encode(), f"{base}/message/{identity}"


ADAPTERS = {"server": Adapter(pages, from_page, mailbox=Mailbox(USER, message_id, letter))}
