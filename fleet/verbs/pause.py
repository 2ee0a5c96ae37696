"""Keep agents running but do not restart or message them.

`unpause` ends a pause. With --freeze the verb also stops the agents' processes in place. Where the
system does not allow that, the agents are paused only, and `pause` says so and exits 1.

With --until the watchdog ends the pause, and a freeze, at that time: 90m, 8am, "mon 09:00",
"tomorrow 7:30 Europe/Berlin" or an ISO time. A time without a zone is this host's, one without a
day its next occurrence.

Example: agents.py pause builder --until 8am
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from fleet.core.outline import WATCHDOG
from fleet.core.words import EventType
from fleet.times.when import Asked
from fleet.verbs import up
from fleet.verbs.arguments import flag, members, option
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Fail, Io
from fleet.verbs.moments import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.supervisor.operator import Operator

GROUP = "run"


ARGUMENTS = (
    members("agents or services (default: every agent that is up)"),
    option("--until WHEN", "when the watchdog ends the pause (default: never)", default=""),
    flag("--freeze", "also stop their processes in place"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Pause. Exit 1 when a process could not be frozen."""
    until = moment("--until", args.until, Asked.END, now=io.clock.wall()) if args.until else 0.0
    operator, names = addressed(args, io)
    failed = _pause(operator, names, freeze=args.freeze, until=until)
    operator.locks.nudge()
    frozen = [n for n in names if n not in failed] if args.freeze else []
    if args.json:
        facts = {"pause": names, "frozen": frozen, "not_frozen": failed, "until": until or None}
        io.json({"ok": not failed, **facts})
        return 1 if failed else 0
    when = f" until {_day(until)}" if until else ""
    paused = [n for n in names if n not in frozen]
    if frozen:
        io.print(f"frozen{when}: {', '.join(frozen)}")
    if paused or not names:
        io.print(f"paused{when}: {', '.join(paused) or 'no agent'}")
    for name, why in failed.items():
        io.error(f"{name} is not frozen, only paused: {why}")
    return 1 if failed else 0


def addressed(args: argparse.Namespace, io: Io) -> tuple[Operator, list[str]]:
    """The operator, and the names: those given, or every agent that is up."""
    fleets = fleets_of(io)
    fleet = fleets.running(args, io, trust=False)
    operator = fleets.operator(fleet)
    operator.make_room()
    if WATCHDOG in args.names:
        raise Fail(f"the watchdog itself cannot be {args.verb}d", hint="agents.py down watchdog", code=2)
    if args.names:
        return operator, [s.name for s in up.chosen(fleet, args.names)]
    desired = operator.house.desired.load()
    return operator, [a.name for a in fleet.agents if desired.wants_up(a.name)]


def _day(wall: float) -> str:
    return time.strftime("%a %Y-%m-%d %H:%M %Z", time.localtime(wall))


def _pause(operator: Operator, names: Sequence[str], *, freeze: bool, until: float) -> dict[str, str]:
    """Name to why it could not be frozen. A frozen agent stays frozen."""
    changes = {"paused": True, "until": until, **({"frozen": True} if freeze else {})}
    # intent first: a watchdog that looks in between must not take a frozen agent for a stuck one
    operator.house.desired.update(lambda d: d.set(names, **changes))
    failed = operator.freeze(names) if freeze else {}
    if failed:
        operator.thaw(list(failed))  # what an earlier freeze, or half of this one, holds in place
        operator.house.desired.update(lambda d: d.set(failed, frozen=False))
    asked = "the operator asked for it" + (f", until {_day(until)}" if until else "")
    facts: dict[str, Any] = {"until": until} if until else {}
    for name in names:
        kind = EventType.AGENT_FROZEN if freeze and name not in failed else EventType.AGENT_PAUSED
        operator.house.events.record(kind, agent=name, reason=failed.get(name, asked), **facts)
    return failed
