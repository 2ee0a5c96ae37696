"""The order of the rules, and what becomes of their answers.

The first rule that acts or holds ends the agent's turn, and its reason is shown. If none does, the reason
shown is that of the rule that named the detail; if none did, of the first that explains what is seen. The
others are on record as well, because "why did it not?" is asked as often as "why did it?". At most one
action per agent and look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fleet.core.agent.asking import asking
from fleet.core.agent.bringup import bringup
from fleet.core.agent.heal import fatal, heal
from fleet.core.agent.identity import identity
from fleet.core.agent.limits import limits, noted
from fleet.core.agent.receipts import receipts
from fleet.core.agent.stall import stall
from fleet.core.agent.starting import starting
from fleet.core.agent.stopping import stopping
from fleet.core.agent.turnover import turnover
from fleet.core.agent.typing import typing
from fleet.core.agent.unknown import unknown
from fleet.core.agent.waiting import waiting
from fleet.core.agent.wake import wake
from fleet.core.agent.wedged import wedged
from fleet.core.agent.wish import intent, unwatched
from fleet.core.case import Case, Verdict
from fleet.core.decision import Decision, Note
from fleet.core.effects import Action, LearnId, Start
from fleet.core.evidence import weigh
from fleet.core.memory import AgentMemory, Message
from fleet.core.model import Member
from fleet.core.queue import of_this_phase, receive, taken_back
from fleet.core.remember import remember
from fleet.core.restarts import pardon
from fleet.core.starts import learn_id
from fleet.core.words import Detail, EventType, Witness

Rule = Callable[[Case], Verdict | None]
SIGHT = "sight"  # who decides when every rule is silent
FAULT = "fault"  # and when one broke down
LEASE = "lease"  # and while a verb is at work on it
FAULT_AGAIN_S = 10.0

AGENT_RULES: tuple[tuple[str, Rule], ...] = (
    ("intent", intent),
    ("stopping", stopping),
    ("receipts", receipts),
    ("turnover", turnover),
    ("bringup", bringup),
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
    ("turnover", turnover),
    ("bringup", bringup),
    ("fatal", fatal),
    ("heal", heal),
    ("starting", starting),
)
UNWATCHED_RULES: tuple[tuple[str, Rule], ...] = (
    ("intent", intent),
    ("stopping", stopping),
    ("turnover", turnover),
    ("bringup", bringup),
    ("receipts", receipts),
    ("limits", noted),
    ("typing", typing),
    ("unwatched", unwatched),
    ("heal", heal),
)


class Ruling(NamedTuple):
    """What is shown of an agent: the rule that had the last word, its reason, and the state."""

    rule: str
    reason: str
    detail: Detail


AgentDecision = Decision[AgentMemory, Ruling, Action]


class Intake(NamedTuple):
    """What a look changes before any rule is asked: the case with it in memory, and what of it is news."""

    case: Case
    notes: tuple[Note, ...] = ()
    effects: tuple[Action, ...] = ()
    ended: tuple[Message, ...] = ()


def judge(case: Case) -> AgentDecision:
    """Bring memory up to this look, then ask the rules in their order."""
    if case.leased:
        return _left_to_its_verb(case)
    decided = _ask_rules(_take_in(case))
    _check(case, decided)
    return decided


def _left_to_its_verb(case: Case) -> AgentDecision:
    """The verb that is at work on an agent keeps its memory, which is read again when the verb is done."""
    reason = f"{case.seen.wish.held_by} is at work on it"
    memory = case.memory.with_detail(Detail.HELD, case.now.wall)
    return Decision(memory, Ruling(LEASE, reason, Detail.HELD), trace=((LEASE, reason),))


def _take_in(case: Case) -> Intake:
    """What the operator wants forgotten or unsaid, what is seen now, and messages that came or went."""
    memory, forgiven = pardon(case)
    case = weigh(case.with_memory(memory))
    memory, seen = remember(case)
    memory, outdated = of_this_phase(memory, case.loop.phase)
    over = tuple(Note(EventType.MESSAGE_WITHDRAWN, f"{m.id}: phase {m.phase} is over") for m in outdated)
    memory, unwanted = taken_back(memory, case.seen.unwanted)
    unsaid = tuple(Note(EventType.MESSAGE_WITHDRAWN, f"{m.id}: {m.why}") for m in unwanted)
    memory, learned, effects = learn_id(memory, case.agent.name, case.seen.conversation)
    case = case.with_memory(receive(memory, case.now))
    return Intake(case, (*forgiven, *seen, *over, *unsaid, *learned), effects, unwanted)


def _ask_rules(intake: Intake) -> AgentDecision:
    """Ask them in their order, each with what the ones before it remember, until one ends the turn."""
    case = intake.case
    said: list[tuple[str, Verdict]] = []
    for name, rule in rules_for(case.agent):
        verdict = rule(case)
        if verdict is None:
            continue
        said.append((name, verdict))
        if verdict.memory is not None:
            case = case.with_memory(verdict.memory)
        if verdict.ends:
            break
    return _decided(intake, case, said)


def _decided(intake: Intake, case: Case, said: list[tuple[str, Verdict]]) -> AgentDecision:
    """The decision that these verdicts make together. `case`: with what the last of them remembers."""
    verdicts, shown = [verdict for _, verdict in said], _shown(case, said)
    ended = (*intake.ended, *(m for v in verdicts for m in v.finished))
    return Decision(
        memory=case.memory.with_detail(shown.detail, case.now.wall),
        shown=shown,
        messages=tuple((case.agent.name, m) for m in ended),
        notes=(*intake.notes, *(note for v in verdicts for note in v.notes)),
        effects=(*intake.effects, *(v.action for v in verdicts if v.action is not None)),
        wake_at=min((v.wake_at for v in verdicts if v.wake_at is not None), default=None),
        trace=tuple((name, verdict.reason) for name, verdict in said),
    )


def _shown(case: Case, said: list[tuple[str, Verdict]]) -> Ruling:
    """The rule that ended the turn; else the first that named a detail; else the first that explains."""
    ended = [pair for pair in said if pair[1].ends]  # the last one, or none
    named = [pair for pair in said if pair[1].detail is not None]
    explains = [pair for pair in said if pair[1].explains]
    detail = next((v.detail for _, v in (*ended, *named) if v.detail is not None), case.sight)
    for rule, verdict in (*ended, *named, *explains):
        return Ruling(rule, verdict.reason, detail)
    return Ruling(SIGHT, _sighted(case), detail)


def _check(case: Case, decided: AgentDecision) -> None:
    """What holds for every decision, whichever rule made it."""
    pane = case.seen.pane
    assert decided.shown.reason, decided.shown.rule
    assert sum(not isinstance(act, LearnId) for act in decided.effects) <= 1, "one touch a look"
    for act in decided.effects:
        assert act.agent == case.agent.name, act
        if isinstance(act, LearnId):
            continue
        assert not case.seen.blind, f"an act on {act.agent}, which was not seen: {act}"
        ref = act.replace if isinstance(act, Start) else getattr(act, "ref", None)
        seen = pane is not None and ref == pane.ref
        assert ref is None or seen, f"an act on a pane that was not seen: {act}"


def stumbled(case: Case, fault: Exception) -> AgentDecision:
    """No decision: a rule broke down over this one. Nothing is done to it, and it is tried again."""
    memory = case.memory.with_detail(Detail.UNSEEN, case.now.wall)
    shown = Ruling(FAULT, f"a fault of this program: {fault!r}", Detail.UNSEEN)
    return Decision(memory, shown, wake_at=case.now.after(FAULT_AGAIN_S))


def rules_for(member: Member) -> tuple[tuple[str, Rule], ...]:
    """The rules that concern this one, in their order."""
    if not member.watched:
        return UNWATCHED_RULES
    return AGENT_RULES if member.has_screen else SERVICE_RULES


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
