"""Events as sentences, for a first look at a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.core.words import EventType
from fleet.text import one_line

# type: a sentence; {agent}, {reason} and the event's facts can be used.
STORY: dict[str, str] = {
    EventType.SERVER_FOUNDED: "A tmux server of its own: your sessions are never touched.",
    EventType.WATCHDOG_STARTED: "The watchdog starts; in this demo it ticks a few times per second.",
    EventType.AGENT_STARTED: "{agent} starts in a terminal of its own ({reason}).",
    EventType.AGENT_READY: "{agent} is ready: its screen says so.",
    EventType.AGENT_DIED: "{agent} died: {reason}.",
    EventType.AGENT_HEALED: "The watchdog restarted {agent}: {reason}.",
    EventType.AGENT_LIMITED: "{agent} reached its usage limit. The watchdog waits for its end: {reason}.",
    EventType.AGENT_RESUMED: "The limit is over: {agent} goes on ({reason}).",
    EventType.AGENT_STALLED: "{agent} was idle for too long: {reason}.",
    EventType.AGENT_ASKED: "{agent} shows a dialog; the watchdog presses the one allowed key: {reason}.",
    EventType.AGENT_WAITING: "{agent} asked to wait: {reason}.",
    EventType.AGENT_FAILED_FOR_GOOD: "{agent} cannot run until an operator fixes it: {reason}.",
    EventType.HANDOFF_CLAIMED: "A claim was committed: the watchdog pings the reviewer. {reason}",
    EventType.HANDOFF_REVIEWED: "A review was committed: the watchdog pings the builder. {reason}",
    EventType.HANDOFF_INBOX_CHANGED: "An inbox file changed: the watchdog pings its reader. {reason}",
    EventType.MESSAGE_CONFIRMED: "{agent} got the message; its screen confirms it.",
    EventType.PHASE_PRE_DONE: "The status file says done; now the gates must pass. {reason}",
    EventType.GATE_PASSED: "A gate passed: {reason}.",
    EventType.GATE_FAILED: "A gate failed, so the phase goes on: {reason}. The builder gets a message.",
    EventType.PHASE_ADVANCED: "The phase is over; all start the next one with fresh prompts: {reason}.",
    EventType.SEQUENCE_COMPLETED: "All phases are done. The loop ends.",
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
