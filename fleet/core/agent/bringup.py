"""First starts, apart from heals: a run that was called for starts at once.

A bare `up` leaves some agents as they are and says why. A name on the command line overrules that.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from fleet.core.agent.heal import last_run
from fleet.core.case import Case, Verdict, do, hold
from fleet.core.desired import Desire
from fleet.core.effects import Start
from fleet.core.memory import AgentMemory, Run
from fleet.core.model import Member
from fleet.core.seen import PaneView
from fleet.core.words import Detail
from fleet.times.moment import UNNAMED, Wall

CALLED = "it was called for"


def bringup(case: Case) -> Verdict | None:
    """Start a run that was called for and is not there yet."""
    pane, memory, now = case.seen.pane, case.memory, case.now
    answered = memory.run.made_for.call if memory.run is not None else 0
    if (pane is not None and not pane.dead) or memory.fatal or answered >= case.seen.wish.run:
        return None
    if (waits := last_run(case, planned=True)) is not None:
        return waits
    if now.steady < memory.retry_at:  # the last try failed
        return hold(f"next try in {now.ahead(memory.retry_at):.0f} s", Detail.BACKOFF, memory.retry_at)
    cause = case.seen.wish.by or CALLED
    act = Start(case.agent.name, cause, planned=True, replace=pane.ref if pane else None)
    return do(act, Detail.STARTING, now.after(0.4))


class Left(StrEnum):
    """Why one is not started."""

    PAUSED = "paused"
    FINISHED = "finished"
    LIMITED = "limited"


def left_as_it_is(
    member: Member,
    entry: Desire | None,
    pane: PaneView | None,
    run: Run | None,
    memory: AgentMemory,
    *,
    limited: bool,
    wall: Wall = UNNAMED,
) -> Left | None:
    """The reason to leave it, or None: it is started, or used when it runs."""
    if entry is not None and entry.left_alone(wall):
        return Left.PAUSED
    if not member.has_screen or (pane is not None and not pane.dead):
        return None
    if member.is_task and not member.watched and finished(pane, run, memory):
        return Left.FINISHED
    return (
        Left.LIMITED if member.watched and limited else None
    )  # the watchdog starts no unwatched agent later


def finished(pane: PaneView | None, run: Run | None, memory: AgentMemory) -> bool:
    """Has the newest run of a task come to its end by itself, with exit code 0?"""
    if pane is not None and pane.dead:
        return pane.finished
    return run is not None and run.id == memory.finished


def limited_until(agent: Member, limits: Iterable[tuple[Member, Wall]], wall: Wall) -> Wall:
    """When the usage window of an agent, or of a mate on its account, ends; 0.0: it is in none."""
    mine = [
        until
        for mate, until in limits
        if until > wall and (mate.name == agent.name or (agent.account and mate.account == agent.account))
    ]
    return max(mine, default=UNNAMED)
