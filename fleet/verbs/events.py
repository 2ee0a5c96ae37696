"""Show what the watchdog and verbs decided and did.

Newest last. Shows the last 50, or with --since or --until all of that time; -n N shows the last N
in all cases. If there are earlier ones, their number is printed on stderr. `effect.begun`, which is
recorded before every keystroke and signal, is shown with --json and with --type effect.begun.

WHEN is an age (90m, 2h, 1d), an ISO time, or a moment as people write it: 8am, "yesterday 22:00",
"mon 09:00", "16 nov 8:30 Europe/Berlin". A time without a zone is this host's, one without a day
its last occurrence, and a day alone its first moment.

Example: agents.py events --agent builder --since 2h
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from typing import Any

from fleet.core.words import EventType
from fleet.host.disk import RealDisk
from fleet.store import eventlog
from fleet.store.eventlog import Bookmark, end_of, read_on
from fleet.text import did_you_mean, escaped, width
from fleet.verbs.arguments import count, flag, option, session_of
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.moments import span

GROUP = "look"

LAST = 50


ARGUMENTS = (
    flag("-f --follow", "keep printing new events"),
    option("-n N", "show the last N (default: 50; with --since or --until, all)", type=count),
    option("--agent NAME", "only events of this agent (default: all)", default=""),
    option(
        "--type TYPE", "only this type, or those of a group: agent.died, or agent (default: all)", default=""
    ),
    option("--since WHEN", 'from this time on: 90m, 8am, "yesterday 22:00", an ISO time', default=""),
    option("--until WHEN", "up to this time; not with --follow", default=""),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the events that match, and with --follow those to come."""
    if args.follow and args.until:
        raise Fail("--follow goes on from now and --until ends before: give one of them", code=2)
    _check_type(args.type)
    since, end = span(args.since, args.until, now=io.clock.wall())
    fleet = running_fleet(args, io)
    path = os.path.join(fleet.log_dir, "events.jsonl")
    try:
        os.stat(path)
    except FileNotFoundError:
        if not args.follow:
            raise Fail(f"there are no events yet: {path} does not exist", hint="agents.py up") from None
    named = args.since or args.until
    kept: deque[dict[str, Any]] = deque(maxlen=_most(args.n, every=bool(named)))
    place = end_of(path) if args.follow else Bookmark()
    seen = set()  # written since then, and read all the same
    total = 0
    for record in eventlog.read(RealDisk(), path, since=since):
        if args.follow and record["ts"] >= place.at:
            seen.add(_key(record))
        if _fits(record, args) and (end is None or record["ts"] <= end):
            total += 1
            kept.append(record)
    if not total and not args.follow:
        if args.agent:
            session_of(fleet, args.agent)  # a name that has no event and is not declared is a slip
        io.note("no event fits")
    if kept and total > len(kept):
        io.note(f"{total - len(kept)} earlier; -n N or --since WHEN shows more")
    for record in kept:
        _show(record, io, as_json=args.json)
    if args.follow:
        _follow(path, place, seen, args, io)
    return 0


def _follow(
    path: str, place: Bookmark, seen: set[tuple[object, ...]], args: argparse.Namespace, io: Io
) -> None:
    """Print what is recorded after `place`, but for what was `seen`, until the operator or reader leaves."""
    try:
        while not io.gone:
            io.flush()
            io.clock.sleep(0.3)
            fresh, place = read_on(path, place)
            for record in fresh:
                if _key(record) not in seen and _fits(record, args):
                    _show(record, io, as_json=args.json)
            seen = set()
    except KeyboardInterrupt:
        return


def _check_type(asked: str) -> None:
    if not any(_is_of(kind, asked) for kind in EventType):
        known = [*EventType, *(kind.split(".")[0] for kind in EventType)]
        raise Fail(f"there is no event type {asked!r}; {did_you_mean(asked, known)}", code=2)


def _key(record: dict[str, Any]) -> tuple[object, ...]:
    return record["ts"], record["seq"], record["type"]


def _most(asked: int | None, *, every: bool) -> int | None:
    """How many records are shown, the newest; None for all of them."""
    if asked is not None:
        return min(asked, sys.maxsize)
    return None if every else LAST


def _fits(record: dict[str, Any], args: argparse.Namespace) -> bool:
    kind = str(record.get("type", ""))
    if kind == EventType.EFFECT_BEGUN and not (args.json or args.type):
        return False  # the cause of every keystroke: for programs, and for who asks
    return _is_of(kind, args.type) and (not args.agent or record.get("agent") == args.agent)


def _is_of(kind: str, asked: str) -> bool:
    """Is this type the one that was asked for, or one of its group?"""
    return not asked or kind == asked or kind.startswith(f"{asked.removesuffix('.')}.")


def _show(record: dict[str, Any], io: Io, *, as_json: bool) -> None:
    if as_json:
        io.json(record, indent=None)
        return
    when = time.strftime("%m-%d %H:%M:%S", time.localtime(float(record.get("ts", 0))))
    kind, agent, reason = (escaped(str(record.get(key, ""))) for key in ("type", "agent", "reason"))
    line = f"{when}  {kind:22} {agent:14} {reason}"
    if io.room and width(line) > io.room:
        io.paragraph(f"{when}  {kind} {agent}".rstrip())
        io.paragraph(reason, lead="    ")
    else:
        io.print(line)
