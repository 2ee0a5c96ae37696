"""See a whole fleet work: two scripted agents build and review a small program, phase by phase.

No AI, no key, no network. It runs in a scratch directory on a tmux server of its own, opens `top` (without a
terminal it tells the story in words), and cleans everything up when you leave.
"""

from __future__ import annotations

import argparse
import os
import sys

from fleet import engine
from fleet.cli.common import Fail, Io
from fleet.world.tmux import require_tmux


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How."""
    parser.add_argument("--keep", action="store_true", help="leave the fleet running, and its directory")
    parser.add_argument("--words", action="store_true", help="tell it in words, also on a terminal")


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    from fleet.rooms.demo import NEEDS, touring

    require_tmux()
    missing = [name for name in NEEDS if not os.path.isdir(engine.shipped(f"examples/{name}"))]
    if missing:
        raise Fail(
            f"{engine.shipped('examples')}/{missing[0]} is not there",
            hint="run it from a whole copy of this project",
        )

    def say(text: str) -> None:
        io.print(text)
        io.flush()

    with touring(say, keep=args.keep) as tour:
        say(f"two scripted agents, three phases, in {tour.root}")
        tour.set_out()
        why = tour.up()
        if why:
            raise Fail(f"the demo could not be brought up: {why}", hint="agents.py doctor")
        shown = sys.stdin.isatty() and sys.stdout.isatty() and not args.words
        if shown and tour.watch():
            return 0
        if not tour.narrate(lambda: io.gone):
            raise Fail(
                "the story did not come to its end", hint="agents.py demo --keep, then agents.py events"
            )
    return 0
