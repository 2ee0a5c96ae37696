"""The facts of `status` in the text format that Prometheus and its relatives read.

A metric is a line of the table below; docs/metrics.md says the same, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fleet.core.desired import Want
from fleet.core.words import Detail, WatchdogState
from fleet.tokens.tokenlog import record_cells

# name: (type, what it says)
METRICS = {
    "fleet_info": ("gauge", "Always 1; which engine and which project this is."),
    "fleet_watchdog_up": ("gauge", "1 while the watchdog ticks; 0 when it is stopped or hangs."),
    "fleet_watchdog_heartbeat_timestamp_seconds": ("gauge", "When the watchdog last ticked."),
    "fleet_problems": ("gauge", "How many things `status` complains of."),
    "fleet_agent_up": ("gauge", "1 while its session runs."),
    "fleet_agent_wanted": ("gauge", "1 if the operator wants it up."),
    "fleet_agent_state": ("gauge", "Always 1; the state is in the labels."),
    "fleet_agent_state_since_timestamp_seconds": ("gauge", "When the state began."),
    "fleet_agent_limited_until_timestamp_seconds": ("gauge", "End of the usage limit; only while limited."),
    "fleet_agent_restarts_total": ("counter", "How often the watchdog restarted it."),
    "fleet_agent_messages_waiting": ("gauge", "Messages not yet typed."),
    "fleet_agent_drifted_keys": ("gauge", "Values it runs with that the file no longer says."),
    "fleet_phases": ("gauge", "How many phases the loop has."),
    "fleet_phase_index": ("gauge", "Which phase it is in, from 0; the number of phases when complete."),
    "fleet_phase_held": ("gauge", "1 while the loop is held."),
    "fleet_sequence_complete": ("gauge", "1 once the last phase is done."),
    "fleet_tokens_total": ("counter", "Tokens of the phases that have ended (log_tokens)."),
}
Sample = tuple[str, Mapping[str, str], float]


def exposition(facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]] = ()) -> str:
    """One block a metric; a metric without a sample is left out."""
    found: dict[str, list[str]] = {}
    for name, labels, value in (*_fleet(facts), *_agents(facts), *_tokens(records)):
        found.setdefault(name, []).append(f"{name}{_labels(labels)} {value:.15g}")
    lines = []
    for name, (kind, text) in METRICS.items():
        if name in found:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *found[name]]
    return "\n".join(lines) + "\n"


def _fleet(facts: Mapping[str, Any]) -> Iterator[Sample]:
    project, dog, loop = facts["project"], facts["watchdog"], facts["loop"]
    yield "fleet_info", {"version": facts["version"], "prefix": project["prefix"]}, 1
    yield "fleet_watchdog_up", {}, dog["state"] == WatchdogState.RUNNING
    if dog["last_tick"] is not None:
        yield "fleet_watchdog_heartbeat_timestamp_seconds", {}, dog["last_tick"]
    yield "fleet_problems", {}, len(facts["problems"])
    if loop is not None:
        yield "fleet_phases", {}, loop["total"]
        if loop["complete"] or loop["index"] is not None:
            yield "fleet_phase_index", {}, loop["total"] if loop["complete"] else loop["index"]
        yield "fleet_phase_held", {}, bool(loop["held"])
        yield "fleet_sequence_complete", {}, bool(loop["complete"])


def _agents(facts: Mapping[str, Any]) -> Iterator[Sample]:
    for row in (*facts["agents"], *facts["services"]):
        who = {"name": row["name"], "kind": row["kind"]}
        yield "fleet_agent_up", who, row["pid"] is not None
        yield "fleet_agent_wanted", who, row["desired"] == Want.UP
        yield "fleet_agent_state", {**who, "state": row["state"], "detail": row["detail"]}, 1
        if row["since"]:
            yield "fleet_agent_state_since_timestamp_seconds", who, row["since"]
        if row["until"] and row["detail"] == Detail.LIMITED:
            yield "fleet_agent_limited_until_timestamp_seconds", who, row["until"]
        yield "fleet_agent_restarts_total", who, row["restarts"]
        yield "fleet_agent_messages_waiting", who, row.get("messages") or 0
        yield "fleet_agent_drifted_keys", who, len(row["drift"])


def _tokens(records: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    sums: dict[tuple[str, str, str], int] = {}
    for record in records:
        for agent, models in record_cells(dict(record)).items():
            for model, counts in (models or {}).items():
                for kind, count in counts.as_dict().items():
                    sums[agent, model, kind] = sums.get((agent, model, kind), 0) + count
    for (agent, model, kind), count in sorted(sums.items()):
        yield "fleet_tokens_total", {"name": agent, "model": model, "kind": kind}, count


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{_escaped(str(value))}"' for key, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
