"""What concerns all agents together: the tmux server they live in, and the budget of restarts they share."""

from __future__ import annotations

from dataclasses import replace

from fleet.core.decision import Note
from fleet.core.desired import Desired
from fleet.core.memory import FleetMemory
from fleet.core.restarts import HOUR_S
from fleet.core.seen import ServerId
from fleet.core.words import EventType
from fleet.times.moment import Moment


def forgiven(memory: FleetMemory, desired: Desired) -> FleetMemory:
    """The restarts of the last hour are forgotten when the operator says so, once each time."""
    if desired.amnesty == memory.amnesty:
        return memory
    return replace(memory, heals=(), amnesty=desired.amnesty)


def with_server(
    memory: FleetMemory, server: ServerId | None, now: Moment
) -> tuple[FleetMemory, tuple[Note, ...]]:
    """The tmux server that is seen, and what became of the one that was."""
    known = (memory.server_pid, memory.server_started)
    here = (server.pid, server.started) if server else (0, 0)
    if known == here:
        return memory, ()
    notes: list[Note] = []
    changed = replace(memory, server_pid=here[0], server_started=here[1])
    if memory.server_pid:
        changed = replace(changed, server_lost=now.steady)
        notes.append(Note(EventType.SERVER_LOST, f"the tmux server {memory.server_pid} is gone"))
    if server:
        notes.append(Note(EventType.SERVER_FOUNDED, f"tmux server {server.pid}"))
    return changed, tuple(notes)


def after_heal(memory: FleetMemory, now: Moment) -> FleetMemory:
    """One more unplanned start."""
    recent = (t for t in memory.heals if now.since(t) < HOUR_S)
    return replace(memory, heals=(*recent, now.steady))
