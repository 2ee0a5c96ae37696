"""What claude itself reports: hooks as they fire, the session registry, the transcript.

Hooks are passed for one run with --settings; the user's own files are never touched. Each is one constant
line of sh that renames one file into the run's spool, so a hook costs milliseconds and never half a file.
Stop does not fire when a turn ends in an API error, StopFailure does. The registry has the level (busy,
idle, waiting) and outlives a kill, so it is believed only for a process that is still the same one. The
transcript has the exact instant of a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.backends.claude import files
from fleet.backends.screen_reader import failure
from fleet.backends.sources import WORDS, Adapter, Facts, Heading, Reach, Source, spoken, spool
from fleet.core.model import Backend
from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness
from fleet.text import as_object, objects
from fleet.times.iso import instant

# Must print nothing: what a prompt hook prints is put into the conversation.
HOOK = (
    '[ -d "$AO_SIGNALS" ] || exit 0; t=$(mktemp "$AO_SIGNALS/.XXXXXXXX") || exit 0; '
    'cat >"$t" && mv "$t" "$AO_SIGNALS/hook-${t##*.}.json"'
)
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "PreCompact", "PostCompact",
    "Stop", "StopFailure", "SessionEnd",
)  # fmt: skip

_GUTTERS = ("⎿ ", "● ")  # what its own words stand behind on a screen
_KIND_OF_ERROR = {
    "authentication_failed": ReportKind.AUTH_FAILED,
    "oauth_org_not_allowed": ReportKind.AUTH_FAILED,
}
_KIND_OF_STATUS = {
    "busy": ReportKind.TURN_BEGAN,
    "idle": ReportKind.TURN_ENDED,
    "shell": ReportKind.TURN_ENDED,
    "waiting": ReportKind.ASKED,
}


def hook_settings() -> Mapping[str, object]:
    """The part of a settings file that makes claude tell us."""
    one = [{"hooks": [{"type": "command", "command": HOOK, "timeout": 10}]}]
    return {"hooks": dict.fromkeys(EVENTS, one)}


# --- where to look ----------------------------------------------------------------------------------------


def registry(_backend: Backend, facts: Facts) -> tuple[Source, ...]:
    """One file for each process that may be the agent."""
    base = f"{files.home(facts.env)}/sessions"
    return tuple(Source("registry", Reach.FILE, f"{base}/{pid}.json") for pid, _ in facts.processes[:3])


def transcript(_backend: Backend, facts: Facts) -> tuple[Source, ...]:
    """The conversation's own file."""
    if not facts.conversation:
        return ()
    path = files.transcript(files.home(facts.env), facts.dir, facts.conversation)
    return (Source("transcript", Reach.TAIL, path),)


# --- what it says -----------------------------------------------------------------------------------------


def from_hook(heading: Heading, data: bytes) -> list[Report]:
    """One hook's input. It carries no time: the file's own is taken."""
    event = as_object(data)
    text = str(event.get("prompt") or event.get("last_assistant_message") or event.get("message") or "")
    text = text[:WORDS]
    session = str(event.get("session_id") or "")

    def signal(kind: ReportKind, words: str = "", until: float | None = None) -> Report:
        return Report(kind, heading.at, Witness.HOOK, session, until, words)

    match event.get("hook_event_name"):
        case "SessionStart":
            said = [signal(ReportKind.SESSION, str(event.get("transcript_path") or ""))]
            return [*said, signal(ReportKind.MODEL, str(event["model"]))] if event.get("model") else said
        case "UserPromptSubmit":
            return [signal(ReportKind.PROMPT_TAKEN, text)]
        case "PermissionRequest":
            return [signal(ReportKind.ASKED, str(event.get("tool_name") or "permission"))]
        case "Notification" if event.get("notification_type") == "permission_prompt":
            return [signal(ReportKind.ASKED, text)]
        case "PreCompact":
            return [signal(ReportKind.TURN_BEGAN, "compacting")]
        case "Stop":
            return [signal(ReportKind.TURN_ENDED), signal(ReportKind.ANSWERED)]
        case "PostCompact":
            return [signal(ReportKind.TURN_ENDED)]
        case "StopFailure":
            kind, until = _failure(heading, str(event.get("error") or ""), text, heading.at)
            return [signal(kind, text, until)]
        case "SessionEnd":
            return [signal(ReportKind.EXITED, str(event.get("reason") or ""))]
    return []


def from_registry(heading: Heading, data: bytes) -> list[Report]:
    """The level. A file left behind by a killed process, or one of another process, says nothing."""
    entry = as_object(data)
    started = dict(heading.facts.processes).get(entry.get("pid", 0))
    if started is None or str(entry.get("procStart")) != str(started):
        return []
    session = str(entry.get("sessionId") or "")
    at = float(entry.get("statusUpdatedAt") or 0) / 1000
    said = [Report(ReportKind.SESSION, float(entry.get("startedAt") or 0) / 1000, Witness.REGISTRY, session)]
    kind = _KIND_OF_STATUS.get(str(entry.get("status")))
    if kind and at:
        said.append(Report(kind, at, Witness.REGISTRY, session, text=str(entry.get("waitingFor") or "")))
    return said


def from_transcript(heading: Heading, data: bytes) -> list[Report]:
    """What new lines of a transcript say. Sub-agents' lines are not the agent's own turns."""
    said: list[Report] = []
    for record in objects(data):
        at = instant(str(record.get("timestamp")))
        if at is not None and not record.get("isSidechain"):
            said += _from_record(heading, record, at, str(record.get("sessionId") or ""))
    return said


def _from_record(heading: Heading, record: Mapping[str, Any], at: float, session: str) -> list[Report]:
    message = record.get("message") or {}
    if record.get("type") == "queue-operation" and record.get("operation") == "enqueue":
        words = str(record.get("content") or "")
        return [Report(ReportKind.PROMPT_TAKEN, at, Witness.TRANSCRIPT, session, text=words[:WORDS])]
    if record.get("type") == "user" and not record.get("isMeta"):
        words = spoken(message.get("content"))[:WORDS]
        return [Report(ReportKind.PROMPT_TAKEN, at, Witness.TRANSCRIPT, session, text=words)] if words else []
    if record.get("type") == "system" and record.get("subtype") == "turn_duration":
        return [Report(ReportKind.TURN_ENDED, at, Witness.TRANSCRIPT, session)]
    if record.get("type") != "assistant":
        return []
    if record.get("isApiErrorMessage"):
        words = spoken(message.get("content"))
        kind, until = _failure(heading, str(record.get("error") or ""), words, at)
        quota = record.get("quotaLimits") or {}
        exact = kind is ReportKind.LIMIT_HIT and isinstance(quota.get("resetsAt"), int | float)
        if exact:
            until = float(quota["resetsAt"])
        return [Report(kind, at, Witness.TRANSCRIPT, session, until, words[:WORDS], exact)]
    model = str(message.get("model") or "")
    said = [Report(ReportKind.MODEL, at, Witness.TRANSCRIPT, session, text=model)] if model else []
    ended = message.get("stop_reason") == "end_turn"
    return [*said, Report(ReportKind.ANSWERED, at, Witness.TRANSCRIPT, session)] if ended else said


def _failure(heading: Heading, error: str, words: str, at: float) -> tuple[ReportKind, float | None]:
    """The words decide; the CLI's code of the error helps where they say nothing."""
    kind, until = failure(heading, words, _GUTTERS, at)
    return _KIND_OF_ERROR.get(error, kind) if kind is ReportKind.TURN_FAILED else kind, until


ADAPTERS = {
    "hooks": Adapter(spool("hooks", ".json"), from_hook, settings=hook_settings),
    "registry": Adapter(registry, from_registry),
    "transcript": Adapter(transcript, from_transcript),
}
