"""Stop agents, services or the watchdog and start them again.

A restart does not count against the restart budget. An agent continues its conversation where its
CLI can, and gets its prompt again only if the prompt was edited. A usage limit stays in force.
`restart` does not stop an agent that it could not start again because its loop is held.

Example: agents.py restart builder --fresh
"""

from __future__ import annotations

import argparse

from fleet import config
from fleet.core.desired import Desired, Want
from fleet.core.outline import WATCHDOG
from fleet.supervisor.deputy import Deputy
from fleet.verbs import up
from fleet.verbs.arguments import flag, members
from fleet.verbs.down import say_survivors
from fleet.verbs.ensure import say_of_watchdog, start_watchdog
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Io

GROUP = "run"


ARGUMENTS = (
    members("agents, services or `watchdog`", nargs="+"),
    flag("--fresh", "begin a new conversation"),
    *up.WAITING,
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Stop and start. Exit 1 when an agent is not ready in time."""
    fleets = fleets_of(io)
    declared, text = fleets.declared(args, io)
    fleet, overrides = config.override(declared, fleets.environ)
    specs = up.chosen(fleet, args.names)
    operator = fleets.operator(fleet)
    operator.end_lost_clients()
    there = operator.listing()
    up.refuse_crowd(operator, specs, there)
    if operator.make_room():
        there = operator.listing()
    fleets.keep(declared, text, io.clock.wall())
    names = [s.name for s in specs]
    placeless = operator.without_phase(specs, there)  # what cannot be started is not stopped
    free = [s for s in specs if s.name not in placeless]
    operator.thaw(names)

    def wish(desired: Desired) -> Desired:
        wanted = desired.set(names, want=Want.UP, paused=False, frozen=False)
        return wanted.call(s.name for s in free).pardon(names, window=False, budget=False)

    with operator.lease(names, "restart", wish):
        if args.fresh:
            for spec in free:
                operator.house.store.remove_text(f"{spec.name}.id")
        deputy = Deputy(operator, free, there)
        results = up.with_owners(operator, deputy.bring_up()) | placeless
        say_survivors(deputy.survivors(), io)
    up.say_overrides(overrides, results, io)
    up.say_conversations(fleet, specs, results, io)
    why = ""
    if WATCHDOG in args.names:
        operator.stop_watchdog()
        why = start_watchdog(operator, io, up.first_tick(args))
    else:
        say_of_watchdog(operator, io)
    started = [s for s in specs if results[s.name].ok]
    states = {} if args.no_wait else up.wait_ready(operator, started, args.timeout)
    code = up.report(fleet, specs, results, states, io, as_json=args.json)
    return 1 if why else code
