"""Stop agents, services and the watchdog.

A bare `down` stops every session that carries this project's stamp, also one that the file no
longer names. `down NAME...` stops only the named ones; they stay down until the next `up`. An agent
that was removed or renamed in the file is stopped by its old name. No process of a stopped agent
stays behind.

`down` works without a watchdog, beside one that hangs, and when the file is broken or missing: it
then uses the last good one. If the tmux server does not answer, a bare `down` ends the agents'
processes, and then that server if it belongs to the fleet and nothing else runs in it.

Example: agents.py down reporter
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from fleet.core.desired import Desired, Want
from fleet.core.outline import WATCHDOG
from fleet.core.words import EventType
from fleet.host.tmux.speaker import Silent
from fleet.ports import LockError, Unavailable
from fleet.store.documents import StoreError
from fleet.supervisor.deputy import Deputy, stray
from fleet.supervisor.operator import Ending, Stopped
from fleet.verbs.arguments import members, session_of
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Io
from fleet.verbs.up import refuse_earlier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fleet.core.model import Fleet, Member
    from fleet.core.seen import Listing, Proc
    from fleet.supervisor.operator import Forced, Operator

    Wish = Callable[[Desired], Desired]

GROUP = "run"


ARGUMENTS = (members("agents, services or `watchdog` (default: all, and the watchdog)"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Stop the named ones or all. Exit 1 when a process or session is left."""
    operator = fleets_of(io).operator(fleets_of(io).running(args, io, trust=False))
    operator.end_lost_clients()
    sessions = _sessions(operator, args.names)
    there = None if args.names else _found(operator)
    silent = there is None and not args.names
    if operator.world.disk.stat(operator.house.state_dir) is None:
        if not silent and not _runs(operator):
            return _report(Stopped(), io, dog=False, as_json=args.json)
        operator.make_room()  # the state was removed under a running fleet
    if not silent:
        refuse_earlier(operator)
    if args.names:
        return _some(operator, sessions, io, as_json=args.json)
    return _all(operator, there, io, as_json=args.json)


def _found(operator: Operator) -> Listing | None:
    """What runs; None when there is a tmux server that does not answer."""
    try:
        return operator.listing()
    except Silent:
        return None


def _sessions(operator: Operator, names: Sequence[str]) -> dict[str, str]:
    """Name to session of those named: declared ones, and strays that still run or are on record."""
    fleet = operator.fleet
    declared = {WATCHDOG, *(s.name for s in fleet.members)}
    found = {name: session_of(fleet, name) for name in names if name in declared}
    names = [name for name in names if name not in found]
    if not names:
        return found
    strays = operator.strays(operator.listing())
    for name in names:
        session = strays.get(name, f"{fleet.session_prefix}{name}")
        ours = name in strays or ("/" not in name and operator.records.run(session) is not None)
        found[name] = session if ours else session_of(fleet, name)
    return found


def _all(operator: Operator, there: Listing | None, io: Io, *, as_json: bool) -> int:
    """`there` None: the tmux server does not answer, so what runs is known by its run ids alone."""
    subjects = [] if there is None else operator.owned(_everything(operator, there), there)
    names = list(dict.fromkeys([*all_names(operator.fleet, operator), *(s.name for s in subjects)]))
    strangers = {} if there is None else operator.foreign(operator.fleet.members, there)
    unwritten = ""

    def wish(desired: Desired) -> Desired:
        return desired.set(names, want=Want.DOWN)

    with ExitStack() as stack:
        try:
            stack.enter_context(operator.lease(names, "down", wish))
        except (OSError, LockError) as error:  # a disk that takes no word must not keep the agents running
            unwritten = str(error)
        dog = operator.end_watchdog() if there is None else operator.stop_watchdog()
        operator.end_lost_clients()
        if unwritten:  # the watchdog may have been the process that held the lock
            unwritten = _written_late(operator, names)
        forced = operator.force() if there is None else None
        if forced is None:
            stopped = _stop(operator, subjects, wish, operator.listing(), on_record=not unwritten)
        else:
            stopped = forced.stopped
            _say_of_server(forced, operator, io)
        if not (stopped.left or stopped.up_again):
            with suppress(OSError, StoreError):
                operator.forget_server()
        if forced is None:
            operator.end_server()
    _say_of_strangers(strangers, io)
    operator.house.events.record(EventType.DESIRED_CHANGED, reason="down")
    code = _report(stopped, io, dog=dog, as_json=as_json, server=forced.ending if forced else None)
    if unwritten:
        said = f"that the fleet is down could not be recorded: {unwritten}"
        io.error(said, hint="`down` again once it can")
    return 1 if unwritten else code


def _stop(
    operator: Operator, subjects: Sequence[Member], wish: Wish, there: Listing, *, on_record: bool = True
) -> Stopped:
    """Stop these; a disk that is full by now costs the record of it, not the stop."""
    if on_record:
        with suppress(OSError):
            return Deputy(operator, subjects, there).take_down()
    return Deputy(operator, subjects, there, wish).take_down()


def _everything(operator: Operator, there: Listing) -> list[Member]:
    """Members, what else bears this project's stamp, and what may be left of earlier ones."""
    strays = operator.remains() | operator.strays(there)
    return [*operator.fleet.members, *(stray(name, session) for name, session in strays.items())]


def _say_of_server(forced: Forced, operator: Operator, io: Io) -> None:
    """What became of a tmux server that does not answer."""
    it = f"the tmux server (process {forced.server})"
    match forced.ending:
        case Ending.ENDED:
            io.warn(f"{it} did not answer, and was ended")
        case Ending.SHARED:
            others = ", ".join(f"process {p.pid} ({p.name})" for p in forced.guests)
            said = f"{it} does not answer, and is left because others run in it: {others}"
            io.error(said, hint=f"kill -9 {forced.server}")
        case Ending.USERS:
            said = "your own tmux server does not answer: our sessions are still in it"
            io.error(said, hint="`down` again once it answers")
        case Ending.UNKNOWN:
            said = f"the tmux server at {operator.server.path} does not answer, and could not be ended"
            io.error(said, hint="find it with: pgrep -af tmux")


def _say_of_strangers(found: Mapping[str, str], io: Io) -> None:
    """Sessions of our names that something else made: they are left, and what they hold is named."""
    for name, owner in found.items():
        io.warn(f"{name}: the session of this name is not ours: {owner}; it is left alone")


def _written_late(operator: Operator, names: Sequence[str]) -> str:
    """Put the intent down after all; "" or why that does not work."""
    try:
        operator.house.desired.update(lambda d: d.set(names, want=Want.DOWN, hold=None))
    except (OSError, LockError) as error:
        return str(error)
    return ""


def _some(operator: Operator, named: dict[str, str], io: Io, *, as_json: bool) -> int:
    dog = WATCHDOG in named and operator.stop_watchdog()
    members = [n for n in named if n != WATCHDOG]
    if not members:
        return _report(Stopped(), io, dog=dog, as_json=as_json)
    fleet = operator.fleet
    subjects = [fleet.member(name) or stray(name, named[name]) for name in members]

    def wish(desired: Desired) -> Desired:
        return desired.set(members, want=Want.DOWN)

    with operator.lease(members, "down", wish):
        there = operator.listing()
        stopped = _stop(operator, operator.owned(subjects, there), wish, there)
    _say_of_strangers(operator.foreign(subjects, there), io)
    operator.house.events.record(EventType.DESIRED_CHANGED, reason=f"down {' '.join(members)}")
    return _report(stopped, io, dog=dog, as_json=as_json)


def _runs(operator: Operator) -> bool:
    """Without a state directory only the sessions themselves can tell."""
    try:
        return bool(operator.listing().panes)
    except Unavailable:
        return False


def all_names(fleet: Fleet, operator: Operator) -> list[str]:
    """All names that may be up: the file's, and those recorded from earlier files."""
    declared = [s.name for s in fleet.members]
    return list(dict.fromkeys([*declared, *operator.house.desired.load().entries]))


def _report(stopped: Stopped, io: Io, *, dog: bool, as_json: bool, server: Ending | None = None) -> int:
    """`server`: what became of a tmux server that did not answer."""
    fine = not stopped.survivors and not stopped.left and server in {None, Ending.ENDED}
    if as_json:
        io.json(
            {
                "ok": fine,
                "stopped": list(stopped.stopped),
                "watchdog": dog,
                "survivors": [{"pid": p.pid, "name": p.name} for p in stopped.survivors],
                "left": list(stopped.left),
                **({"server": str(server)} if server else {}),
                **({"up_again": list(stopped.up_again)} if stopped.up_again else {}),
            }
        )
        return 0 if fine else 1
    for name in stopped.up_again:
        io.warn(f"{name}: another verb wants it up since this `down` began; that wish stands")
    if not stopped.stopped and not dog and fine and server is None:
        io.print("nothing was running")
        return 0
    for session in stopped.stopped:
        io.print(f"stopped {session}")
    if dog:
        io.print("stopped the watchdog")
    say_survivors(stopped.survivors, io)
    for session in stopped.left:
        io.error(f"session {session} is still there", hint="agents.py down once more")
    return 0 if fine else 1


def say_survivors(procs: Iterable[Proc], io: Io) -> None:
    """Processes that no signal has ended."""
    for proc in procs:
        io.error(f"process {proc.pid} ({proc.name}) is still there", hint=f"ps -fp {proc.pid}")
