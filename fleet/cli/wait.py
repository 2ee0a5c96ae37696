"""Block until agents, a phase or the whole sequence are where you want them. Exit 1 when the time is over."""

from __future__ import annotations

import argparse
import time
from typing import Any

from fleet.cli.common import Fail, Io, seconds, session_of
from fleet.cli.fleets import running_fleet
from fleet.cli.status import gather
from fleet.core.outline import WATCHDOG
from fleet.core.state import Detail, State
from fleet.core.text import did_you_mean

POLL_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to wait for."""
    parser.add_argument(
        "--agent", action="append", default=[], metavar="NAME", help="this agent (with --state)"
    )
    parser.add_argument("--state", metavar="WORD", help="a state or detail, for example RUNNING or IDLE")
    parser.add_argument("--phase", metavar="ID", help="until this phase is the current one, or is behind us")
    parser.add_argument("--complete", action="store_true", help="until the sequence is complete")
    parser.add_argument(
        "--timeout", type=seconds, default=0.0, metavar="S", help="give up after this long; 0: never"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    fleet = running_fleet(args, io)
    for name in args.agent:
        session_of(fleet, name)
    if WATCHDOG in args.agent:
        raise Fail("the watchdog has no such states", hint="agents.py status", code=2)
    if not (args.agent or args.phase or args.complete):
        raise Fail("say what to wait for", hint="--agent NAME --state WORD, --phase ID or --complete", code=2)
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
    deadline = time.monotonic() + args.timeout if args.timeout else None
    while True:
        facts = gather(fleet.outline)
        there = _there(facts, args, ids)
        if there or (deadline is not None and time.monotonic() >= deadline):
            break
        time.sleep(POLL_S)
    if args.json:
        io.json({"ok": there, "loop": facts["loop"], "agents": facts["agents"]})
    elif not there:
        io.error(f"not there after {args.timeout:.0f} s")
    return 0 if there else 1


def _there(facts: dict[str, Any], args: argparse.Namespace, ids: list[str]) -> bool:
    loop = facts["loop"] or {}
    if args.complete and not loop.get("complete"):
        return False
    if args.phase and not loop.get("complete"):
        index = loop.get("index")
        if index is None or index < ids.index(args.phase):
            return False
    rows = {r["name"]: r for r in (*facts["agents"], *facts["services"])}
    word = (args.state or "").upper()
    return all(word in {rows[name]["state"], rows[name]["detail"]} for name in args.agent)
