"""Rows for status, dashboards and JSON: one shape, made in one place, and corrected by one listing of tmux.

`state` is one of five words for programs; `detail` the finer one for people. `state` starts with
RUNNING for every live session, whatever it is doing.

`status` loads this file, and a quick verb loads no model: what only annotations name is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet.core.desired import Want
from fleet.core.words import Detail, State, WatchdogState
from fleet.times.moment import Wall

if TYPE_CHECKING:
    from fleet.core.agent.decide import Ruling
    from fleet.core.case import AgentSeen
    from fleet.core.memory import AgentMemory, Run
    from fleet.core.model import Member
    from fleet.core.outline import Listed
    from fleet.core.seen import PaneView

QUIET = frozenset({Detail.DOWN, Detail.DISABLED, Detail.DONE, Detail.EXITED})


class Row(NamedTuple):
    """One agent or service, as `status`, `top` and the metrics show it."""

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
    pane = seen.pane if seen.pane is not None and not seen.pane.dead else None
    backend, model, phase = _running(member, memory.run if pane else None)
    return Row(
        name=member.name,
        kind=member.kind,
        role=member.role,
        backend=backend,
        model=model,
        watch=member.watch,
        enabled=member.enabled,
        desired=str(seen.wish.want or ""),
        session=member.session,
        state=str(state_of(seen, shown.detail, memory)),
        detail=str(shown.detail),
        reason=shown.reason,
        since=memory.since,
        until=_until(seen, memory, shown.detail),
        pid=pane.ref.pid if pane else None,
        restarts=memory.heals,
        drift=drift if pane or seen.blind else (),
        phase=phase,
        rule=shown.rule,
        account=member.account,
        messages=len(memory.outbox),
    )


def _running(member: Member, run: Run | None) -> tuple[str, str, str]:
    """Backend, model and phase: what was started says more than what is declared."""
    if run is None:
        return member.backend, member.model, ""
    return run.backend or member.backend, run.model or member.model, run.made_for.phase


def _until(seen: AgentSeen, memory: AgentMemory, detail: Detail) -> Wall | None:
    """When its pause, its usage window or its own waiting ends; None: no end is known."""
    if detail in {Detail.PAUSED, Detail.FROZEN}:
        return seen.wish.until or None
    if memory.limit is not None:
        return memory.limit.until
    return memory.marker if detail is Detail.WAITING else None


TROUBLE: dict[Detail, str] = {
    Detail.FATAL: "needs a person",
    Detail.ASKING: "waits for an answer",
    Detail.FLAPPING: "keeps dying",
    Detail.UNKNOWN: "shows a screen that no pattern describes",
    Detail.FOREIGN: "its name is taken",
    Detail.UNSEEN: "cannot be looked at",
    Detail.MISMATCH: "runs something else",
    Detail.WEDGED: "is stuck",
    Detail.CONTEXT: "has no context left",
}


def problem(shown: Mapping[str, Any]) -> str | None:
    """One line for what a person should know of a row, or nothing."""
    detail, state = Detail(shown["detail"]), State(shown["state"])
    if state in {State.DEAD, State.FATAL} or detail in TROUBLE:
        return f"{shown['name']}: {TROUBLE.get(detail, state.lower())}: {shown['reason']}"
    return None


# --- what tmux says now ------------------------------------------------------------------------------


class Now(NamedTuple):
    """What can be asked at any moment: one listing of tmux, and what the operator wants."""

    panes: Mapping[str, PaneView]  # ours, by session
    foreign: frozenset[str]  # sessions that are not ours
    blind: str  # why tmux could not be asked
    wants: Mapping[str, str]
    watchdog: WatchdogState


def unjudged(member: Listed) -> dict[str, Any]:
    """The row of a member that no look has judged."""
    detail = Detail.DOWN if member.enabled else Detail.DISABLED
    times: dict[str, Any] = {"since": None, "until": None, "restarts": 0, "drift": []}
    texts = dict.fromkeys(("reason", "phase", "rule", "account"), "")
    declared = {name: getattr(member, name) for name in member._fields}
    return {**declared, "state": State.STOPPED, "detail": detail, **times, **texts, "messages": 0}


def overlaid(judged: Mapping[str, Any], now: Now) -> dict[str, Any]:
    """A row of the document as it is now: liveness from tmux, the rest as it was judged while they agree."""
    session, want = judged["session"], now.wants.get(judged["name"], "")
    pane = now.panes.get(session) or _renamed(judged, now)
    live = pane is not None and not pane.dead
    fresh = {**judged, "desired": want, **_process(judged, pane, now)}
    fresh.pop("trace", None)
    if now.blind:
        return fresh | {"state": State.UNKNOWN, "detail": Detail.UNSEEN, "reason": now.blind}
    if pane is None and session in now.foreign:
        reason = "a session of this name is not ours"
        return fresh | {"state": State.UNKNOWN, "detail": Detail.FOREIGN, "reason": reason}
    if judged["state"] == State.FATAL:
        return fresh
    if live:
        return fresh | _living(judged, now.watchdog)
    if want == Want.UP:
        return fresh | _missing(judged, pane, now.watchdog)
    stopped = judged["state"] == State.STOPPED
    return fresh if stopped else fresh | {"state": State.STOPPED, "detail": Detail.DOWN, "reason": ""}


def _process(judged: Mapping[str, Any], pane: PaneView | None, now: Now) -> dict[str, Any]:
    """Its pid. What does not run differs from no file; what could not be seen may run."""
    if pane is not None and not pane.dead:
        return {"pid": pane.ref.pid}
    return {"pid": None, "drift": judged["drift"] if now.blind else []}


def _living(judged: Mapping[str, Any], watchdog: WatchdogState) -> dict[str, Any]:
    if watchdog is WatchdogState.STOPPED:
        return {"state": State.RUNNING, "detail": Detail.UNWATCHED}
    if judged["state"] in {State.RUNNING, State.UNKNOWN}:
        return {}
    starting = watchdog is WatchdogState.RUNNING
    return {"state": State.RUNNING, "detail": Detail.STARTING if starting else Detail.UNWATCHED}


def _missing(judged: Mapping[str, Any], pane: PaneView | None, watchdog: WatchdogState) -> dict[str, Any]:
    """It should run and does not. What a rule says of its restart holds only while a watchdog lives."""
    over = judged["state"] == State.STOPPED and judged["detail"] in {Detail.DONE, Detail.EXITED}
    if over or (judged["state"] == State.DEAD and watchdog is not WatchdogState.STOPPED):
        return {}
    reason = "not running" if pane is None or pane.unreaped else pane.ending
    return {"state": State.DEAD, "detail": Detail.EXITED, "reason": reason}


def _renamed(judged: Mapping[str, Any], now: Now) -> PaneView | None:
    """The pane of a session that was renamed by hand: its process is known."""
    pid = judged.get("pid")
    return next((p for p in now.panes.values() if p.ref.pid == pid), None) if pid else None
