"""Events told as a story, for somebody who sees a fleet work for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.core.text import for_display

# type: a sentence; {agent}, {reason} and the event's facts can be used.
STORY = {
    "server.founded": "A tmux server of its own: your sessions are never touched.",
    "watchdog.started": "The watchdog begins to look: one look at everybody, a few times a second here.",
    "agent.started": "{agent} starts in a terminal of its own ({reason}).",
    "agent.ready": "{agent} is ready: its screen says so.",
    "agent.died": "{agent} died: {reason}.",
    "agent.healed": "The watchdog brought {agent} back: {reason}.",
    "agent.limited": "{agent} ran into its usage limit. It is left alone until the limit ends: {reason}.",
    "agent.resumed": "The limit is over: {agent} goes on ({reason}).",
    "agent.stalled": "{agent} sat idle for too long: {reason}.",
    "agent.asked": "{agent} shows a dialog; the watchdog presses the one key that is allowed: {reason}.",
    "agent.waiting": "{agent} said itself until when it waits: {reason}.",
    "agent.failed_for_good": "{agent} cannot run until a person helps: {reason}.",
    "handoff.claimed": "A claim was committed: whoever reviews is told. {reason}",
    "handoff.reviewed": "A review was committed: whoever builds is told. {reason}",
    "handoff.inbox_changed": "An inbox has a new letter: its reader is told. {reason}",
    "message.confirmed": "{agent} was told, and its screen confirms it.",
    "phase.pre_done": "The status file says done; now the gates must agree. {reason}",
    "gate.passed": "A gate agrees: {reason}.",
    "gate.failed": "A gate does not agree, so the phase is not over: {reason}. The builder is told.",
    "phase.advanced": "The phase is over; everybody starts the next one with fresh prompts: {reason}.",
    "sequence.completed": "All phases are done. The loop stops by itself.",
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
    if kind == "agent.state_changed":
        pattern = WORK.get(str(facts.get("now", "")), "")
    agent, reason = str(record.get("agent") or ""), str(record.get("reason") or "").rstrip(".")
    said = pattern.replace("{agent}", agent).replace("{reason}", reason)
    return " ".join(for_display(said).split())
