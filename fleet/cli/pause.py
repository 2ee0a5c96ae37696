"""Keep agents running but leave them alone: no healing, no typing. `unpause` takes it back.

With --freeze their processes are stopped in place; `unpause` lets them run on.
"""

from __future__ import annotations

import argparse
import signal

from fleet.cli.common import Io, load_fleet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="these; without names all agents that are up"
    )
    parser.add_argument("--freeze", action="store_true", help="stop the processes in place as well")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb, both ways."""
    from fleet.cli import up
    from fleet.core.model import AgentSpec
    from fleet.world.operator import Operator
    from fleet.world.waker import nudge

    fleet = load_fleet(args, io)
    operator = Operator(fleet)
    operator.make_room()
    desired = operator.house.desired.load()
    specs = (
        up.chosen(fleet, args.names) if args.names else [a for a in fleet.agents if desired.wants_up(a.name)]
    )
    names = [s.name for s in specs if isinstance(s, AgentSpec) or args.names]
    pausing = args.verb == "pause"
    panes = operator.panes()
    targets = {s.name: panes[s.session] for s in specs if s.session in panes and not panes[s.session].dead}
    freeze = pausing and args.freeze
    thaw = [n for n in names if not pausing and n in desired.entries and desired.entries[n].frozen]
    # intent first: a watchdog that looks in between must not take a frozen agent for a stuck one
    operator.house.desired.update(
        lambda d: d.set(names, paused=pausing, frozen=freeze) if pausing else d.set(names, paused=False)
    )
    for name in names if freeze else thaw:
        pane = targets.get(name)
        if pane is not None:
            members = operator.table.members(pane.ref.pid, pane.ref.run)
            operator.table.signal(members, signal.SIGSTOP if freeze else signal.SIGCONT)
    if thaw:
        operator.house.desired.update(lambda d: d.set(thaw, frozen=False))
    kind = ("agent.frozen" if freeze else "agent.paused") if pausing else "agent.unpaused"
    for name in names:
        operator.house.events.record(kind, agent=name, reason="the operator asked for it")
    nudge(operator.house.state_dir)
    if args.json:
        io.json({"ok": True, args.verb: names, "frozen": freeze})
    else:
        io.print(f"{'frozen' if freeze else args.verb + 'd'}: {', '.join(names) or 'nobody'}")
    return 0
