"""Forget tallies, limit window and fatal verdict of agents and services: they are tried again as if new.

A watchdog that runs is asked, and its answer is what is reported: exit code 1 when it did not do it.
"""

from __future__ import annotations

import argparse

from fleet.cli.ask import ask, pardon
from fleet.cli.common import Fail, Io, seconds, session_of
from fleet.cli.desk import desk_of
from fleet.core.answers import RequestOutcome
from fleet.core.outline import WATCHDOG
from fleet.core.words import RequestKind

ANSWER_S = 15.0  # a watchdog that looks answers within one look


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names, and for how long to wait."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="agents or services")
    parser.add_argument(
        "--timeout", type=seconds, default=ANSWER_S, metavar="S", help="how long to wait for the answer"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    desk = desk_of(io)
    fleet = desk.running(args, io, trust=True)
    for name in args.names:
        session_of(fleet, name)
    if WATCHDOG in args.names:
        raise Fail("the watchdog keeps no tally of itself", hint="agents.py restart watchdog", code=2)
    operator = desk.operator(fleet)
    operator.make_room()
    names = list(dict.fromkeys(args.names))
    refused: dict[str, tuple[str, str]] = {}
    if operator.host.holder() is None:
        pardon(operator, names)
    else:
        for name, receipt in ask(operator, RequestKind.RESET, {n: {} for n in names}, args.timeout).items():
            if not receipt.get("ok"):
                outcome = receipt.get("facts", {}).get("outcome", str(RequestOutcome.FAILED))
                refused[name] = outcome, str(receipt.get("text", ""))
    done = [n for n in names if n not in refused]
    if args.json:
        rows = {n: {"outcome": outcome, "text": text} for n, (outcome, text) in refused.items()}
        io.json({"ok": not refused, "reset": done, "refused": rows})
        return 1 if refused else 0
    if done:
        io.print(f"reset: {', '.join(done)}")
    for name, (_, text) in refused.items():
        io.error(f"{name} is not reset: {text}", hint="agents.py status")
    return 1 if refused else 0
