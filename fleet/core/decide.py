"""The order of the rules, and what becomes of their answers.

The first rule that acts or holds ends the agent's turn, and its reason is shown. If none does, the reason
shown is that of the rule that named the detail; if none did, of the first that explains what is seen. The
others are on record as well, because "why did it not?" is asked as often as "why did it?". One act a look and
an agent: escalation climbs one rung at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fleet.core.actions import Action, Start
from fleet.core.case import Case, Verdict
from fleet.core.evidence import weigh
from fleet.core.memory import AgentMemory, Message
from fleet.core.moment import Steady
from fleet.core.pardon import pardon
from fleet.core.remember import remember
from fleet.core.rules.asking import asking
from fleet.core.rules.heal import fatal, heal
from fleet.core.rules.identity import identity
from fleet.core.rules.intent import intent, unwatched
from fleet.core.rules.limits import limits, noted
from fleet.core.rules.outbox import of_this_phase, receive
from fleet.core.rules.stall import stall
from fleet.core.rules.starting import starting
from fleet.core.rules.stopping import stopping
from fleet.core.rules.turnover import task, turnover
from fleet.core.rules.typing import receipts, typing
from fleet.core.rules.unknown import unknown
from fleet.core.rules.waiting import waiting
from fleet.core.rules.wake import wake
from fleet.core.rules.wedged import wedged
from fleet.core.state import Detail
from fleet.core.words import EventType, Witness

Rule = Callable[[Case], Verdict | None]
SIGHT = "sight"  # who decides when every rule is silent
FAULT = "fault"  # and when one broke down
FAULT_AGAIN_S = 10.0

AGENT_RULES: tuple[tuple[str, Rule], ...] = (
    ("intent", intent),
    ("stopping", stopping),
    ("receipts", receipts),
    ("turnover", turnover),
    ("task", task),
    ("limits", limits),
    ("fatal", fatal),
    ("heal", heal),
    ("starting", starting),
    ("identity", identity),
    ("wedged", wedged),
    ("asking", asking),
    ("unknown", unknown),
    ("waiting", waiting),
    ("wake", wake),
    ("typing", typing),
    ("stall", stall),
)
SERVICE_RULES: tuple[tuple[str, Rule], ...] = (
    ("intent", intent),
    ("stopping", stopping),
    ("fatal", fatal),
    ("heal", heal),
    ("starting", starting),
)
UNWATCHED_RULES: tuple[tuple[str, Rule], ...] = (
    ("intent", intent),
    ("stopping", stopping),
    ("turnover", turnover),
    ("task", task),
    ("receipts", receipts),
    ("limits", noted),
    ("typing", typing),
    ("unwatched", unwatched),
    ("heal", heal),
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was decided for one agent, by which rule, and what the others said."""

    rule: str
    reason: str
    detail: Detail
    memory: AgentMemory
    action: Action | None = None
    wake_at: Steady | None = None
    trace: tuple[tuple[str, str], ...] = ()
    events: tuple[tuple[EventType, str], ...] = ()
    finished: tuple[Message, ...] = ()


def judge(case: Case) -> Judgement:
    """Ask the rules in their order."""
    memory, told_first = pardon(case)
    if memory is not case.memory:
        case = replace(case, memory=memory)
    case = weigh(case)
    memory, events = remember(case)
    if memory is not case.memory:
        case = replace(case, memory=memory)
    told = [*told_first, *events]
    memory, stale = of_this_phase(memory, case.loop.phase)
    if stale:
        case = replace(case, memory=memory)
        told += [(EventType.MESSAGE_WITHDRAWN, f"{m.id}: phase {m.phase} is over") for m in stale]
    memory = receive(memory, case.now)
    if memory is not case.memory:
        case = replace(case, memory=memory)
    trace: list[tuple[str, str]] = []
    finished: list[Message] = []
    wakes: list[Steady] = []
    detail: Detail | None = None
    winner, reason, action = "", "", None
    sight = (SIGHT, "")
    for name, rule in rules_for(case):
        verdict = rule(case)
        if verdict is None:
            continue
        trace.append((name, verdict.reason))
        if verdict.memory is not None:
            memory = verdict.memory
            case = replace(case, memory=memory)
        if verdict.events:
            told.extend(verdict.events)
        if verdict.finished:
            finished.extend(verdict.finished)
        if verdict.wake_at is not None:
            wakes.append(verdict.wake_at)
        if detail is None and verdict.detail is not None:
            winner, reason, detail = name, verdict.reason, verdict.detail
        if verdict.explains and not sight[1]:
            sight = (name, verdict.reason)
        if verdict.action is not None or verdict.hold:
            winner, reason, action = name, verdict.reason, verdict.action
            detail = verdict.detail or detail
            break
    if not winner:
        winner, reason = sight
    detail = detail or case.sight
    memory = memory.with_detail(detail, case.now.wall)
    decided = Judgement(
        winner,
        reason or _sighted(case),
        detail,
        memory,
        action,
        min(wakes) if wakes else None,
        tuple(trace),
        tuple(told),
        tuple(finished),
    )
    _check(case, decided)
    return decided


def _check(case: Case, decided: Judgement) -> None:
    """What holds for every decision, whichever rule made it."""
    act, pane = decided.action, case.seen.pane
    assert decided.reason, decided.rule
    if act is None:
        return
    assert act.agent == case.agent.name, act
    assert not case.seen.blind, f"an act on {act.agent}, which was not seen: {act}"
    ref = act.replace if isinstance(act, Start) else getattr(act, "ref", None)
    assert ref is None or (pane is not None and ref == pane.ref), f"an act on a pane that was not seen: {act}"


def stumbled(case: Case, fault: Exception) -> Judgement:
    """No decision: a rule broke down over this one. Nothing is done to it, and it is tried again."""
    memory = case.memory.with_detail(Detail.UNSEEN, case.now.wall)
    reason = f"a fault of this program: {fault!r}"
    return Judgement(FAULT, reason, Detail.UNSEEN, memory, wake_at=case.now.after(FAULT_AGAIN_S))


def rules_for(case: Case) -> tuple[tuple[str, Rule], ...]:
    """The rules that concern this one, in their order."""
    if not case.watched:
        return UNWATCHED_RULES
    return AGENT_RULES if case.agent.has_screen else SERVICE_RULES


def _sighted(case: Case) -> str:
    """Who says what is shown when no rule had a word for it."""
    pane = case.seen.pane
    if pane is None:
        return "not running"
    if pane.dead:
        return pane.ending
    if not case.agent.has_screen:
        return "its process runs"
    if not case.memory.state:
        return "its screen has not been read yet"
    reported = case.seen.working is not None and case.seen.heard_from
    return f"its {reported or Witness.SCREEN} says {case.memory.state}"
