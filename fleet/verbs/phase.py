"""Show or change the current phase.

  phase [show]     index, id, number of phases, and whether the phase is done
  phase next       go to the next phase, whatever its status file and gates say
  phase set N      go to a phase by its number (from 0) or its id

`next` and `set` restart the running loop agents on the new phase, unless --no-restart is given.
They remove a SEQUENCE-COMPLETE that is no longer true.

Example: agents.py phase set p2
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.core.loop.loop_case import LoopCase, LoopMemory, LoopSeen
from fleet.core.loop.phases import find, ids_of, locate, place_at
from fleet.core.words import EventType
from fleet.host.clock import RealClock
from fleet.host.disk import RealDisk
from fleet.store.documents import Store
from fleet.store.position import PhaseBook
from fleet.supervisor.deputy import Deputy
from fleet.supervisor.phase import MARKER, phase_trouble, read_status, watched_tip, write_marker
from fleet.text import escaped, plural
from fleet.times.moment import NEVER, UNNAMED, Moment
from fleet.verbs.arguments import flag, positional
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Fail, Io

if TYPE_CHECKING:
    from fleet.core.loop.loop_case import Place
    from fleet.core.model import Fleet, Loop
    from fleet.ports import Disk
    from fleet.store.position import PhaseEntry
    from fleet.supervisor.operator import Operator

GROUP = "run"


ARGUMENTS = (
    positional("action", "default: show", choices=("show", "next", "set"), nargs="?", default="show"),
    positional("to", "for set: a number from 0, or a phase id", nargs="?", metavar="N"),
    flag("--no-restart", "do not restart the running loop agents"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print or change the phase."""
    fleet = fleets_of(io).running(args, io, trust=True if args.action != "show" else None)
    if fleet.loop is None:
        raise Fail(f"{fleet.config_path} has no [loop], so there are no phases", code=2)
    if args.action == "set" and args.to is None:
        raise Fail(
            "phase set needs a phase: its number from 0, or its id", hint="agents.py phase show", code=2
        )
    if args.action != "set" and args.to is not None:
        raise Fail(f"phase {args.action} takes no phase", hint=f"agents.py phase set {args.to}", code=2)
    facts = show(fleet, fleet.loop) if args.action == "show" else _move(fleet, fleet.loop, args, io)
    if args.json:
        io.json(facts)
    else:
        _print(facts, io)
    return 0


def show(fleet: Fleet, loop: Loop, disk: Disk | None = None) -> dict[str, Any]:
    """The position and what is known about it. Reads only."""
    disk = disk or RealDisk()
    entry = entry_of(fleet, loop, disk)
    seen = LoopSeen(place=entry.place, index=entry.index, trouble=entry.trouble)
    place, said = locate(LoopCase(fleet, loop, LoopMemory(), seen, Moment(NEVER, UNNAMED)))
    complete = place is not None and place.complete
    begun = place or (None if said.held else _first(loop, entry))
    facts: dict[str, Any] = {
        "index": begun.index if begun else entry.index,
        "id": begun.id if begun else "",
        "total": len(loop.phases),
        "phases": [p.id for p in loop.phases],
        "complete": complete,
        "marker": disk.stat(f"{fleet.log_dir}/{MARKER}") is not None,
        "held": said.held,
        "done": complete,
        "status": "",
        "why": said.held,
    }
    if begun is not None and not complete and begun.index < len(loop.phases):
        try:
            view = read_status(disk, loop, loop.phases[begun.index])
        except OSError as error:
            facts["why"] = f"{error.filename}: {error.strerror}"
        else:
            line = view.reading.line if view.reading.why else 0
            why = f"line {line}: {view.reading.why}" if line else view.reading.why
            facts |= {"done": view.reading.done, "status": view.path, "why": why}
    return facts


def _first(loop: Loop, entry: PhaseEntry) -> Place:
    """Where the loop will begin: nothing is on disk yet, or only a bare index."""
    return place_at(loop, min(entry.index or 0, len(loop.phases)), UNNAMED)


def entry_of(fleet: Fleet, loop: Loop, disk: Disk) -> PhaseEntry:
    """What is on disk about the position."""
    store = Store(disk, f"{fleet.log_dir}/state", RealClock().wall, repair=False)
    return PhaseBook(store, contextlib.nullcontext, loop.state_file).read()


def _move(fleet: Fleet, loop: Loop, args: argparse.Namespace, io: Io) -> dict[str, Any]:
    operator = fleets_of(io).operator(fleet)
    index = _target(operator, loop, args)
    why = phase_trouble(operator.world.disk, fleet, loop, index)
    if why:
        raise Fail(f"nothing was changed: {why}")
    operator.make_room()
    _write(operator, loop, index, keep=args.no_restart, why=f"phase {args.action}")
    here = ids_of(loop)[index] if index < len(loop.phases) else "the end"
    io.note(f"the loop is at {here} now")
    if not args.no_restart:
        _follow(operator, loop, io, ended=index >= len(loop.phases))
    return show(fleet, loop, operator.world.disk)


def index_of(loop: Loop, word: str) -> int:
    """The phase that a number from 0 or an id names."""
    index, ids = find(loop, word), ids_of(loop)
    if index is None:
        known = f"expected 0 to {len(ids) - 1}, or one of: {', '.join(ids)}"
        raise Fail(f"there is no phase {word!r}; {known}", code=2)
    return index


def _target(operator: Operator, loop: Loop, args: argparse.Namespace) -> int:
    if args.action == "set":
        return index_of(loop, args.to)
    facts = show(operator.fleet, loop, operator.world.disk)
    if facts["held"]:
        raise Fail(f"the next phase is unknown: {facts['held']}")
    if facts["complete"]:
        raise Fail("the sequence is complete: there is no next phase", hint="agents.py phase set ID", code=2)
    return int(facts["index"]) + 1


def _write(operator: Operator, loop: Loop, index: int, *, keep: bool, why: str) -> None:
    world = operator.world
    book = PhaseBook(operator.house.store, world.locks.state, loop.state_file)
    tip = watched_tip(world.disk, loop)  # may take git a moment: the watchdog waits for this lock
    with world.locks.state():
        before = book.read().place
        place = place_at(loop, index, world.clock.wall(), commit=tip, before=before)
        book.set(replace(place, keep_runs=keep, evidence=(("by", why),)))
        if not place.complete:
            world.disk.remove(f"{operator.house.log_dir}/{MARKER}")
    operator.house.events.record(EventType.PHASE_SET, reason=why, phase=place.id, index=index)


def _follow(operator: Operator, loop: Loop, io: Io, *, ended: bool) -> None:
    """Running loop agents go where the loop went: by the watchdog, or here when none runs."""
    if operator.locks.holder() is not None:
        operator.locks.nudge()
        io.note("the watchdog moves the running loop agents")
        return
    loops = [a.name for a in operator.fleet.agents if a.is_loop]
    there = operator.listing()
    live = operator.live(loops, there)
    running = [m for m in operator.fleet.members if m.name in live]
    names = [m.name for m in running]
    called = [] if ended else names

    with operator.lease(names, "phase", lambda d: d.call(called)):
        results = Deputy(operator, running, there).bring_up()
    if ended:
        ids = [p.id for p in loop.phases]
        write_marker(operator.world.disk, operator.house.log_dir, ids, operator.world.clock.wall())
        operator.house.events.record(EventType.SEQUENCE_COMPLETED, reason="phase next", count=len(ids))
        return
    for name, done in results.items():
        io.note(f"{name}: restarted" if done.ok else f"{name}: {done.why}")


def _print(facts: dict[str, Any], io: Io) -> None:
    total = facts["total"]
    if facts["held"]:
        io.paragraph(escaped(f"held: {facts['held']}"))
    elif facts["complete"]:
        io.print(f"complete: {total} of {plural(total, 'phase')}")
    else:
        done = "done" if facts["done"] else f"not done: {facts['why']}"
        place = f"phase {facts['id']} (index {facts['index']}, {facts['index'] + 1} of {total})"
        io.paragraph(escaped(f"{place}: {done}"))
        if facts["status"]:
            io.print(f"status file: {facts['status']}")
    mark = {True: "*", False: " "}
    for index, id_ in enumerate(facts["phases"]):
        here = not facts["complete"] and not facts["held"] and index == facts["index"]
        io.print(f"  {mark[here]} {index} {id_}")
