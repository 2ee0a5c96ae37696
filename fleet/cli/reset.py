"""Forget an agent's tallies, limit window and fatal verdict: it is tried again as if it were new."""

from __future__ import annotations

import argparse

from fleet.cli.common import Fail, Io, load_fleet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="agents or services")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    from fleet.cli.ask import pardon
    from fleet.cli.common import session_of
    from fleet.core.model import WATCHDOG
    from fleet.world.operator import Operator

    fleet = load_fleet(args, io)
    for name in args.names:
        session_of(fleet, name)
    if WATCHDOG in args.names:
        raise Fail("the watchdog keeps no tally of itself", hint="agents.py restart watchdog", code=2)
    operator = Operator(fleet)
    operator.make_room()
    pardon(operator, args.names)
    if args.json:
        io.json({"ok": True, "reset": args.names})
    else:
        io.print(f"reset: {', '.join(args.names)}")
    return 0
