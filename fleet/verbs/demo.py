"""Run a demo fleet without any key.

Two scripted agents build and review a small program, phase by phase: no AI, no key, no network. The
demo runs in a temporary directory on a tmux server of its own, opens `top` (without a terminal it
prints what happens), and removes everything when you leave.

Example: agents.py demo --words
"""

from __future__ import annotations

import argparse
import os
import sys

from fleet import engine
from fleet.host.tmux.client import require_tmux
from fleet.verbs.arguments import flag
from fleet.verbs.io import Fail, Io

GROUP = "set up"


ARGUMENTS = (
    flag("--keep", "leave the fleet running and keep its directory"),
    flag("--words", "print what happens instead of opening `top`"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Run the demo until the operator leaves it, then clean up. Fails when it did not reach its end."""
    from fleet.extras.demo import NEEDS, touring

    if args.json:
        raise Fail("demo prints sentences, no JSON", hint="agents.py demo --keep, then events --json", code=2)
    require_tmux()
    missing = [name for name in NEEDS if not os.path.isdir(engine.shipped(f"examples/{name}"))]
    if missing:
        raise Fail(
            f"{engine.shipped('examples')}/{missing[0]} is missing",
            hint="run it from a complete copy of agent-fleet",
        )

    def say(text: str) -> None:
        io.print(text)
        io.flush()

    with touring(say, io.clock, keep=args.keep) as tour:
        say(f"two scripted agents, three phases, in {tour.root}")
        tour.set_out()
        why = tour.up()
        if why:
            raise Fail(f"the demo fleet could not be started: {why}", hint="agents.py doctor")
        shown = sys.stdin.isatty() and sys.stdout.isatty() and not args.words
        if shown and tour.watch():
            return 0
        if not tour.narrate(lambda: io.gone):
            raise Fail(
                "the demo did not reach the end of its phases",
                hint="agents.py demo --keep, then agents.py events",
            )
    return 0
