"""Events told as a story, for somebody who sees a fleet work for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.core.text import one_line
from fleet.core.words import EventType

# type: a sentence; {agent}, {reason} and the event's facts can be used.
STORY: dict[str, str] = {
    EventType.SERVER_FOUNDED: "A tmux server of its own: your sessions are never touched.",
    EventType.WATCHDOG_STARTED: "The watchdog begins to look, a few times a second here.",
    EventType.AGENT_STARTED: "{agent} starts in a terminal of its own ({reason}).",
    EventType.AGENT_READY: "{agent} is ready: its screen says so.",
    EventType.AGENT_DIED: "{agent} died: {reason}.",
    EventType.AGENT_HEALED: "The watchdog brought {agent} back: {reason}.",
    EventType.AGENT_LIMITED: "{agent} ran into its usage limit. It is left alone until that ends: {reason}.",
    EventType.AGENT_RESUMED: "The limit is over: {agent} goes on ({reason}).",
    EventType.AGENT_STALLED: "{agent} sat idle for too long: {reason}.",
    EventType.AGENT_ASKED: "{agent} shows a dialog; the watchdog presses the one allowed key: {reason}.",
    EventType.AGENT_WAITING: "{agent} said itself until when it waits: {reason}.",
    EventType.AGENT_FAILED_FOR_GOOD: "{agent} cannot run until a person helps: {reason}.",
    EventType.HANDOFF_CLAIMED: "A claim was committed: whoever reviews is told. {reason}",
    EventType.HANDOFF_REVIEWED: "A review was committed: whoever builds is told. {reason}",
    EventType.HANDOFF_INBOX_CHANGED: "An inbox has a new letter: its reader is told. {reason}",
    EventType.MESSAGE_CONFIRMED: "{agent} was told, and its screen confirms it.",
    EventType.PHASE_PRE_DONE: "The status file says done; now the gates must agree. {reason}",
    EventType.GATE_PASSED: "A gate agrees: {reason}.",
    EventType.GATE_FAILED: "A gate does not agree, so the phase is not over: {reason}. The builder is told.",
    EventType.PHASE_ADVANCED: "The phase is over; all start the next one with fresh prompts: {reason}.",
    EventType.SEQUENCE_COMPLETED: "All phases are done. The loop stops by itself.",
}
WORK = {
    "WORKING": "{agent} works.",
    "IDLE": "{agent} has finished its turn and waits.",
    "LIMITED": "",
}


def caption(record: Mapping[str, Any]) -> str:
    """One sentence, or nothing for what only matters to the record."""
    kind = str(record.get("type", ""))
    facts = record.get("facts") or {}
    pattern = STORY.get(kind, "")
    if kind == EventType.AGENT_STATE_CHANGED:
        pattern = WORK.get(str(facts.get("now", "")), "")
    agent, reason = str(record.get("agent") or ""), str(record.get("reason") or "").rstrip(".")
    said = pattern.replace("{agent}", agent).replace("{reason}", reason)
    return one_line(said)
