"""What must have happened at least once across the seeds: a rule that never fires is dead, or untested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fleet.core.decide import AGENT_RULES, SERVICE_RULES, UNWATCHED_RULES
from fleet.core.state import EDGES
from tests.sim.agents import OUTCOMES
from tests.sim.faults import DAILY
from tests.sim.simulation import Report

NOT_HERE = frozenset({"turnover", "task"})  # they need the phase machine; its own tests kill it at every pair


def missing(reports: Iterable[Report]) -> list[str]:
    """Everything that was expected and never seen."""
    reports = list(reports)
    rules: Counter[str] = sum((r.rules for r in reports), Counter())
    struck: Counter[str] = sum((r.struck for r in reports), Counter())
    moods: Counter[str] = sum((r.moods for r in reports), Counter())
    named = {name for name, _ in (*AGENT_RULES, *SERVICE_RULES, *UNWATCHED_RULES)} - NOT_HERE
    gaps = [f"rule {name}" for name in sorted(named - set(rules))]
    edges: Counter[tuple[str, str]] = sum((r.edges for r in reports), Counter())
    gaps += [f"edge {was} -> {now}" for was, now in EDGES if (str(was), str(now)) not in edges]
    known = {(str(was), str(now)) for was, now in EDGES}
    gaps += [f"a place for {was} -> {now} in the table of edges" for was, now in sorted(set(edges) - known)]
    gaps += [f"fault {kind}" for kind in sorted(set(DAILY) - set(struck))]
    return gaps + [f"mood {mood}" for mood in sorted(set(OUTCOMES) - set(moods))]
