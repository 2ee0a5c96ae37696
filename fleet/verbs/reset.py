"""Clear restart budget, usage limit and FATAL of agents.

A running watchdog does it at its next tick and treats the agents and services as new. `reset` exits
1 when the watchdog did not tick in time.

Example: agents.py reset builder
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from fleet.core.desired import Desired
from fleet.core.outline import WATCHDOG
from fleet.host.clock import polls
from fleet.supervisor.operator import Operator
from fleet.verbs.arguments import members, session_of, timeout
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Fail, Io

GROUP = "run"

POLL_S = 0.05
NOT_IN_TIME = "not_in_time"


ARGUMENTS = (
    members("agents or services", nargs="+"),
    timeout(15, "for the watchdog's answer"),  # one that looks answers within one look
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Write the wish; where a watchdog runs, wait until it has heeded it."""
    fleets = fleets_of(io)
    fleet = fleets.running(args, io, trust=True)
    for name in args.names:
        session_of(fleet, name)
    if WATCHDOG in args.names:
        raise Fail("the watchdog keeps no tally of itself", hint="agents.py restart watchdog", code=2)
    operator = fleets.operator(fleet)
    operator.make_room()
    names = list(dict.fromkeys(args.names))
    wish = operator.pardon(names)
    late = () if operator.locks.holder() is None else _unheeded(operator, wish, names, args.timeout)
    done = [n for n in names if n not in late]
    why = f"the watchdog did not answer within {args.timeout:.0f} s; it is done when the watchdog looks again"
    if args.json:
        rows = {n: {"outcome": NOT_IN_TIME, "text": why} for n in late}
        io.json({"ok": not late, "reset": done, "refused": rows})
        return 1 if late else 0
    if done:
        io.print(f"reset: {', '.join(done)}")
    for name in late:
        io.error(f"{name} is not reset: {why}", hint="agents.py status")
    return 1 if late else 0


def _unheeded(operator: Operator, wish: Desired, names: Sequence[str], timeout: float) -> tuple[str, ...]:
    """The names that the watchdog did not reset in time."""
    clock, fleet = operator.world.clock, operator.fleet
    sessions = {s.name: s.session for s in fleet.members}
    left = {n for n in names if n in wish.entries and n in sessions}
    for _ in polls(clock, timeout, POLL_S):
        for name in sorted(left):
            if operator.records.agent(name, sessions[name]).resets == wish.entries[name].resets:
                left.discard(name)
        if not left:
            break
    return tuple(n for n in names if n in left)
