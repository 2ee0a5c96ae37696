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
from fleet.text import escaped
from fleet.verbs.common import Fail, Io, count
from fleet.verbs.fleets import running_fleet
from fleet.verbs.moments import span

GROUP = "look"

LAST = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which ones."""
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new events")
    parser.add_argument(
        "-n", type=count, metavar="N", help="show the last N (default: 50; with --since or --until, all)"
    )
    parser.add_argument(
        "--agent", default="", metavar="NAME", help="only events of this agent (default: all)"
    )
    parser.add_argument(
        "--type",
        default="",
        metavar="TYPE",
        help="only this type, or its beginning: agent. or agent.died (default: all)",
    )
    parser.add_argument(
        "--since",
        default="",
        metavar="WHEN",
        help='from this time on: 90m, 8am, "yesterday 22:00", an ISO time',
    )
    parser.add_argument("--until", default="", metavar="WHEN", help="up to this time; not with --follow")


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the events that match, and with --follow those to come."""
    if args.follow and args.until:
        raise Fail("--follow goes on from now and --until ends before: give one of them", code=2)
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
    if kept and total > len(kept):
        io.note(f"{total - len(kept)} earlier; -n N or --since WHEN shows more")
    for record in kept:
        _show(record, io, as_json=args.json)
    if not args.follow:
        return 0
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
        return 0
    return 0


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
    by_type = not args.type or kind == args.type or (args.type.endswith(".") and kind.startswith(args.type))
    return by_type and (not args.agent or record.get("agent") == args.agent)


def _show(record: dict[str, Any], io: Io, *, as_json: bool) -> None:
    if as_json:
        io.json(record, indent=None)
        return
    when = time.strftime("%m-%d %H:%M:%S", time.localtime(float(record.get("ts", 0))))
    io.print(
        escaped(
            f"{when}  {record.get('type', ''):22} {record.get('agent', ''):14} {record.get('reason', '')}"
        )
    )
