"""Rows for status, dashboards and JSON: one shape, made in one place.

`state` is one of five words for programs; `detail` the finer one for people. `state` starts with
RUNNING for every live session, whatever it is doing.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleet.core.case import AgentSeen
from fleet.core.decide import Ruling
from fleet.core.desired import Want
from fleet.core.memory import AgentMemory
from fleet.core.model import Member
from fleet.core.moment import Wall
from fleet.core.state import Detail, State

QUIET = frozenset({Detail.DOWN, Detail.DISABLED, Detail.DONE, Detail.EXITED})


@dataclass(frozen=True, slots=True)
class Row:
    """One agent or service, as everybody shows it."""

    name: str
    kind: str
    role: str
    backend: str
    model: str
    watch: str
    enabled: bool
    desired: str
    session: str
    state: str
    detail: str
    reason: str
    since: Wall
    until: Wall | None  # end of a limit, of its own waiting, or of its pause
    pid: int | None
    restarts: int
    drift: tuple[str, ...] = ()
    phase: str = ""
    rule: str = ""
    account: str = ""
    messages: int = 0  # waiting to be typed


def state_of(seen: AgentSeen, detail: Detail, memory: AgentMemory) -> State:
    """The coarse word."""
    if memory.fatal:
        return State.FATAL
    if seen.blind or detail is Detail.FOREIGN:
        return State.UNKNOWN
    pane = seen.pane
    if pane is not None and not pane.dead:
        return State.UNKNOWN if detail is Detail.UNKNOWN else State.RUNNING
    if seen.wish.want is not Want.UP or detail in QUIET:
        return State.STOPPED
    return State.DEAD


def row(
    member: Member,
    seen: AgentSeen,
    memory: AgentMemory,
    shown: Ruling,
    drift: tuple[str, ...] = (),
) -> Row:
    """The row of one agent or service after it was judged."""
    detail = shown.detail
    run = memory.run
    live = seen.pane is not None and not seen.pane.dead
    told = run if live else None  # what was started says more than what is declared
    until = memory.limit.until if memory.limit else None
    if detail in {Detail.PAUSED, Detail.FROZEN}:
        until = seen.wish.until or None
    elif until is None and detail is Detail.WAITING:
        until = memory.marker
    return Row(
        name=member.name,
        kind=member.kind,
        role=member.role,
        backend=(told and told.backend) or member.backend,
        model=(told and told.model) or member.model,
        watch=member.watch,
        enabled=member.enabled,
        desired=str(seen.wish.want or ""),
        session=member.session,
        state=str(state_of(seen, detail, memory)),
        detail=str(detail),
        reason=shown.reason,
        since=memory.since,
        until=until,
        pid=seen.pane.ref.pid if seen.pane is not None and live else None,
        restarts=memory.heals,
        drift=drift,
        phase=run.made_for.phase if run and live else "",
        rule=shown.rule,
        account=member.account,
        messages=len(memory.outbox),
    )


TROUBLE: dict[Detail, str] = {
    Detail.FATAL: "needs a person",
    Detail.ASKING: "waits for an answer",
    Detail.FLAPPING: "keeps dying",
    Detail.UNKNOWN: "shows a screen nobody can read",
    Detail.FOREIGN: "its name is taken",
    Detail.UNSEEN: "cannot be looked at",
    Detail.MISMATCH: "runs something else",
    Detail.WEDGED: "is stuck",
    Detail.CONTEXT: "has no context left",
}


def problem(shown: Row) -> str | None:
    """One line for what a person should know, or nothing."""
    detail = Detail(shown.detail)
    if shown.state in {State.DEAD, State.FATAL} or detail in TROUBLE:
        what = TROUBLE.get(detail, str(shown.state).lower())
        return f"{shown.name}: {what}: {shown.reason}"
    return None
