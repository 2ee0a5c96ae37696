"""Stop agents, services and the watchdog, and leave nothing behind.

A bare `down` stops everything that carries this project's stamp, also what the file does not name any
more. `down NAME...` stops just those, and they stay down until somebody brings them up again.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from fleet.cli.common import Io, load_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.core.model import Fleet
    from fleet.world.operator import Operator, Stopped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Names."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="stop just these; `watchdog` is one of them")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    import os

    from fleet.cli.common import session_of
    from fleet.cli.up import refuse_earlier
    from fleet.world.operator import Operator

    fleet = load_fleet(args, io)
    for name in args.names:
        session_of(fleet, name)
    operator = Operator(fleet)
    if not os.path.isdir(os.path.join(fleet.log_dir, "state")):
        if not _runs(operator):
            return _report(_nothing(), io, dog=False, as_json=args.json)
        operator.make_room()  # somebody removed the state under a running fleet
    refuse_earlier(operator)
    if args.names:
        return _some(operator, list(dict.fromkeys(args.names)), io, as_json=args.json)
    return _all(operator, io, as_json=args.json)


def _all(operator: Operator, io: Io, *, as_json: bool) -> int:
    from fleet.core.desired import Want
    from fleet.journal.locks import LockError

    names = everybody(operator.fleet, operator)
    unwritten = ""
    with ExitStack() as stack:
        try:
            stack.enter_context(operator.holding(names, "down", Want.DOWN))
        except (OSError, LockError) as error:  # a disk that takes no word must not keep the agents running
            unwritten = str(error)
        dog = operator.stop_watchdog()
        panes = list(operator.panes().values())
        stopped = operator.stop(panes, runs=operator.known_runs())
        operator.end_server()
    operator.house.events.record("desired.changed", reason="down")
    code = _report(stopped, io, dog=dog, as_json=as_json)
    if unwritten:
        said = f"that the fleet is down could not be recorded: {unwritten}"
        io.error(said, hint="`down` again once it can")
    return 1 if unwritten else code


def _some(operator: Operator, names: Sequence[str], io: Io, *, as_json: bool) -> int:
    from fleet.core.desired import Want
    from fleet.core.model import WATCHDOG

    dog = WATCHDOG in names and operator.stop_watchdog()
    members = [n for n in names if n != WATCHDOG]
    sessions = {s.session for s in operator.fleet.members if s.name in members}
    if not members:
        return _report(_nothing(), io, dog=dog, as_json=as_json)
    with operator.holding(members, "down", Want.DOWN):
        panes = [p for s, p in operator.panes().items() if s in sessions]
        gone = [r.id for s in sessions if (r := operator.records.run(s)) is not None]
        stopped = operator.stop(panes, runs=gone)
    operator.house.events.record("desired.changed", reason=f"down {' '.join(members)}")
    return _report(stopped, io, dog=dog, as_json=as_json)


def _runs(operator: Operator) -> bool:
    """Without a state directory only the sessions themselves can tell."""
    from fleet.world.ports import Unavailable

    try:
        return bool(operator.listing().panes)
    except Unavailable:
        return False


def everybody(fleet: Fleet, operator: Operator) -> list[str]:
    """All names that anybody may want up: the file's, and those on record from earlier files."""
    declared = [s.name for s in fleet.members]
    return list(dict.fromkeys([*declared, *operator.house.desired.load().entries]))


def _nothing() -> Stopped:
    from fleet.world.operator import Stopped

    return Stopped()


def _report(stopped: Stopped, io: Io, *, dog: bool, as_json: bool) -> int:
    fine = not stopped.survivors and not stopped.left
    if as_json:
        io.json(
            {
                "ok": fine,
                "stopped": list(stopped.stopped),
                "watchdog": dog,
                "survivors": [{"pid": p.pid, "name": p.name} for p in stopped.survivors],
                "left": list(stopped.left),
            }
        )
        return 0 if fine else 1
    if not stopped.stopped and not dog and fine:
        io.print("nothing was running")
        return 0
    for session in stopped.stopped:
        io.print(f"stopped {session}")
    if dog:
        io.print("stopped the watchdog")
    for proc in stopped.survivors:
        io.error(
            f"process {proc.pid} ({proc.name}) is still there", hint=f"look at it with: ps -fp {proc.pid}"
        )
    for session in stopped.left:
        io.error(f"session {session} is still there", hint="agents.py down once more")
    return 0 if fine else 1
