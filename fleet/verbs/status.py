"""Show the state of every agent and service.

Changes nothing. `status` asks tmux which sessions are alive; detail, reason and phase come from the
watchdog.

Example: agents.py status --check --json
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from fleet.core.words import Detail, State
from fleet.host.tmux.server import attach_command
from fleet.text import escaped
from fleet.verbs.arguments import flag, members, session_of
from fleet.verbs.io import Fail, Io, day_and_time
from fleet.verbs.last_view import Found, as_desired, at_hand, facts_of, reading

if TYPE_CHECKING:
    import argparse

    from fleet.core.outline import Outline

GROUP = "look"

COLOURS = {
    State.RUNNING: "green",
    State.STOPPED: "dim",
    State.DEAD: "red",
    State.FATAL: "red",
    State.UNKNOWN: "yellow",
}


ARGUMENTS = (
    members("agents or services to show (default: all)"),
    flag("--check", "exit 1 if an agent should run and does not, or there is a problem"),
    flag("--prometheus", "print Prometheus metrics (docs/metrics.md lists them)"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the table, the JSON or the metrics. Exit 1 only with --check."""
    found = _found(args, io)
    fleet, facts = found.fleet, facts_of(found, io.aside.get("config"))
    if args.names:
        for name in args.names:
            session_of(fleet, name)
        for key in ("agents", "services"):
            facts[key] = [r for r in facts[key] if r["name"] in args.names]
    if args.prometheus and args.json:
        raise Fail("--prometheus and --json exclude each other; choose one", code=2)
    if args.prometheus:
        # both read the profiles of all CLIs: only when they are asked for
        from fleet.host.disk import RealDisk
        from fleet.tokens.tokenlog import TokenLog
        from fleet.verbs.metrics import exposition

        io.write(exposition(facts, TokenLog(fleet.ground.log_dir, RealDisk()).records()))
    elif args.json:
        io.json(facts)
    else:
        _print(fleet, facts, io)
    return 1 if args.check and not as_desired(facts) else 0


def _found(args: argparse.Namespace, io: Io) -> Found:
    """The fleet in force: as the watchdog wrote it down if the file is the same, else read."""
    if found := at_hand(args.config or "agents.toml", io.clock):
        return found
    # Only now: the reader of agents.toml is a large part to load, and a watched fleet does not need it.
    from fleet.verbs.fleets import running_fleet

    return reading(running_fleet(args, io), io.clock)


def _print(fleet: Outline, facts: dict[str, Any], io: Io) -> None:
    rows = [
        (
            r["name"],
            r["kind"],
            r["backend"],
            r["model"],
            r["watch"],
            (r["state"], COLOURS[r["state"]]),
            _detail(r, io.clock.wall()),
            r["phase"],
            r["reason"],
        )
        for r in (*facts["agents"], *facts["services"])
    ]
    header = ("name", "kind", "backend", "model", "watch", "state", "detail", "phase", "reason")
    if rows:
        io.table(header, rows, spare=("watch", "kind", "backend", "model", "phase"))
        io.print()
    loop, dog = facts["loop"], facts["watchdog"]
    lines = [f"watchdog {dog['state']}" + (f", pid {dog['pid']}" if dog["pid"] else "")]
    if loop is not None:
        lines.append(_place(loop))
    io.paragraph(escaped(" · ".join(lines)))
    if one := next((r for r in facts["agents"] if r["state"] == State.RUNNING), None):
        attach = escaped("attach: " + shlex.join(attach_command(fleet.ground, one["session"])))
        fits = not io.room or len(attach) <= io.room
        io.print(attach if fits else f"attach: agents.py attach {one['name']}")
    for text in facts["problems"]:
        io.paragraph(escaped(text), lead="! ", colour="red")


def _place(loop: dict[str, Any]) -> str:
    """Where the loop stands: the watchdog's own words while it has some, the bare record otherwise."""
    if loop["held"]:
        return f"loop held: {loop['held']}"
    if loop["complete"]:
        return "sequence complete"
    if loop["id"] and loop["id"] in loop["state"]:
        return str(loop["state"])
    return f"phase {loop['id']} ({loop['index'] + 1}/{loop['total']})" if loop["id"] else "loop not begun"


def _detail(r: dict[str, Any], now: float) -> str:
    until = r["until"]
    if until and r["detail"] in {Detail.LIMITED, Detail.WAITING, Detail.PAUSED, Detail.FROZEN}:
        return f"{r['detail']} until {day_and_time(until, now)}"
    drift = " (drift)" if r["drift"] else ""
    return f"{r['detail']}{drift}"
