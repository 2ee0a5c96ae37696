"""Explain an agent's state and what happens next.

Prints the evidence, the rule that decided, the rules that were considered, and what the watchdog
does next.

Example: agents.py explain builder
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from fleet.cli.common import Fail, Io, session_of
from fleet.cli.fleets import running_fleet
from fleet.cli.phase import show
from fleet.core.decide import SIGHT, rules_for
from fleet.core.environment import ORIGINS
from fleet.core.text import escaped
from fleet.core.views import state_of
from fleet.supervisor.deputy import observer

if TYPE_CHECKING:
    from fleet.core.case import Case, ProcView
    from fleet.core.decide import AgentDecision
    from fleet.core.memory import AgentMemory
    from fleet.core.model import Fleet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which agent or service."""
    parser.add_argument("name", metavar="NAME", help="an agent or a service")


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the evidence and the rules for one agent or service."""
    fleet = running_fleet(args, io)
    session_of(fleet, args.name)
    if fleet.member(args.name) is None:
        raise Fail("the watchdog is explained by `agents.py status` and `agents.py events`", code=2)
    dog = observer(fleet)
    dog.glance()
    facts = explained(dog.mind.decided[args.name], dog.mind.cases[args.name])
    facts["evidence"] += _marker(fleet, args.name)
    if args.json:
        io.json(facts)
        return 0
    io.print(escaped(f"{args.name}: {facts['state']} {facts['detail']}: {facts['reason']}"))
    seen = facts["rule"] == SIGHT
    how = "what is seen: no rule has cause to act" if seen else f"rule {facts['rule']}"
    io.print(f"decided by {how}" + (f"; the watchdog would {facts['would']}" if facts["would"] else ""))
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


def _marker(fleet: Fleet, name: str) -> list[dict[str, str]]:
    """What the status file of its phase says, for an agent of the loop."""
    agent = fleet.agent(name)
    if fleet.loop is None or agent is None or not agent.is_loop:
        return []
    facts = show(fleet, fleet.loop)
    said = "the phase is done" if facts["done"] else f"not done: {facts['why']}"
    return [{"what": "done marker", "source": facts["status"] or "status file", "value": said}]


def explained(decision: AgentDecision, case: Case) -> dict[str, Any]:
    """Everything behind a decision, as one document."""
    said, shown = dict(decision.trace), decision.shown
    order = [name for name, _ in rules_for(case)]
    last = order.index(shown.rule) if shown.rule in order else len(order)
    rules = []
    for number, (name, rule) in enumerate(rules_for(case)):
        use = (rule.__doc__ or "").partition("\n")[0]
        silent = f"no cause: {use}" if number <= last else f"not asked, {shown.rule} decided: {use}"
        rules.append({"rule": name, "said": said.get(name) or silent, "won": name == shown.rule})
    wait = None if decision.wake_at is None else max(0.0, case.now.ahead(decision.wake_at))
    return {
        "name": case.agent.name,
        "state": str(state_of(case.seen, shown.detail, decision.memory)),
        "detail": str(shown.detail),
        "reason": shown.reason,
        "rule": shown.rule,
        "would": " ".join(type(effect).__name__ for effect in decision.effects),
        "evidence": _evidence(case, decision.memory),
        "rules": rules,
        "next_look_s": wait,
    }


def _evidence(case: Case, memory: AgentMemory) -> list[dict[str, str]]:
    """Dated facts with their sources."""
    seen, now = case.seen, case.now
    rows: list[tuple[str, str, str]] = []
    pane = seen.pane
    if seen.blind:
        return [{"what": "blind", "source": "tmux", "value": seen.blind}]
    if pane is None:
        rows.append(("session", "tmux", "none"))
    else:
        alive = "alive" if not pane.dead else f"dead (exit {pane.exit_code}, signal {pane.exit_signal})"
        rows.append(("pane", "tmux", f"{alive}, pid {pane.ref.pid}, run {pane.ref.run}"))
        if pane.activity:
            rows.append(("last output", "tmux", f"{max(0.0, now.since_wall(pane.activity)):.0f} s ago"))
    if seen.reading is not None:
        r = seen.reading
        how = f"pattern {r.pattern}" if r.pattern else "its shape"
        rows.append(("screen", how, f"{r.state}: {r.line}" if r.line else str(r.state)))
        if r.draft:
            rows.append(("composer", "screen", r.draft[:80]))
        if r.until:
            rows.append(("until", "screen", _when(r.until)))
        if r.dialog:
            rows.append(("dialog", "screen", f"{r.dialog}, allowed key: {r.key or 'none'}"))
    if seen.working is not None:
        age = f", {max(0.0, now.since_wall(seen.heard_at)):.0f} s ago" if seen.heard_at else ""
        word = "a turn runs" if seen.working else "no turn runs"
        rows.append(("turn", seen.heard_from or "the CLI itself", word + age))
    if pane is not None and not pane.dead:
        rows.append(("processes", "process tree", _processes(seen.proc)))
    if seen.survivors:
        rows.append(("survivors", "process table", f"{seen.survivors} processes of this run still live"))
    wanted = seen.wish.want or "not set"
    if seen.wish.paused:
        wanted += ", paused" + (f" until {_when(seen.wish.until)}" if seen.wish.until else "")
    rows.append(("wanted", "desired.json", wanted))
    rows.append(("environment", "run record", ORIGINS[memory.run.origin if memory.run else ""]))
    if memory.ready:
        rows.append(("ready for", "memory", f"{now.since(memory.ready):.0f} s"))
        rows.append(("quiet for", "memory", f"{max(0.0, now.since(memory.quiet_since)):.0f} s"))
    if memory.limit:
        rows.append(
            ("limited", memory.limit.source, f"until {_when(memory.limit.until)}: {memory.limit.line}")
        )
    if memory.deaths or memory.exits:
        rows.append(("tally", "memory", f"{len(memory.deaths)} deaths, {len(memory.exits)} clean exits"))
    rows += [(f"message {m.kind}", "outbox", f"{m.id}: {m.status}") for m in memory.outbox]
    return [{"what": a, "source": b, "value": c} for a, b, c in rows]


def _processes(proc: ProcView) -> str:
    if proc.expected:
        runs = "the declared program runs"
    else:
        runs = "nothing but a shell" if proc.shell_only else f"{proc.other or 'another program'} runs instead"
    return runs + (", at work" if proc.busy else "")


def _when(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))
