"""Hear what the CLIs themselves report: read their sources, let the adapters turn that into dated facts.

Nothing here waits: files are read where they are, and pages are fetched by a thread whose answer is
there at a later look. What one run said is forgotten with the run. A limit is passed on once: what has
been armed from it must not be armed again by the same record.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from fleet.backends.adapters import ADAPTERS, wanted
from fleet.backends.facts import Facts, Heading, Reach, Source
from fleet.backends.opencode_letters import USER
from fleet.core.heard import Heard, fold
from fleet.core.memory import Limit, Run
from fleet.core.model import AgentSpec, Backend
from fleet.core.seen import Proc, Signal
from fleet.world.loopback import Ask, ask
from fleet.world.world import House, World

TAIL_CAP = 4 << 20  # of a transcript read at one look; the rest waits for the next
SPOOL_MAX = 200  # files taken from a spool at one look
FILE_CAP = 1 << 20
HEAD_CAP = 16 << 10  # enough of a file's opening to know whose it is
NEWEST = 30  # files of a directory that are asked whose they are
PAGE_S = 1.0  # a page is asked for again after this long
PAGE_TIMEOUT_S = 3.0
PAGE_OLD_S = 10.0  # an answer older than this says nothing any more
EARLY_S = 5.0  # a CLI may date its first words a little before we wrote down the start

NOTHING = Heard()


@dataclass(slots=True)
class _Ear:
    """What we keep of one run between looks."""

    run: str
    processes: tuple[tuple[int, int], ...] = ()
    conversation: str = ""
    offsets: dict[str, int] = field(default_factory=dict)
    found: str = ""  # the file that a search ended at
    heard: Heard = NOTHING
    told: tuple[float, float | None] = (0.0, None)  # wall: the limit already passed on, and its end
    stats: dict[str, object] = field(default_factory=dict)
    key: str = ""  # of its server
    answered: float = 0.0  # wall: its server's newest answer


class Ears:
    """One for the fleet."""

    def __init__(self, world: World, house: House) -> None:
        self._world = world
        self._house = house
        self._ears: dict[str, _Ear] = {}
        self._pages = Pages()
        self.learned: dict[str, str] = {}  # conversations that became known, until somebody notes them

    def hear(self, agent: AgentSpec, backend: Backend, run: Run | None, tree: tuple[Proc, ...]) -> Heard:
        """Read what is new, and sum up what is known."""
        if run is None or not any(name in ADAPTERS for name in backend.signals):
            return NOTHING
        ear = self._ears.get(agent.session)
        if ear is None or ear.run != run.id:
            ear = self._ears[agent.session] = _Ear(run.id, conversation=run.conversation)
            ear.key = server_key(self._world, self._house, agent.session, run, backend.server_key_env)
        if tree:
            ear.processes = tuple((p.pid, p.start) for p in tree)
        facts = Facts(
            dir=os.path.realpath(agent.dir),
            started=run.started,
            conversation=ear.conversation,
            signals_dir=self._house.path(f"signals/{agent.session}"),
            processes=ear.processes,
            env={**self._world.environ, **dict(backend.env), **dict(agent.env)},
            server=run.server,
        )
        new: list[Signal] = []
        for source in wanted(backend, facts):
            new += self._listen(ear, backend, facts, source)
        if new:
            # a resumed conversation's file begins with what earlier runs said
            ear.heard = fold(ear.heard, (s for s in new if s.at >= run.started - EARLY_S))
            ear.conversation = ear.heard.conversation or ear.conversation
            if ear.conversation != run.conversation:
                self.learned[agent.name] = ear.conversation
        return ear.heard

    def new_limit(self, session: str) -> Limit | None:
        """A limit that was reported since this was last asked; none is passed on twice."""
        ear = self._ears.get(session)
        told = ear.heard.limit if ear is not None else None
        if ear is None or told is None or (told.at, told.until) == ear.told or told.at < ear.told[0]:
            return None
        ear.told = (told.at, told.until)
        return Limit(told.at, told.until or 0.0, told.text[:200], told.source, told.until is not None)

    def has_mailbox(self, session: str) -> bool:
        """Has its server answered just now, and do we know which conversation to write to?"""
        ear = self._ears.get(session)
        return ear is not None and bool(ear.conversation) and time.time() - ear.answered < PAGE_OLD_S

    def _listen(self, ear: _Ear, backend: Backend, facts: Facts, source: Source) -> list[Signal]:
        try:
            read = _READERS[source.reach](self, ear, facts, source)
        except OSError:
            return []  # it is not there yet, or not ours to read: the screen is still there
        said: list[Signal] = []
        for at, data in read:
            heading = Heading(backend, facts, source, at, self._world.zone or "UTC")
            said += ADAPTERS[source.adapter].signals(heading, data)
        return said

    # --- four ways to read --------------------------------------------------------------------------

    def _spool(self, _ear: _Ear, _facts: Facts, source: Source) -> list[tuple[float, bytes]]:
        disk, found = self._world.disk, []
        names = [n for n in disk.names(source.where) if n.endswith(source.suffix) and not n.startswith(".")]
        for name in names[:SPOOL_MAX]:
            path = f"{source.where}/{name}"
            stat = disk.stat(path)
            if stat is None:
                continue
            try:
                found.append((stat.mtime_ns / 1e9, disk.read(path, FILE_CAP)))
            finally:
                disk.remove(path)
        return sorted(found, key=lambda one: one[0])

    def _file(self, ear: _Ear, _facts: Facts, source: Source) -> list[tuple[float, bytes]]:
        stat = self._world.disk.stat(source.where)
        if stat is None or ear.stats.get(source.where) == stat:
            return []
        ear.stats[source.where] = stat
        return [(stat.mtime_ns / 1e9, self._world.disk.read(source.where, FILE_CAP))]

    def _tail(self, ear: _Ear, _facts: Facts, source: Source) -> list[tuple[float, bytes]]:
        return _new_lines(ear, source.where)

    def _search(self, ear: _Ear, facts: Facts, source: Source) -> list[tuple[float, bytes]]:
        if not ear.found:
            claims = ADAPTERS[source.adapter].claims
            names = [n for n in self._world.disk.names(source.where) if n.endswith(source.suffix)]
            for name in sorted(names, reverse=True)[:NEWEST]:
                path = f"{source.where}/{name}"
                identity = claims(_head(path), facts) if claims is not None else name
                if identity:
                    ear.found, ear.conversation = path, identity
                    break
        if not ear.found.startswith(source.where + "/"):
            return []
        return _new_lines(ear, ear.found)

    def _page(self, ear: _Ear, _facts: Facts, source: Source) -> list[tuple[float, bytes]]:
        answer = self._pages.ask(source.where, ear.key)
        if answer is None:
            return []
        ear.answered = max(ear.answered, answer[0])
        return [answer]


def server_key(world: World, house: House, session: str, run: Run, variable: str) -> str:
    """User and password for a run's server: ours from its file, a user's own from the environment."""
    password = world.environ.get(variable, "") if not run.server else ""
    if run.server:
        with suppress(OSError):
            password = world.disk.read(house.path(f"key-{session}")).decode().strip()
    return f"{USER}:{password}" if password else ""


def _new_lines(ear: _Ear, path: str) -> list[tuple[float, bytes]]:
    """Whole lines since the last look; a file that shrank is another one. Links are the user's choice."""
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        offset = ear.offsets.get(path, 0)
        if info.st_size < offset:
            offset = 0
        if info.st_size == offset:
            return []
        file.seek(offset)
        data = file.read(TAIL_CAP)
    end = data.rfind(b"\n") + 1
    ear.offsets[path] = offset + end
    return [(info.st_mtime, data[:end])] if end else []


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_CAP)
    except OSError:
        return b""


_READERS = {
    Reach.SPOOL: Ears._spool,  # noqa: SLF001 - a table of its own methods
    Reach.FILE: Ears._file,  # noqa: SLF001
    Reach.TAIL: Ears._tail,  # noqa: SLF001
    Reach.SEARCH: Ears._search,  # noqa: SLF001
    Reach.PAGE: Ears._page,  # noqa: SLF001
}


class Pages:
    """Pages of servers on the loopback, fetched beside the loop: asking never waits."""

    def __init__(self, ask: Ask = ask) -> None:
        self._ask = ask
        self._answers: dict[str, tuple[float, bytes]] = {}
        self._asked: dict[str, float] = {}
        self._busy: set[str] = set()

    def ask(self, address: str, key: str = "") -> tuple[float, bytes] | None:
        """The newest answer, if it is young enough; a new one is on its way."""
        now = time.monotonic()
        if address not in self._busy and now - self._asked.get(address, -1e9) >= PAGE_S:
            self._busy.add(address)
            self._asked[address] = now
            threading.Thread(target=self._fetch, args=(address, key), daemon=True, name="page").start()
        answer = self._answers.get(address)
        return answer if answer is not None and time.time() - answer[0] < PAGE_OLD_S else None

    def _fetch(self, address: str, key: str) -> None:
        try:
            answer = self._ask(address, key, None, PAGE_TIMEOUT_S)
            if answer.json:
                self._answers[address] = (time.time(), answer.body)
            else:
                self._answers.pop(address, None)  # a server that speaks of something else says nothing
        except OSError:
            self._answers.pop(address, None)  # no server, no word
        finally:
            self._busy.discard(address)
