"""List or test the [[notify]] targets.

`notify test` sends a message to each and prints whether it was delivered. `notify run` is what the
watchdog runs as a child process; with --once it sends what is waiting and ends, for cron and for
`ensure`.

Example: agents.py notify test
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from fleet import bootstrap
from fleet.core.model import NOTICES
from fleet.verbs.arguments import flag, positional
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.ports import Clock

GROUP = "set up"


ARGUMENTS = (
    positional("what", "default: list", choices=("list", "test", "run"), nargs="?", default="list"),
    flag("--once", "with run: send what is waiting, then end"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """List, test or run the targets. Exit 1 when a test message was not delivered."""
    fleet = running_fleet(args, io, trust=True)
    if not fleet.notify:
        if args.what == "run":
            return 0
        raise Fail("agents.toml has no [[notify]]", hint="agents.py validate --explain notify")
    if args.what != "list" and any(target.to == "url" for target in fleet.notify):
        bootstrap.enter(("apprise",), "full", optional=True)
    if args.what == "run":
        from fleet.extras.notify.runner import run as stay

        return stay(fleet, io.clock, once=args.once)
    rows = _tried(fleet, io.clock.wall()) if args.what == "test" else _listed(fleet, io.clock)
    if args.json:
        io.json({"ok": all(r.get("ok", True) for r in rows), "targets": rows})
    elif args.what == "test":
        for row in rows:
            said = "sent" if row["ok"] else f"NOT sent: {row['why']}"
            io.print(f"{row['target']}: {said}")
    else:
        io.table(
            ("target", "on", "quiet", "after", "waiting"),
            [(r["target"], " ".join(r["on"]), r["quiet"], r["after"], r["waiting"]) for r in rows],
        )
    return 0 if all(r.get("ok", True) for r in rows) else 1


def _tried(fleet: Fleet, now: float) -> list[dict[str, Any]]:
    from fleet.extras.notify.notices import Notice
    from fleet.extras.notify.targets import Dispatch, deliver, label

    notice = Notice("test", "test", "", now, "This is a test message of agent-fleet.")
    message = Dispatch(fleet.session_prefix.rstrip("-_"), (notice,))
    rows = []
    for number, target in enumerate(fleet.notify):
        why = deliver(target, message, os.environ, fleet.project_dir)
        rows.append({"target": label(number, target), "ok": not why, "why": why})
    return rows


def _listed(fleet: Fleet, clock: Clock) -> list[dict[str, Any]]:
    from fleet.extras.notify.runner import notifier
    from fleet.extras.notify.targets import label

    queue = notifier(fleet, clock, look_only=True)
    keys = {number: key for key, (number, _) in queue.targets().items()}
    return [
        {
            "target": label(number, target),
            "on": list(target.on) or [kind for kind, needs_person in NOTICES.items() if needs_person],
            "quiet": target.quiet,
            "after": target.after or fleet.watchdog.notify_after,
            "waiting": sum(w.target == keys.get(number) for w in queue.memory.queue),
        }
        for number, target in enumerate(fleet.notify)
    ]
