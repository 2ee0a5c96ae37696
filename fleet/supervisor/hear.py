"""Hear what the CLIs themselves report: read their sources, let the adapters turn that into dated facts.

Nothing here waits: files are read where they are, and pages are fetched by a thread whose answer is
there at a later look. What one run said is forgotten with the run. A limit is passed on once: what has
been armed from it must not be armed again by the same record. A record that cannot be read costs itself,
and is told once a source.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from fleet.backends.sources import Facts, Heading, Reach, Source, adapters, mailbox, reports, wanted
from fleet.core.heard import Heard, fold
from fleet.core.memory import Limit, Run
from fleet.core.model import Backend, Member
from fleet.core.seen import Proc, Report
from fleet.core.words import EventType
from fleet.ports import Disk
from fleet.store.house import House
from fleet.supervisor.cli_servers import OLD_S, Pages
from fleet.supervisor.world import World
from fleet.times.moment import UNNAMED, Wall

TAIL_CAP = 4 << 20  # of a transcript read at one look; the rest waits for the next
SPOOL_MAX = 200  # files taken from a spool at one look
FILE_CAP = 1 << 20
HEAD_CAP = 16 << 10  # enough of a file's opening to know whose it is
NEWEST = 30  # files of a directory that are asked whose they are
EARLY_S = 5.0  # a CLI may date its first words a little before we wrote down the start
AHEAD_S = 60.0  # what is dated later than this from now is from before the clock was set back

NOTHING = Heard()


@dataclass(slots=True)
class _Ear:
    """What we keep of one run between looks."""

    run: str
    facts: Facts
    conversation: str = ""
    offsets: dict[str, int] = field(default_factory=dict)
    found: str = ""  # the file that a search ended at
    heard: Heard = NOTHING
    told: tuple[float, float | None] = (0.0, None)  # wall: the limit already passed on, and its end
    stats: dict[str, object] = field(default_factory=dict)
    skipping: set[str] = field(default_factory=set)  # files in the middle of a line that is too long
    stuck: set[str] = field(default_factory=set)  # what lies in a spool and cannot be taken away
    told_of: set[str] = field(default_factory=set)  # sources with something unreadable, already on record
    server: str = ""  # of this run alone
    key: str = ""  # of its server
    answered: Wall = UNNAMED  # its server's newest answer


class Ears:
    """One for the fleet."""

    def __init__(self, world: World, house: House, pages: Pages | None) -> None:
        """Without `pages` no server is asked."""
        self._world = world
        self._house = house
        self._pages = pages
        self._ears: dict[str, _Ear] = {}
        self.learned: dict[str, str] = {}  # conversations that became known, until they are put on record

    def hear(self, agent: Member, backend: Backend, run: Run | None, tree: tuple[Proc, ...]) -> Heard:
        """Read what is new, and sum up what is known."""
        if run is None or not reports(backend):
            return NOTHING
        ear = self._ear_of(agent, backend, run)
        facts, conversation = ear.facts, ear.conversation
        processes = tuple((p.pid, p.start) for p in tree) if tree else facts.processes
        if (facts.conversation, facts.processes) != (conversation, processes):
            facts = ear.facts = replace(facts, conversation=conversation, processes=processes)
        new: list[Report] = []
        for source in wanted(backend, facts):
            new += self._listen(agent, ear, backend, facts, source)
        if new:
            self._sum_up(ear, run, new)
            if ear.conversation != run.conversation:
                self.learned[agent.name] = ear.conversation
        return ear.heard

    def _ear_of(self, agent: Member, backend: Backend, run: Run) -> _Ear:
        """What was heard of this run. What an earlier run said is forgotten."""
        ear = self._ears.get(agent.session)
        if ear is not None and ear.run == run.id:
            return ear
        if ear is not None and ear.server and self._pages is not None:
            self._pages.forget(ear.server)
        self.learned.pop(agent.name, None)
        facts = Facts(
            dir=os.path.realpath(agent.dir),
            started=run.started,
            conversation=run.conversation,
            signals_dir=self._house.path(f"signals/{agent.session}"),
            env={**self._world.host.environ, **dict(backend.env), **dict(agent.env)},
            server=run.server,
        )
        ear = self._ears[agent.session] = _Ear(run.id, facts, run.conversation, server=run.server)
        ear.key = server_key(self._world, self._house, agent.session, run, backend)
        return ear

    def _sum_up(self, ear: _Ear, run: Run, new: list[Report]) -> None:
        latest = self._world.clock.wall() + AHEAD_S
        if ear.heard.newest > latest:  # its dates would outweigh every new word
            ear.heard = Heard(conversation=ear.conversation, model=ear.heard.model)
            ear.told = (0.0, None)
        # a resumed conversation's file begins with what earlier runs said
        earliest = run.started - EARLY_S if run.started <= latest else 0.0
        ear.heard = fold(ear.heard, (s for s in new if earliest <= s.at <= latest))
        ear.conversation = ear.heard.conversation or ear.conversation

    def new_limit(self, session: str) -> Limit | None:
        """A limit that was reported since this was last asked; none is passed on twice."""
        ear = self._ears.get(session)
        told = ear.heard.limit if ear is not None else None
        if ear is None or told is None or (told.at, told.until) == ear.told or told.at < ear.told[0]:
            return None
        ear.told = (told.at, told.until)
        return Limit(
            Wall(told.at), Wall(told.until or 0.0), told.text[:200], told.source, told.until is not None
        )

    def has_mailbox(self, session: str) -> bool:
        """Has its server answered just now, and do we know which conversation to write to?"""
        ear = self._ears.get(session)
        if ear is None or not ear.conversation:
            return False
        return abs(self._world.clock.wall() - ear.answered) < OLD_S

    def strangers(self) -> list[str]:
        """Servers of our agents that another user stands in for; nothing is sent to them."""
        faults = sorted(set(self._pages.strangers.values())) if self._pages is not None else []
        return [f"an agent's server is not spoken to: {fault}; its messages are typed" for fault in faults]

    def _listen(
        self, agent: Member, ear: _Ear, backend: Backend, facts: Facts, source: Source
    ) -> list[Report]:
        said: list[Report] = []
        faults: list[str] = []
        try:
            read = _READERS[source.reach](self, ear, facts, source, faults)
        except (FileNotFoundError, NotADirectoryError):
            return []  # it is not there yet: the screen is
        except OSError as error:
            faults.append(error.strerror or str(error))
            read = []
        for at, data in read:
            heading = Heading(backend, facts, source, at, self._world.host.zone or "UTC")
            said += _understood(adapters()[source.adapter].signals, heading, data, faults)
        if faults and source.where not in ear.told_of:
            ear.told_of.add(source.where)
            reason = f"{source.adapter}: {source.where}: {faults[0]}; that is passed over"
            self._house.events.record(EventType.SIGNAL_UNREADABLE, agent=agent.name, reason=reason)
        return said

    # --- four ways to read; what is no record goes to `faults` ----------------------------------------

    def _spool(
        self, ear: _Ear, _facts: Facts, source: Source, faults: list[str]
    ) -> list[tuple[float, bytes]]:
        disk, found = self._world.disk, []
        names = [n for n in disk.names(source.where) if n.endswith(source.suffix) and not n.startswith(".")]
        ear.stuck &= set(names)
        for name in [n for n in names if n not in ear.stuck][:SPOOL_MAX]:
            path = f"{source.where}/{name}"
            try:
                stat = disk.stat(path)
                if stat is not None:
                    found.append((stat.mtime_ns / 1e9, disk.read(path, FILE_CAP)))
            except OSError as error:
                faults.append(f"{name} {error.strerror or error}")
            try:
                disk.remove(path)
            except OSError:
                ear.stuck.add(name)  # a directory, say: the others are not to wait for it
        return sorted(found, key=lambda one: one[0])

    def _file(
        self, ear: _Ear, _facts: Facts, source: Source, _faults: list[str]
    ) -> list[tuple[float, bytes]]:
        stat = self._world.disk.stat(source.where)
        if stat is None or ear.stats.get(source.where) == stat:
            return []
        ear.stats[source.where] = stat
        return [(stat.mtime_ns / 1e9, self._world.disk.read(source.where, FILE_CAP))]

    def _tail(self, ear: _Ear, _facts: Facts, source: Source, faults: list[str]) -> list[tuple[float, bytes]]:
        return _new_lines(self._world.disk, ear, source.where, faults)

    def _search(
        self, ear: _Ear, facts: Facts, source: Source, faults: list[str]
    ) -> list[tuple[float, bytes]]:
        if not ear.found:
            claims = adapters()[source.adapter].claims
            names = [n for n in self._world.disk.names(source.where) if n.endswith(source.suffix)]
            for name in sorted(names, reverse=True)[:NEWEST]:
                path = f"{source.where}/{name}"
                identity = _claimed(claims, self._head(path), facts) if claims is not None else name
                if identity:
                    ear.found, ear.conversation = path, identity
                    break
        if not ear.found.startswith(source.where + "/"):
            return []
        return _new_lines(self._world.disk, ear, ear.found, faults)

    def _head(self, path: str) -> bytes:
        try:
            return self._world.disk.tail(path, 0, HEAD_CAP)[1]
        except OSError:
            return b""

    def _page(
        self, ear: _Ear, _facts: Facts, source: Source, _faults: list[str]
    ) -> list[tuple[float, bytes]]:
        answer = self._pages.ask(source.where, ear.key) if self._pages is not None else None
        if answer is None:
            return []
        ear.answered = Wall(answer[0])
        return [answer]


def server_key(world: World, house: House, session: str, run: Run, backend: Backend) -> str:
    """User and password for a run's server: ours from its file, a user's own from the environment."""
    password = world.host.environ.get(backend.server_key_env, "") if not run.server else ""
    if run.server:
        with suppress(OSError):
            password = world.disk.read(house.path(f"key-{session}")).decode().strip()
    box = mailbox(backend)
    return f"{box.user}:{password}" if box and password else ""


def _new_lines(disk: Disk, ear: _Ear, path: str, faults: list[str]) -> list[tuple[float, bytes]]:
    """Whole lines since the last look; a file that shrank is another one."""
    offset = ear.offsets.get(path, 0)
    info, data = disk.tail(path, offset, TAIL_CAP)
    if info.size < offset:
        offset = 0
        ear.skipping.discard(path)
        info, data = disk.tail(path, offset, TAIL_CAP)
    if info.size == offset:
        return []
    end = data.rfind(b"\n") + 1
    if not end and len(data) == TAIL_CAP:  # no line of a CLI is as long
        ear.skipping.add(path)
        faults.append(f"a line is longer than {TAIL_CAP >> 20} MiB")
        end = len(data)
    ear.offsets[path] = offset + end
    begin = 0
    if path in ear.skipping and end:
        begin = data.find(b"\n") + 1 or end
        if data[:begin].endswith(b"\n"):
            ear.skipping.discard(path)
    return [(info.mtime_ns / 1e9, data[begin:end])] if end > begin else []


def _understood(
    signals: Callable[[Heading, bytes], list[Report]], heading: Heading, data: bytes, faults: list[str]
) -> list[Report]:
    """What it says. Others wrote it: where the whole cannot be understood, each line is taken on its own."""
    try:
        return signals(heading, data)
    except Exception as fault:
        lines = data.split(b"\n")
        if len(lines) == 1:
            faults.append(f"a record that cannot be read ({type(fault).__name__})")
            return []
    return [signal for line in lines for signal in _understood(signals, heading, line, faults)]


def _claimed(claims: Callable[[bytes, Facts], str], head: bytes, facts: Facts) -> str:
    """Whose file that is; empty when its first lines make no sense."""
    try:
        return claims(head, facts)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ""


_READERS = {
    Reach.SPOOL: Ears._spool,  # noqa: SLF001 - a table of its own methods
    Reach.FILE: Ears._file,  # noqa: SLF001
    Reach.TAIL: Ears._tail,  # noqa: SLF001
    Reach.SEARCH: Ears._search,  # noqa: SLF001
    Reach.PAGE: Ears._page,  # noqa: SLF001
}
