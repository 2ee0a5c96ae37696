"""Show the state of every agent and service.

Changes nothing. `status` asks tmux which sessions are alive; detail, reason and phase come from the
watchdog.

Example: agents.py status --check --json
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from fleet.core.words import State
from fleet.host.tmux.server import attach_command
from fleet.text import escaped
from fleet.verbs.common import Fail, Io, session_of
from fleet.verbs.last_view import Found, as_desired, at_hand, facts_of, reading

if TYPE_CHECKING:
    import argparse

    from fleet.core.outline import Outline

GROUP = "look"

WEEK_S = 6 * 86_400.0  # farther ahead a weekday does not say which one
COLOURS = {
    State.RUNNING: "green",
    State.STOPPED: "dim",
    State.DEAD: "red",
    State.FATAL: "red",
    State.UNKNOWN: "yellow",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to print."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="agents or services to show (default: all)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 if an agent should run and does not, or there is a problem",
    )
    parser.add_argument(
        "--prometheus", action="store_true", help="print Prometheus metrics (docs/metrics.md lists them)"
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

        io.write(exposition(facts, TokenLog(fleet.log_dir, RealDisk()).records()))
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
    io.table(("name", "kind", "backend", "model", "watch", "state", "detail", "phase", "reason"), rows)
    loop, dog = facts["loop"], facts["watchdog"]
    lines = [f"watchdog {dog['state']}" + (f", pid {dog['pid']}" if dog["pid"] else "")]
    if loop is not None:
        lines.append(_place(loop))
    io.print()
    io.print(escaped(" · ".join(lines)))
    if any(r["state"] == "RUNNING" for r in facts["agents"]):
        one = next(r for r in facts["agents"] if r["state"] == "RUNNING")
        io.print(escaped("attach: " + shlex.join(attach_command(fleet, one["session"]))))
    for text in facts["problems"]:
        io.print(io.paint("! ", "red") + escaped(text))


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
    if until and r["detail"] in {"LIMITED", "WAITING", "PAUSED", "FROZEN"}:
        form = "%a %H:%M" if until - now < WEEK_S else "%a %Y-%m-%d %H:%M"
        return f"{r['detail']} until {time.strftime(form, time.localtime(until))}"
    drift = " (drift)" if r["drift"] else ""
    return f"{r['detail']}{drift}"
