"""Stop agents, services or the watchdog and start them again. Not counted against them."""

from __future__ import annotations

import argparse
import os

from fleet.cli.common import Io, load_fleet, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="agents, services, or `watchdog`")
    parser.add_argument("--fresh", action="store_true", help="begin a new conversation instead of resuming")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until they are ready")
    parser.add_argument("--timeout", type=seconds, default=90.0, metavar="S", help="how long to wait for all")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    from fleet import config
    from fleet.cli import up
    from fleet.cli.ask import pardon
    from fleet.core.desired import Want
    from fleet.core.model import WATCHDOG
    from fleet.world.operator import Operator
    from fleet.world.perform import Done

    fleet, overrides = config.override(load_fleet(args, io), os.environ)
    specs = up.chosen(fleet, args.names)
    operator = Operator(fleet)
    operator.make_room()
    names = [s.name for s in specs]
    sessions = {s.session for s in specs}
    with operator.holding(names, "restart", Want.UP):
        pardon(operator, names)
        panes = [p for s, p in operator.panes().items() if s in sessions]
        stopped = operator.stop(panes)
        for proc in stopped.survivors:
            io.error(f"process {proc.pid} ({proc.name}) is still there", hint=f"ps -fp {proc.pid}")
        if args.fresh:
            for name in names:
                operator.house.store.remove_text(f"{name}.id")
        free = [s for s in specs if s.session not in stopped.blocked]
        results = operator.start(free, "restart")
    results |= {s.name: Done(ok=False, why="its old run is not over") for s in specs if s not in free}
    up.say_overrides(overrides, results, io)
    why = ""
    if WATCHDOG in args.names:
        operator.stop_watchdog()
        why = up.start_watchdog(operator, io, wait=not args.no_wait)
    started = [s for s in specs if results[s.name].ok]
    states = {} if args.no_wait else up.wait_ready(fleet, started, args.timeout)
    code = up.report(fleet, specs, results, states, io, as_json=args.json)
    return 1 if why else code
