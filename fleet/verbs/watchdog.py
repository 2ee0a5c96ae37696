"""Run the watchdog in this terminal.

`up` runs it in a tmux session of its own. It observes and acts until it is stopped.

Example: agents.py watchdog --observe --once
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from fleet.host import descriptors
from fleet.host.locks import WatchdogLock
from fleet.ports import Held
from fleet.supervisor.declaration import attend
from fleet.supervisor.deputy import observer
from fleet.supervisor.run import Watch
from fleet.verbs.arguments import flag
from fleet.verbs.fleets import config_path, require_trust
from fleet.verbs.io import Fail, Io

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.supervisor.declaration import Standing

GROUP = "inner"


ARGUMENTS = (
    flag("--observe", "observe and decide, print the plan, act on nothing"),
    flag("--once", "one tick, then end"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Tick until stopped; with --observe only print the plan."""
    for name in [n for n in os.environ if n.startswith("AGENT_")]:
        del os.environ[name]  # one-off overrides are for one invocation, never for what lives on
    path = os.path.realpath(config_path(args, io))
    standing = _first(path, io)
    fleet = standing.fleet
    if args.observe:
        return _observe(fleet, io, once=args.once, as_json=args.json)
    descriptors.widen()
    state_dir = os.path.join(fleet.log_dir, "state")
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    lock = WatchdogLock(state_dir, io.clock)
    try:
        lock.acquire()
    except Held as held:
        raise Fail(f"a watchdog is at work already: {held}", hint="agents.py status") from None
    try:
        watch = Watch(standing, path, lock, io.clock, io.error)
        if why := watch.open():
            raise Fail(why, code=2)
        watch.run(once=args.once)
        return 0
    finally:
        lock.release()


def _first(path: str, io: Io) -> Standing:
    """The config in force. One that was killed goes on as it was, whatever the file is by now."""
    standing = attend(path)
    for warning in standing.fleet.warnings:
        io.warn(warning)
    require_trust(standing.fleet)
    if standing.cause:
        io.warn(standing.sentence)
    return standing


def _observe(fleet: Fleet, io: Io, *, once: bool, as_json: bool) -> int:
    dog = observer(fleet)
    while True:
        dog.glance()
        plan = [
            {"agent": name, "state": str(d.shown.detail), "rule": d.shown.rule, "reason": d.shown.reason,
             "would": " ".join(type(effect).__name__ for effect in d.effects)}
            for name, d in dog.mind.decided.items()
        ]  # fmt: skip
        if as_json:
            io.json({"tick": dog.count, "plan": plan})
        else:
            io.table(
                ("agent", "state", "would", "rule", "reason"),
                [(p["agent"], p["state"], p["would"], p["rule"], p["reason"]) for p in plan],
            )
        io.flush()
        if once or io.gone:
            return 0
        try:
            io.clock.sleep(fleet.watchdog.signal_interval)
        except KeyboardInterrupt:
            return 0
        sys.stdout.flush()
