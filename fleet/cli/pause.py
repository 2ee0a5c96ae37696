"""Keep agents running but leave them alone: no healing, no typing. `unpause` takes it back.

With --freeze their processes are held in place as well; `unpause` lets them run on. Where the system does
not let us hold them, they are paused and the verb says so (exit code 1).

With --until the watchdog takes the pause back by itself, also a freeze: 90m, 8am, "mon 09:00", "tomorrow 7:30
Europe/Berlin" or an ISO time. A time without a zone is this host's, one without a day its next occurrence.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from fleet.cli import up
from fleet.cli.common import Fail, Io
from fleet.cli.desk import desk_of
from fleet.cli.moments import moment
from fleet.core.model import AgentSpec
from fleet.core.outline import WATCHDOG
from fleet.core.words import EventType
from fleet.when import Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.world.operator import Operator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="these; without names all agents that are up"
    )
    parser.add_argument("--until", default="", metavar="WHEN", help="the pause ends then, by itself")
    parser.add_argument("--freeze", action="store_true", help="stop the processes in place as well")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb, both ways."""
    if args.until and args.verb != "pause":
        raise Fail("--until goes with pause", hint="agents.py pause --until WHEN", code=2)
    desk = desk_of(io)
    until = moment("--until", args.until, Asked.END, now=desk.wall()) if args.until else 0.0
    fleet = desk.running(args, io, trust=False)
    operator = desk.operator(fleet)
    operator.make_room()
    if WATCHDOG in args.names:
        raise Fail(f"the watchdog itself cannot be {args.verb}d", hint="agents.py down watchdog", code=2)
    desired = operator.house.desired.load()
    specs = (
        up.chosen(fleet, args.names) if args.names else [a for a in fleet.agents if desired.wants_up(a.name)]
    )
    names = [s.name for s in specs if isinstance(s, AgentSpec) or args.names]
    if args.verb == "pause":
        failed = _pause(operator, names, freeze=args.freeze, until=until)
    else:
        failed = {}
        _unpause(operator, names)
    operator.host.nudge()
    frozen = [n for n in names if n not in failed] if args.verb == "pause" and args.freeze else []
    if args.json:
        ends = {"until": until or None} if args.verb == "pause" else {}
        io.json({"ok": not failed, args.verb: names, "frozen": frozen, "not_frozen": failed, **ends})
        return 1 if failed else 0
    for word, done in (("frozen", frozen), (f"{args.verb}d", [n for n in names if n not in frozen])):
        if done or (word != "frozen" and not names):
            when = f" until {_day(until)}" if until else ""
            io.print(f"{word}{when}: {', '.join(done) or 'nobody'}")
    for name, why in failed.items():
        io.error(f"{name} is not frozen, only paused: {why}")
    return 1 if failed else 0


def _day(wall: float) -> str:
    return time.strftime("%a %Y-%m-%d %H:%M %Z", time.localtime(wall))


def _pause(operator: Operator, names: Sequence[str], *, freeze: bool, until: float) -> dict[str, str]:
    """Name to why it could not be frozen. Who is frozen already stays so."""
    changes = {"paused": True, "until": until, **({"frozen": True} if freeze else {})}
    # intent first: a watchdog that looks in between must not take a frozen agent for a stuck one
    operator.house.desired.update(lambda d: d.set(names, **changes))
    failed = operator.freeze(names) if freeze else {}
    if failed:
        operator.house.desired.update(lambda d: d.set(failed, frozen=False))
    asked = "the operator asked for it" + (f", until {_day(until)}" if until else "")
    facts: dict[str, Any] = {"until": until} if until else {}
    for name in names:
        kind = EventType.AGENT_FROZEN if freeze and name not in failed else EventType.AGENT_PAUSED
        operator.house.events.record(kind, agent=name, reason=failed.get(name, asked), **facts)
    return failed


def _unpause(operator: Operator, names: Sequence[str]) -> None:
    """First they run again, then they are watched again."""
    operator.thaw(names)
    operator.house.desired.update(lambda d: d.set(names, paused=False, frozen=False))
    for name in names:
        operator.house.events.record(EventType.AGENT_UNPAUSED, agent=name, reason="the operator asked for it")
