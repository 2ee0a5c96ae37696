"""Show the fleet live, with keys for the verbs.

Shows states, the chosen agent's terminal, events and phases. ? lists the keys. `top` acts through
the verbs; leaving it changes nothing. Needs the libraries rich and textual.

Example: agents.py top
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fleet import config, engine
from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.host.tmux.server import server_of
from fleet.ports import Clock, Unavailable
from fleet.reading import mark_of
from fleet.store.documents import StoreError
from fleet.store.eventlog import Bookmark, end_of, read_on
from fleet.supervisor.declaration import attend
from fleet.tokens.files import SHARED
from fleet.tokens.meter import Meter
from fleet.tokens.price import PriceBook
from fleet.tokens.report import by_agent
from fleet.tokens.tokenlog import Record, TokenLog
from fleet.verbs.arguments import flag
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.last_view import gather
from fleet.verbs.tokens import live_record

GROUP = "look"

FIRST = 100  # events shown at the start
VERB_S = 180.0


ARGUMENTS = (flag("--tour", "describe events in sentences"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Open the live view. Fails without a terminal."""
    if args.json:
        raise Fail("top is a screen, not JSON", hint="agents.py status --json", code=2)
    fleet = running_fleet(args, io)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Fail("top needs a terminal: stdin or stdout is not one", hint="agents.py status")
    from fleet.extras.top.app import Top

    Top(RealFleet(fleet, io.clock), io.clock.wall, tour=args.tour).run()
    return 0


class RealFleet:
    """The fleet on this machine. Follows edits of the file; one that is not right yet changes nothing."""

    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        self.fleet = fleet
        self._clock = clock
        self._server = server_of(fleet.ground)
        self._config = mark_of(fleet.config_path)
        self._place: Bookmark | None = None  # how far the events were read
        self._meter = Meter()

    def facts(self) -> Mapping[str, Any]:
        mark = mark_of(self.fleet.config_path)
        if mark != self._config:
            self._config = mark
            with contextlib.suppress(config.ConfigError, OSError):
                self.fleet = attend(self.fleet.config_path).fleet
        return gather(self.fleet, self._clock)

    def phases(self) -> Sequence[str]:
        return [phase.id for phase in self.fleet.loop.phases] if self.fleet.loop else []

    def events(self) -> Sequence[Mapping[str, Any]]:
        path = os.path.join(self.fleet.log_dir, "events.jsonl")
        if self._place is None:
            found, self._place = read_on(path, Bookmark(end_of(path).inode))
            return found[-FIRST:]
        found, self._place = read_on(path, self._place)
        return found

    def screen(self, session: str) -> str:
        try:
            return self._server.screen(session)
        except Unavailable as fault:
            return str(fault)

    def used(self) -> Mapping[str, tuple[int, float | None]]:
        """What is on record, and the phase under way."""
        fleet = self.fleet
        if not fleet.watchdog.log_tokens:
            return {}
        log = TokenLog(fleet.log_dir, RealDisk())
        records = log.records()
        with contextlib.suppress(OSError, StoreError):
            records += live_record(fleet, log, self._clock, self._meter)
        return summed(records, PriceBook(fleet.prices, library=False))

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
        if done.returncode:
            return done.returncode, done.stdout + done.stderr
        return 0, done.stdout or done.stderr

    def attach(self, name: str) -> int:
        return subprocess.call(self._argv("attach", name))

    def _argv(self, *words: str) -> list[str]:
        return engine.command(*words, "--config", self.fleet.config_path)


def summed(records: Sequence[Record], prices: PriceBook) -> dict[str, tuple[int, float | None]]:
    """Tokens and dollars by agent; money is unknown as soon as a part of it is."""
    rows = [row for row in by_agent(records) if row.name != SHARED]
    return {row.name: (row.counts.total, row.cost(prices)) for row in rows if row.counts is not None}
