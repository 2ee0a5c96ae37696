"""agents.toml, read again whenever its bytes change, and believed only when it is whole.

A file that does not parse is looked at once more a second later (editors truncate before they write)
and otherwise reported once, while the last good one stays in force. One that lost more than half of
its agents, or breaks off in the middle of a table, must stay that way for a minute: the
writer may not be done. What a running fleet cannot follow is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from stat import S_ISLNK
from typing import NamedTuple

from fleet.config import ConfigError
from fleet.core.model import Fleet
from fleet.core.words import EventType
from fleet.ports import FileStat
from fleet.supervisor.world import World

CAP = 256 << 10
SETTLE_S = 1.0
SHRUNK_S = 60.0
LEAST_LOST = 2
# Where a file was cut: not where a table or a comment begins, which is how people shorten one.
_CUT = re.compile(rb"(?<!\n)[^\n]|(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*[^\s#\[]")

Parse = Callable[[str, str], Fleet]


class News(NamedTuple):
    """What reading the file led to. `event` is None when nothing happened."""

    event: EventType | None = None
    reason: str = ""


class Settled:
    """A config that is what it is: for a verb, which has read it and lasts for seconds."""

    problem = ""
    again_in: float | None = None
    stamp: FileStat | None = None

    def __init__(self, fleet: Fleet) -> None:
        self.fleet: Fleet | None = fleet

    def refresh(self, *, force: bool = False) -> News:
        """Nothing new, forced or not."""
        del force
        return News()


class Reloader:
    """Holds the config in force."""

    def __init__(self, world: World, path: str, parse: Parse) -> None:
        self._world = world
        self._path = path
        self._parse = parse
        self._stat: FileStat | None = None
        self._digest = ""
        self.good = b""  # the bytes in force
        self.stamp: FileStat | None = None  # of the file while it holds them
        self._told = ""
        self._suspect: tuple[str, float] = ("", 0.0)  # digest we do not believe yet, since when (mono)
        self.fleet: Fleet | None = None
        self.problem = ""
        self.again_in: float | None = None

    def prime(self, fleet: Fleet, text: str) -> None:
        """Begin with the last good config: the file itself cannot be used, or is not to be followed."""
        self.fleet, self.good = fleet, text.encode()
        self._digest = hashlib.sha256(self.good).hexdigest()[:16]

    def refresh(self, *, force: bool = False) -> News:
        """Read the file if it changed; keep the last good one unless the new one is better."""
        self.again_in = None
        path = self._path
        try:
            stat = self._world.disk.stat(path)
            if stat is not None and S_ISLNK(stat.mode):  # the user may keep the file elsewhere
                path = os.path.realpath(path)
                stat = self._world.disk.stat(path)
            if not force and stat == self._stat and not self._suspect[0] and self.fleet is not None:
                return News()
            self._stat = stat
            if why := self._world.disk.untrusted(self._path) if stat is not None else "":
                return self._reject(f"not read, another user could have written it: {why}")
            raw = self._world.disk.read(path, CAP)
        except OSError as error:
            return self._wait_or_reject("unreadable", f"{self._path}: {error.strerror or error}")
        digest = hashlib.sha256(raw).hexdigest()[:16]
        if digest == self._digest and self.fleet is not None:
            return self._accept_again()
        try:
            fleet = self._parse(raw.decode("utf-8"), self._path)
        except (ConfigError, UnicodeDecodeError) as error:
            lines = error.lines() if isinstance(error, ConfigError) else [f"{self._path}: not UTF-8: {error}"]
            return self._wait_or_reject(digest, "; ".join(lines[:5]))
        return self._weigh(fleet, digest, raw)

    def _weigh(self, fleet: Fleet, digest: str, raw: bytes) -> News:
        old = self.fleet
        if old is not None:
            for key in ("session_prefix", "log_dir", "tmux_socket", "project_id"):
                if getattr(old, key) != getattr(fleet, key):
                    why = f"{key} was changed under a running fleet: `down` with the old file, then `up`"
                    return self._reject(why)
            why = self._shrunk(old, fleet, raw)
            waited = self._world.clock.mono() - self._since(digest) if why else SHRUNK_S
            if waited < SHRUNK_S:
                self.again_in = SHRUNK_S - waited
                return self._tell(EventType.CONFIG_SHRUNK, f"{why}; believed in {SHRUNK_S - waited:.0f} s")
        self.fleet, self._digest, self._suspect = fleet, digest, ("", 0.0)
        self.good, self.stamp = raw, self._stat
        recovered = bool(self.problem)
        self.problem, self._told = "", ""
        return News(
            EventType.CONFIG_RECOVERED if recovered else EventType.CONFIG_LOADED,
            f"{len(fleet.agents)} agents, {digest}",
        )

    def _shrunk(self, old: Fleet, new: Fleet, raw: bytes) -> str:
        """Why this may be half of a file, though it can be read; empty if nothing speaks for it."""
        lost = len({a.name for a in old.agents} - {a.name for a in new.agents})
        if lost >= LEAST_LOST and lost * 2 > len(old.agents):
            return f"{lost} of {len(old.agents)} agents are gone from the file"
        if self.good.startswith(raw) and _CUT.match(self.good, len(raw)):
            return f"the file ends {len(self.good) - len(raw)} bytes before the end it had"
        last = raw[raw.rfind(b"\n[") + 1 :]
        at = self.good.find(last)  # whatever was edited further up
        if at >= 0 and _CUT.match(self.good, at + len(last)):
            return "the file ends in the middle of a table as it was"
        return ""

    def _accept_again(self) -> News:
        self._suspect, self.stamp = ("", 0.0), self._stat
        if not self.problem:
            return News()
        self.problem, self._told = "", ""
        return News(EventType.CONFIG_RECOVERED, "the file is as it was")

    def _since(self, digest: str) -> float:
        if self._suspect[0] != digest:
            self._suspect = (digest, self._world.clock.mono())
        return self._suspect[1]

    def _wait_or_reject(self, digest: str, why: str) -> News:
        waited = self._world.clock.mono() - self._since(digest)
        if waited < SETTLE_S:
            self.again_in = SETTLE_S - waited
            return News()
        self._suspect = ("", 0.0)
        return self._reject(why)

    def _reject(self, why: str) -> News:
        return self._tell(EventType.CONFIG_REJECTED, why)

    def _tell(self, event: EventType, why: str) -> News:
        self.problem = why
        of = self._suspect[0] if event is EventType.CONFIG_SHRUNK else why
        key = f"{event}:{of}"
        if key == self._told:
            return News()
        self._told = key
        return News(event, why)
