"""Wait until agents, a phase or the loop reach a state.

Exits 1 on timeout. It asks `status` four times per second and changes nothing.

Example: agents.py wait --agent builder --state IDLE --timeout 600
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from fleet.core.outline import WATCHDOG
from fleet.core.words import Detail, State
from fleet.host.clock import polls
from fleet.text import did_you_mean
from fleet.verbs.arguments import flag, option, session_of, timeout
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.last_view import gather

GROUP = "run"

POLL_S = 0.25


ARGUMENTS = (
    option("--agent NAME", "wait for this agent; with --state; may be repeated", action="append", default=[]),
    option("--state WORD", "a state or detail, such as RUNNING or IDLE"),
    option("--phase ID", "wait until this phase or a later one is current"),
    flag("--complete", "wait until all phases are done"),
    timeout(0, "", shown="0, no limit"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Block until the state is reached. Exit 1 on timeout."""
    fleet = running_fleet(args, io)
    for name in args.agent:
        session_of(fleet, name)
    if WATCHDOG in args.agent:
        raise Fail("the watchdog has no such states", hint="agents.py status", code=2)
    if not (args.agent or args.phase or args.complete):
        options = "--agent NAME --state WORD, --phase ID or --complete"
        raise Fail("wait needs a state to wait for", hint=options, code=2)
    if bool(args.agent) != bool(args.state):
        raise Fail("--agent and --state go together", code=2)
    words = [*State, *Detail]
    if args.state and args.state.upper() not in words:
        raise Fail(f"there is no state {args.state!r}; {did_you_mean(args.state, words)}", code=2)
    if (args.phase or args.complete) and fleet.loop is None:
        raise Fail("this fleet has no [loop]", code=2)
    ids = [p.id for p in fleet.loop.phases] if fleet.loop else []
    if args.phase and args.phase not in ids:
        raise Fail(f"there is no phase {args.phase!r}; {did_you_mean(args.phase, ids)}", code=2)
    for _ in polls(io.clock, args.timeout or math.inf, POLL_S):
        facts = gather(fleet, io.clock)
        missing = _missing(facts, args, ids)
        if not missing:
            break
    if args.json:
        io.json({"ok": not missing, "loop": facts["loop"], "agents": facts["agents"]})
    elif missing:
        io.error(f"timed out after {args.timeout:g} s: {missing}")
    return 1 if missing else 0


def _missing(facts: dict[str, Any], args: argparse.Namespace, ids: list[str]) -> str:
    """What is not yet as asked for; empty when all is."""
    loop = facts["loop"] or {}
    here = f"the loop is in phase {loop.get('id') or '-'}"
    if args.complete and not loop.get("complete"):
        return f"{here}, expected all phases to be done"
    if args.phase and not loop.get("complete"):
        index = loop.get("index")
        if index is None or index < ids.index(args.phase):
            return f"{here}, expected {args.phase} or later"
    rows = {r["name"]: r for r in (*facts["agents"], *facts["services"])}
    wanted = (args.state or "").upper()
    for name in args.agent:
        row = rows[name]
        if wanted not in {row["state"], row["detail"]}:
            return f"{name} is {row['state']} {row['detail']}, expected {wanted}"
    return ""
