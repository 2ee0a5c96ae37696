"""The tour: a fleet of scripted agents in a scratch directory, described as it runs, removed when you leave.

Nothing of the user's is touched: an own directory, an own tmux server, no network, no key. However the tour
ends, the fleet is taken down and the directory removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from fleet import engine
from fleet.core.words import EventType
from fleet.extras.captions import caption
from fleet.host.tmux.client import resolve_socket
from fleet.ports import Clock
from fleet.store.eventlog import Bookmark, read_on

EXAMPLE = "builder-adversary"
NEEDS = (EXAMPLE, "calc", "offline")  # what the example refers to lies beside it
FILE = "offline.toml"
PATIENCE_S = 240.0
POLL_S = 0.2
PREFIX = re.compile(r'^session_prefix *= *"[^"]*"', re.MULTILINE)

Say = Callable[[str], None]


class Tour:
    """One scratch directory with one fleet in it."""

    def __init__(self, say: Say, clock: Clock) -> None:
        self._clock = clock
        self._say = say
        self.root = tempfile.mkdtemp(prefix="fleet-demo-")
        self.config = os.path.join(self.root, EXAMPLE, FILE)
        self.prefix = f"demo-{secrets.token_hex(2)}-"

    def set_out(self) -> None:
        """Copy the example, under a name that is free."""
        for name in NEEDS:
            source = engine.shipped(f"examples/{name}")
            unwanted = shutil.ignore_patterns(".offline", "__pycache__")
            shutil.copytree(source, os.path.join(self.root, name), ignore=unwanted)
        with open(self.config, encoding="utf-8") as file:
            text = file.read()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(PREFIX.sub(f'session_prefix = "{self.prefix}"', text))

    def up(self) -> str:
        """Bring it up: "" or why not."""
        done = subprocess.run(
            self.argv("up", "--no-wait"),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()

    def watch(self) -> bool:
        """On the screen; False when that is not to be had here."""
        return subprocess.call(self.argv("top", "--tour")) == 0

    def narrate(self, gone: Callable[[], bool]) -> bool:
        """In words, until the story is over; True when it ended well."""
        path = os.path.join(self.root, EXAMPLE, ".offline", "state", "events.jsonl")
        place, deadline = Bookmark(), self._clock.mono() + PATIENCE_S
        while self._clock.mono() < deadline and not gone():
            records, place = read_on(path, place)
            for record in records:
                if said := caption(record):
                    self._say(f"{time.strftime('%H:%M:%S', time.localtime(record['ts']))}  {said}")
                if record["type"] == EventType.SEQUENCE_COMPLETED:
                    return True
            self._clock.sleep(POLL_S)
        return False

    def clean_up(self) -> bool:
        """Everything down, and the directory gone; True when nothing is left."""
        fine = True
        if os.path.exists(self.config):
            # a session of its own: the Ctrl-C that ends the tour must not end its cleaning up
            done = subprocess.run(
                self.argv("down"), capture_output=True, text=True, check=False, start_new_session=True
            )
            fine = done.returncode == 0
            if not fine:
                self._say((done.stderr or done.stdout).strip())
        if fine:
            with contextlib.suppress(OSError):
                os.unlink(resolve_socket(f"ao-{self.prefix.rstrip('-')}"))  # tmux leaves it when it ends
            shutil.rmtree(self.root, ignore_errors=True)
        return fine and not os.path.exists(self.root)

    def argv(self, *words: str) -> list[str]:
        """A verb on this fleet."""
        return engine.command(*words, "--config", self.config)


@contextlib.contextmanager
def touring(say: Say, clock: Clock, *, keep: bool) -> Iterator[Tour]:
    """A tour that is cleaned up however it ends, also by a signal."""
    tour = Tour(say, clock)
    kept = {signum: signal.signal(signum, _leave) for signum in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield tour
    finally:
        for signum in (signal.SIGINT, *kept):
            signal.signal(signum, signal.SIG_IGN)
        if keep:
            say(f"it goes on in {tour.root}; end it with: {shlex.join(tour.argv('down'))}")
        else:
            say("cleaning up" if tour.clean_up() else f"something is left: {tour.root}")
        for signum, handler in kept.items():
            signal.signal(signum, handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(signum: int, _frame: object) -> None:
    raise SystemExit(128 + signum)
