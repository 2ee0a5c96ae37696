"""What codex itself reports: the rollout file of the thread, and its notify program.

A rollout brackets every turn, also the ones whose end the screen does not show; a failed turn carries the
error in its last event. Codex keeps hidden threads of its own (titles), so both sources are filtered by
thread. We cannot choose a thread's id: it is learnt from the newest rollout of the agent's directory that
began after the run did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.backends.codex.usage import homes
from fleet.backends.screen_reader import failure
from fleet.backends.sources import WORDS, Adapter, Facts, Heading, Reach, Source, spoken, spool
from fleet.core.model import Backend
from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness
from fleet.text import as_object, objects
from fleet.times.iso import instant

# Codex adds what happened as the last argument. One rename, so half a file is never read; no output.
NOTIFY = (
    '[ -d "$1" ] || exit 0; t=$(mktemp "$1/.XXXXXXXX") || exit 0; '
    'printf %s "$2" >"$t" && mv "$t" "$1/turn-${t##*.}.notify"'
)
SLACK_S = 2.0  # a thread may be dated a moment before we wrote down the start

_GUTTERS = ("■ ",)  # what its own words stand behind on a screen
_FULL = 100.0
_META = re.compile(rb'"(id|session_id|timestamp|cwd|thread_source)":\s*("(?:[^"\\\\]|\\\\.)*")')


def rollout(_backend: Backend, facts: Facts) -> tuple[Source, ...]:
    """The days on which this thread may have begun; local dates, so a day on either side too."""
    suffix = f"-{facts.conversation}.jsonl" if facts.conversation else ".jsonl"
    born = _born(facts.conversation) or facts.started
    day = datetime.fromtimestamp(born, UTC)
    days = (day + timedelta(days=n) for n in (0, 1, -1))
    (home,) = homes(facts.env)
    base = f"{home}/sessions"
    return tuple(Source("rollout", Reach.SEARCH, f"{base}/{d:%Y/%m/%d}", suffix) for d in days)


def notify(signals_dir: str) -> list[str]:
    """The program that codex is to run after each turn, for one run."""
    return ["sh", "-c", NOTIFY, "notify", signals_dir]


def claims(head: bytes, facts: Facts) -> str:
    """The thread id, if this opening is of a thread of that run; empty if it is not.

    The first record holds the model's whole instructions, so the opening may well end inside it: the few
    facts stand before them and are picked out by name.
    """
    meta = {name.decode(): _string(value) for name, value in _META.findall(head.split(b"\n", 1)[0])}
    identity = meta.get("id") or meta.get("session_id") or ""
    if facts.conversation:
        return identity if identity == facts.conversation else ""
    began = instant(meta.get("timestamp", ""))
    mine = meta.get("cwd") == facts.dir and meta.get("thread_source", "user") == "user"
    return identity if mine and began is not None and began >= facts.started - SLACK_S else ""


def _string(value: bytes) -> str:
    try:
        return str(json.loads(value))
    except (ValueError, RecursionError):
        return ""


def from_rollout(heading: Heading, data: bytes) -> list[Report]:
    """What new lines of a rollout say."""
    said: list[Report] = []
    resets: float | None = None
    for kind, payload, at in _events(data):
        if kind == "session_meta":
            said.append(Report(ReportKind.SESSION, at, Witness.TRANSCRIPT, str(payload.get("id") or "")))
        elif kind == "turn_context" and payload.get("model"):
            said.append(Report(ReportKind.MODEL, at, Witness.TRANSCRIPT, text=str(payload["model"])))
        elif kind == "event_msg":
            resets = _resets(payload) or resets
            said += _from_event(heading, payload, at, resets)
    return said


def _from_event(heading: Heading, event: Mapping[str, Any], at: float, resets: float | None) -> list[Report]:
    error = event.get("error")
    match event.get("type"):
        case "task_started" | "turn_started":
            return [Report(ReportKind.TURN_BEGAN, at, Witness.TRANSCRIPT)]
        case "task_complete" | "turn_complete" if not error:
            ended = [Report(ReportKind.TURN_ENDED, at, Witness.TRANSCRIPT)]
            answered = Report(ReportKind.ANSWERED, at, Witness.TRANSCRIPT)
            return [*ended, answered] if event.get("last_agent_message") else ended
        case "turn_aborted":
            reason = str(event.get("reason") or "")
            return [Report(ReportKind.TURN_ENDED, at, Witness.TRANSCRIPT, text=reason)]
        case "task_complete" | "turn_complete" | "error":
            words = str((error if isinstance(error, dict) else event).get("message") or "")
            return [_failure(heading, words, at, resets)]
        case "user_message":
            words = str(event.get("message") or "")
            return [Report(ReportKind.PROMPT_TAKEN, at, Witness.TRANSCRIPT, text=words[:WORDS])]
        case "item_completed" if (item := event.get("item") or {}).get("type") == "UserMessage":
            words = spoken(item.get("content"))
            return [Report(ReportKind.PROMPT_TAKEN, at, Witness.TRANSCRIPT, text=words[:WORDS])]
    return []


def _failure(heading: Heading, words: str, at: float, resets: float | None) -> Report:
    kind, until = failure(heading, words, _GUTTERS, at)
    if kind is not ReportKind.LIMIT_HIT:
        return Report(kind, at, Witness.TRANSCRIPT, text=words[:WORDS])
    ends, exact = resets or until, resets is not None
    return Report(kind, at, Witness.TRANSCRIPT, until=ends, text=words[:WORDS], exact=exact)


def _resets(event: Mapping[str, Any]) -> float | None:
    """The instant a used-up window ends, where the provider named one."""
    limits = event.get("rate_limits") or {}
    ends = [
        float(window["resets_at"])
        for window in (limits.get("primary") or {}, limits.get("secondary") or {})
        if window.get("resets_at") and float(window.get("used_percent") or 0) >= _FULL
    ]
    return max(ends, default=None)


def from_notify(heading: Heading, data: bytes) -> list[Report]:
    """One call of the notify program. Hidden threads notify too: only the agent's own is believed."""
    event = as_object(data)
    thread = str(event.get("thread-id") or "")
    if event.get("type") != "agent-turn-complete" or not thread or thread != heading.facts.conversation:
        return []
    return [Report(ReportKind.TURN_ENDED, heading.at, Witness.NOTIFY, thread)]


def _born(thread: str) -> float | None:
    """Thread ids carry their birth: the first 48 bits are milliseconds."""
    try:
        return int(thread.replace("-", "")[:12], 16) / 1000 if thread else None
    except ValueError:
        return None


def _events(data: bytes) -> Iterator[tuple[str, Mapping[str, Any], float]]:
    for record in objects(data):
        at, payload = instant(str(record.get("timestamp"))), record.get("payload")
        if at is not None and isinstance(payload, dict):
            yield str(record.get("type")), payload, at


ADAPTERS = {
    "rollout": Adapter(rollout, from_rollout, claims=claims),
    "notify": Adapter(spool("notify", ".notify"), from_notify, notify=notify),
}
