"""Why an agent is where it is: the evidence, what each rule said, and what follows.

Each row of the view carries one. `explain` and `replay` show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleet.core.agent.decide import AgentDecision, rules_for
from fleet.core.case import AgentSeen, Case, ProcView, Wish
from fleet.core.memory import AgentMemory
from fleet.core.model import Member
from fleet.core.seen import PaneView, Reading
from fleet.core.starts import ORIGINS
from fleet.text import plural
from fleet.times.moment import Moment, utc

Fact = tuple[str, str, str]  # what, its source, its value


def trace(case: Case, decision: AgentDecision, memory: AgentMemory) -> dict[str, Any]:
    """Everything behind a decision, as plain values. `memory`: after what was decided has been done."""
    now, wakes = case.now, decision.wake_at
    return {
        "at": now.wall,
        "would": " ".join(type(effect).__name__ for effect in decision.effects),
        "wakes": None if wakes is None else now.wall + now.ahead(wakes),
        "said": [[rule, words] for rule, words in decision.trace],
        "evidence": [list(fact) for fact in _evidence(case.seen, memory, now)],
    }


def explained(member: Member, row: Mapping[str, Any], wall: float) -> dict[str, Any]:
    """A row with its trace, for people and programs: each rule of this member in its order."""
    found, decided = row["trace"], row["rule"]
    said, wakes = dict(found["said"]), found["wakes"]
    table = rules_for(member)
    order = [name for name, _ in table]
    last = order.index(decided) if decided in order else len(order)
    rules = []
    for number, (name, rule) in enumerate(table):
        use = (rule.__doc__ or "").partition("\n")[0]
        silent = f"no cause: {use}" if number <= last else f"not asked, {decided} decided: {use}"
        rules.append({"rule": name, "said": said.get(name) or silent, "won": name == decided})
    return {
        **{key: row[key] for key in ("name", "state", "detail", "reason", "rule")},
        "would": found["would"],
        "evidence": [dict(zip(("what", "source", "value"), fact, strict=True)) for fact in found["evidence"]],
        "rules": rules,
        "next_look_s": None if wakes is None else max(0.0, wakes - wall),
    }


def _evidence(seen: AgentSeen, memory: AgentMemory, now: Moment) -> Iterator[Fact]:
    """Dated facts with their sources."""
    if seen.blind:
        yield "blind", "tmux", seen.blind
        return
    yield from _of_pane(seen.pane, now)
    if seen.reading is not None:
        yield from _of_screen(seen.reading)
    if seen.working is not None:
        age = f", {max(0.0, now.since_wall(seen.heard_at)):.0f} s ago" if seen.heard_at else ""
        word = "a turn runs" if seen.working else "no turn runs"
        yield "turn", seen.heard_from or "the CLI itself", word + age
    if seen.pane is not None and not seen.pane.dead:
        yield "processes", "process tree", _processes(seen.proc)
    if seen.survivors:
        yield "survivors", "process table", f"{seen.survivors} processes of this run still live"
    yield "wanted", "desired.json", _wanted(seen.wish)
    yield from _remembered(memory, now)


def _of_pane(pane: PaneView | None, now: Moment) -> Iterator[Fact]:
    if pane is None:
        yield "session", "tmux", "none"
        return
    alive = f"dead (exit {pane.exit_code}, signal {pane.exit_signal})" if pane.dead else "alive"
    yield "pane", "tmux", f"{alive}, pid {pane.ref.pid}, run {pane.ref.run}"
    if pane.activity:
        yield "last output", "tmux", f"{max(0.0, now.since_wall(pane.activity)):.0f} s ago"


def _of_screen(reading: Reading) -> Iterator[Fact]:
    how = f"pattern {reading.pattern}" if reading.pattern else "its shape"
    yield "screen", how, f"{reading.state}: {reading.line}" if reading.line else str(reading.state)
    if reading.draft:
        yield "composer", "screen", reading.draft[:80]
    if reading.until:
        yield "until", "screen", utc(reading.until)
    if reading.dialog:
        yield "dialog", "screen", f"{reading.dialog}, allowed key: {reading.key or 'none'}"


def _wanted(wish: Wish) -> str:
    wanted = str(wish.want or "not set")
    if not wish.paused:
        return wanted
    return f"{wanted}, paused" + (f" until {utc(wish.until)}" if wish.until else "")


def _remembered(memory: AgentMemory, now: Moment) -> Iterator[Fact]:
    yield "environment", "run record", ORIGINS[memory.run.origin if memory.run else None]
    if memory.ready:
        yield "ready for", "memory", f"{now.since(memory.ready):.0f} s"
        yield "quiet for", "memory", f"{max(0.0, now.since(memory.quiet_since)):.0f} s"
    if (limit := memory.limit) is not None:
        yield "limited", limit.source, f"until {utc(limit.until)}: {limit.line}"
    if memory.deaths or memory.exits:
        counted = f"{plural(len(memory.deaths), 'death')}, {plural(len(memory.exits), 'clean exit')}"
        yield "tally", "memory", counted
    for message in memory.outbox:
        yield f"message {message.kind}", "outbox", f"{message.id}: {message.status}"


def _processes(proc: ProcView) -> str:
    if proc.expected:
        runs = "the declared program runs"
    else:
        runs = "nothing but a shell" if proc.shell_only else f"{proc.other or 'another program'} runs instead"
    return runs + (", at work" if proc.busy else "")
