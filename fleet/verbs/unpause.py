"""End the pause or freeze of agents.

The watchdog restarts and messages the agents again. The processes of a frozen agent run on from
where they stopped.

Example: agents.py unpause builder
"""

from __future__ import annotations

import argparse

from fleet.core.words import EventType
from fleet.verbs.arguments import members
from fleet.verbs.io import Io
from fleet.verbs.pause import addressed

GROUP = "run"


ARGUMENTS = (members("agents or services (default: every agent that is up)"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Let them run again, then have them watched again."""
    operator, names = addressed(args, io)
    operator.thaw(names)
    operator.house.desired.update(lambda d: d.set(names, paused=False, frozen=False))
    for name in names:
        operator.house.events.record(EventType.AGENT_UNPAUSED, agent=name, reason="the operator asked for it")
    operator.locks.nudge()
    if args.json:
        io.json({"ok": True, "unpause": names, "frozen": [], "not_frozen": {}})
    else:
        io.print(f"unpaused: {', '.join(names) or 'no agent'}")
    return 0
