"""Everything that was decided and done, and why. Newest last."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from fleet.cli.common import Fail, Io, clean, count, load_fleet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which ones."""
    parser.add_argument("-f", "--follow", action="store_true", help="go on as they happen")
    parser.add_argument("-n", type=count, default=50, metavar="N", help="the last N (default 50)")
    parser.add_argument("--agent", default="", metavar="NAME", help="only of this agent")
    parser.add_argument(
        "--type", default="", metavar="TYPE", help="only of this type, or its beginning: agent. or agent.died"
    )
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="an ISO time, or an age such as 90m, 2h, 1d"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    fleet = load_fleet(args, io)
    path = os.path.join(fleet.log_dir, "events.jsonl")
    since = _since(args.since)
    try:
        os.stat(path)
    except FileNotFoundError:
        if not args.follow:
            raise Fail(f"there are no events yet: {path} does not exist", hint="agents.py up") from None
    from fleet.journal import events
    from fleet.world.files import RealDisk

    kept: list[dict[str, Any]] = []
    for record in events.read(RealDisk(), path, since=since):
        if _fits(record, args):
            kept.append(record)
            if len(kept) > 4 * max(args.n, 1):
                del kept[: -args.n or None]
    for record in kept[-args.n :] if args.n > 0 else []:
        _show(record, io, as_json=args.json)
    if not args.follow:
        return 0
    last = kept[-1]["ts"] if kept else 0.0
    seen = {(r["ts"], r["seq"], r["type"]) for r in kept if r["ts"] == last}
    try:
        while not io.gone:
            io.flush()
            time.sleep(0.3)
            for record in events.read(RealDisk(), path, since=last):
                key = (record["ts"], record["seq"], record["type"])
                if key in seen:
                    continue
                if record["ts"] > last:
                    last, seen = record["ts"], set()
                seen.add(key)
                if _fits(record, args):
                    _show(record, io, as_json=args.json)
    except KeyboardInterrupt:
        return 0
    return 0


def _fits(record: dict[str, Any], args: argparse.Namespace) -> bool:
    kind = str(record.get("type", ""))
    by_type = not args.type or kind == args.type or (args.type.endswith(".") and kind.startswith(args.type))
    return by_type and (not args.agent or record.get("agent") == args.agent)


def _show(record: dict[str, Any], io: Io, *, as_json: bool) -> None:
    if as_json:
        io.json(record, indent=None)
        return
    when = time.strftime("%m-%d %H:%M:%S", time.localtime(float(record.get("ts", 0))))
    io.print(
        clean(f"{when}  {record.get('type', ''):22} {record.get('agent', ''):14} {record.get('reason', '')}")
    )


def _since(word: str) -> float:
    if not word:
        return 0.0
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(word[-1:])
    if unit and word[:-1].replace(".", "", 1).isdecimal():
        return time.time() - float(word[:-1]) * unit
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(word)
    except ValueError:
        raise Fail(f"--since {word!r}: expected an ISO time, or an age such as 90m, 2h, 1d", code=2) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
