"""Show the fleet live, with keys for the verbs.

Shows states, the chosen agent's terminal, events and phases. ? lists the keys. `top` acts through
the verbs; leaving it changes nothing. Needs the libraries rich and textual.

Example: agents.py top
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleet import engine
from fleet.host.tmux.server import server_of
from fleet.ports import Clock, Unavailable
from fleet.tokens.places import conversations
from fleet.verbs.common import Fail, Io
from fleet.verbs.fleets import running_fleet
from fleet.verbs.last_view import gather

if TYPE_CHECKING:
    from fleet.core.model import Fleet

GROUP = "look"

FIRST = 100  # events shown at the start
VERB_S = 180.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to show it."""
    parser.add_argument("--tour", action="store_true", help="describe events in sentences")


def run(args: argparse.Namespace, io: Io) -> int:
    """Open the live view. Fails without a terminal."""
    fleet = running_fleet(args, io)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Fail("top needs a terminal: stdin or stdout is not one", hint="agents.py status")
    from fleet.extras.top.app import Top

    Top(RealFloor(fleet, io.clock), io.clock.wall, tour=args.tour).run()
    return 0


class RealFloor:
    """This machine's fleet. Follows edits of the file; one that is not right yet changes nothing."""

    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        from fleet.extras.top.facts import Feed

        self.fleet = fleet
        self._clock = clock
        self._source = Feed(fleet, clock.wall)
        self._server = server_of(fleet)

    def facts(self) -> Mapping[str, Any]:
        self.fleet = self._source.fresh()
        return gather(self.fleet, self._clock)

    def phases(self) -> Sequence[str]:
        return [phase.id for phase in self.fleet.loop.phases] if self.fleet.loop else []

    def events(self) -> Sequence[Mapping[str, Any]]:
        return self._source.events(FIRST)

    def screen(self, session: str) -> str:
        try:
            return self._server.screen(session)
        except Unavailable as fault:
            return str(fault)

    def used(self) -> Mapping[str, tuple[int, float | None]]:
        return self._source.used(conversations(self.fleet))

    def run(self, *words: str, text: str = "") -> tuple[int, str]:
        try:
            done = subprocess.run(
                self._argv(*words),
                input=text,
                capture_output=True,
                text=True,
                check=False,
                timeout=VERB_S,
                env={**os.environ, "NO_COLOR": "1"},
            )
        except subprocess.TimeoutExpired:
            return 1, f"{words[0]} did not end within {VERB_S:.0f} s"
        return done.returncode, (
            done.stdout or done.stderr
        ) if not done.returncode else done.stdout + done.stderr

    def attach(self, name: str) -> int:
        return subprocess.call(self._argv("attach", name))

    def _argv(self, *words: str) -> list[str]:
        return engine.command(*words, "--config", self.fleet.config_path)
