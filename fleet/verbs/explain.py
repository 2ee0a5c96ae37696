"""Explain an agent's state and what happens next.

Prints the evidence, the rule that decided, the rules that were considered, and what the watchdog
does next.

Example: agents.py explain builder
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fleet.core.agent.decide import SIGHT
from fleet.core.trace import explained
from fleet.text import escaped
from fleet.verbs.arguments import positional, session_of
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.last_view import looked, reading, row_of
from fleet.verbs.phase import show

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.ports import Clock

GROUP = "look"

FRESH_S = 5.0  # evidence that is older is gathered anew


ARGUMENTS = (positional("name", "an agent or a service", metavar="NAME"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the evidence and the rules for one agent or service."""
    fleet = running_fleet(args, io)
    session_of(fleet, args.name)
    member = fleet.member(args.name)
    if member is None:
        raise Fail("the watchdog is explained by `agents.py status` and `agents.py events`", code=2)
    facts = explained(member, _judged(fleet, args.name, io.clock), io.clock.wall())
    facts["evidence"] += _marker(fleet, args.name)
    if args.json:
        io.json(facts)
        return 0
    io.paragraph(escaped(f"{args.name}: {facts['state']} {facts['detail']}: {facts['reason']}"))
    seen = facts["rule"] == SIGHT
    how = "what is seen: no rule has cause to act" if seen else f"rule {facts['rule']}"
    io.paragraph(f"decided by {how}" + (f"; the watchdog would {facts['would']}" if facts["would"] else ""))
    io.print()
    io.table(
        ("evidence", "source", "what"), [(e["what"], e["source"], e["value"]) for e in facts["evidence"]]
    )
    io.print()
    io.table(("", "rule", "said"), [("*" if r["won"] else "", r["rule"], r["said"]) for r in facts["rules"]])
    io.print()
    wait = facts["next_look_s"]
    io.print("next tick: " + ("" if wait is None else f"in {wait:.0f} s, or ") + "when something changes")
    return 0


def _judged(fleet: Fleet, name: str, clock: Clock) -> dict[str, Any]:
    """The row of one member: the watchdog's while its trace is fresh, else that of a look of our own."""
    row = row_of(reading(fleet, clock).document, name)
    if "trace" not in row or clock.wall() - row["trace"]["at"] > FRESH_S:
        document = looked(fleet)
        if "fault" in document:
            raise Fail(document["fault"])
        row = row_of(document, name)
    return row


def _marker(fleet: Fleet, name: str) -> list[dict[str, str]]:
    """What the status file of its phase says, for an agent of the loop."""
    agent = fleet.agent(name)
    if fleet.loop is None or agent is None or not agent.is_loop:
        return []
    facts = show(fleet, fleet.loop)
    said = "the phase is done" if facts["done"] else f"not done: {facts['why']}"
    return [{"what": "done marker", "source": facts["status"] or "status file", "value": said}]
