"""What must have happened at least once across the seeds: a rule that never fires is dead, or untested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fleet.core.agent.decide import AGENT_RULES, SERVICE_RULES, UNWATCHED_RULES
from fleet.core.words import EventType
from tests.sim.agents import OUTCOMES
from tests.sim.faults import DAILY, LOOP_DAILY
from tests.sim.simulation import Report
from tools.verbs_and_states import EDGES

OF_THE_LOOP = frozenset({"turnover"})  # rules that only a fleet with a loop can reach
VERBS = ("up", "down", "restart", "pause", "unpause", "send", "reset")
LOOP_EVENTS = (
    EventType.PHASE_SET,
    EventType.PHASE_ADVANCED,
    EventType.GATE_PASSED,
    EventType.GATE_FAILED,
    EventType.HANDOFF_CLAIMED,
    EventType.HANDOFF_REVIEWED,
    EventType.HANDOFF_REBASELINED,
    EventType.HANDOFF_FETCH_FAILED,
    EventType.SEQUENCE_COMPLETED,
    EventType.TASK_TRIGGERED,
)


def missing(reports: Iterable[Report], *, loops: bool = False) -> list[str]:
    """Everything that was expected and never seen; of seeds with a loop, what only those can reach."""
    reports = list(reports)
    if loops:
        return _missing_loop(reports)
    rules: Counter[str] = sum((r.rules for r in reports), Counter())
    struck: Counter[str] = sum((r.struck for r in reports), Counter())
    moods: Counter[str] = sum((r.moods for r in reports), Counter())
    named = {name for name, _ in (*AGENT_RULES, *SERVICE_RULES, *UNWATCHED_RULES)} - OF_THE_LOOP
    gaps = [f"rule {name}" for name in sorted(named - set(rules))]
    edges: Counter[tuple[str, str]] = sum((r.edges for r in reports), Counter())
    gaps += [f"edge {was} -> {now}" for was, now in EDGES if (str(was), str(now)) not in edges]
    known = {(str(was), str(now)) for was, now in EDGES}
    gaps += [f"a place for {was} -> {now} in the table of edges" for was, now in sorted(set(edges) - known)]
    gaps += [f"fault {kind}" for kind in sorted(set(DAILY) - set(struck))]
    gaps += _missing_verbs(reports, VERBS)
    return gaps + [f"mood {mood}" for mood in sorted(set(OUTCOMES) - set(moods))]


def _missing_loop(reports: list[Report]) -> list[str]:
    rules: Counter[str] = sum((r.rules for r in reports), Counter())
    struck: Counter[str] = sum((r.struck for r in reports), Counter())
    gaps = [f"rule {name}" for name in sorted(OF_THE_LOOP - set(rules))]
    gaps += _missing_verbs(reports, ("phase",))
    events: Counter[str] = sum((r.events for r in reports), Counter())
    gaps += [f"event {kind}" for kind in LOOP_EVENTS if not events[kind]]
    return gaps + [f"fault {kind}" for kind in sorted(set(LOOP_DAILY) - set(struck))]


def _missing_verbs(reports: list[Report], names: Iterable[str]) -> list[str]:
    """Each verb must have come to its end, and must have been killed on its way there."""
    ended: Counter[str] = sum((r.verbs for r in reports), Counter())
    return [f"verb {word}" for name in names for word in (name, f"{name} killed") if not ended[word]]
