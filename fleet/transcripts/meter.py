"""The usage of a fleet's agents, kept up to date at the price of a stat a file.

A Meter owns one Ledger and remembers how far it has read each file and database. `sweep` looks for what
is new; `tally` says whose it is. Everything can be thrown away at any time: a new Meter reads the same
files and arrives at the same figures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fleet.transcripts import claude, codex, opencode
from fleet.transcripts.places import SHARED, Wanted, describe, mentions, owner
from fleet.transcripts.tail import BLOCK, Feed, Ident, Tail, ident_of
from fleet.transcripts.usage import Cells, Ledger, Source, add_cells

_RACY_NS = 2_000_000_000  # a directory changed this recently may change again within the same time stamp


@dataclass(frozen=True, slots=True)
class Tally:
    """Who used what. None: the agent has no transcript, which is not the same as having used nothing."""

    agents: dict[str, Cells | None]
    shared: Cells = field(default_factory=dict)  # of transcripts that several agents could have written


@dataclass(slots=True)
class _Follow:
    tail: Tail
    feed: Feed
    restarted: Callable[[], None] | None
    source: int


@dataclass(slots=True)
class _Folder:
    stamp: int
    files: tuple[tuple[str, int], ...]  # path and inode
    folders: tuple[str, ...]


class Meter:
    """Reads transcripts as they grow."""

    def __init__(self, *, fast: bool = True) -> None:
        self.ledger = Ledger()
        self._decode = _decoder(fast=fast)
        self._buffer = bytearray(BLOCK)
        self._follows: dict[Ident, _Follow] = {}
        self._folders: dict[str, _Folder] = {}
        self._stores: dict[str, opencode.Store] = {}
        self._signed: set[tuple[str, str]] = set()
        self._heads: dict[tuple[str, int], Source] = {}

    def sweep(self, wanted: Sequence[Wanted], budget: int | None = None) -> bool:
        """Read what is new, at most about `budget` bytes of it. True when nothing was left unread."""
        spent = 0
        for path, kind, stat in self._candidates(wanted):
            if budget is not None and spent >= budget:
                return False
            spent += self._read(path, kind, stat)
        for database in dict.fromkeys(
            opencode.database(home) for agent in wanted if agent.kind == opencode.KIND for home in agent.homes
        ):
            self._stores.setdefault(database, opencode.Store(database, self.ledger)).sweep()
        return True

    def read_file(self, path: str, kind: str) -> None:
        """One file by itself, whoever wrote it."""
        try:
            stat = os.stat(path)
        except OSError:
            return
        if kind == opencode.KIND:
            self._stores.setdefault(path, opencode.Store(path, self.ledger)).sweep()
        else:
            self._read(path, kind, stat)

    def tally(self, wanted: Sequence[Wanted]) -> Tally:
        """Whose the figures are, by what is known of sessions and directories now."""
        agents: dict[str, Cells | None] = dict.fromkeys((agent.name for agent in wanted), None)
        shared: Cells = {}
        for source, cells in zip(self.ledger.sources, self.ledger.by_source(), strict=True):
            name = owner(source, wanted, self._mentions)
            if name == SHARED and name not in agents:
                add_cells(shared, cells)
            elif name:
                heap = agents.get(name)
                if heap is None:
                    heap = agents[name] = {}
                add_cells(heap, cells)
        return Tally(agents, shared)

    def _mentions(self, source: Source, signature: str) -> bool:
        """A signature once found stays found; one not yet written may still come."""
        if (source.path, signature) not in self._signed and mentions(source, signature):
            self._signed.add((source.path, signature))
        return (source.path, signature) in self._signed

    def _read(self, path: str, kind: str, stat: os.stat_result) -> int:
        ident = ident_of(stat)
        follow = self._follows.get(ident)
        if follow is None:
            follow = self._follows[ident] = self._follow(path, kind, ident)
        if not follow.tail.changed(stat):
            return 0
        follow.tail.path = path
        source = self.ledger.sources[follow.source]
        if not source.cwd:
            fresh = describe(path, kind)
            source.session, source.cwd = fresh.session, fresh.cwd
        return follow.tail.read(follow.feed, buffer=self._buffer, restarted=follow.restarted)

    def _follow(self, path: str, kind: str, ident: Ident) -> _Follow:
        source = self.ledger.source(describe(path, kind))
        if kind == codex.KIND:
            thread = codex.Thread(self.ledger, source)
            return _Follow(Tail(path, ident), thread.feeder(), thread.restart, source)
        return _Follow(
            Tail(path, ident), claude.feeder(self.ledger, source, ident, self._decode), None, source
        )

    def _candidates(self, wanted: Sequence[Wanted]) -> Iterator[tuple[str, str, os.stat_result]]:
        """Every file that may be an agent's, with its state now."""
        for path, kind in dict.fromkeys(self._paths(wanted)):
            try:
                yield path, kind, os.stat(path)
            except OSError:
                continue

    def _paths(self, wanted: Sequence[Wanted]) -> Iterator[tuple[str, str]]:
        directories = {name for agent in wanted for name in agent.directories}
        sessions = {session for agent in wanted for session in agent.sessions}
        for agent in wanted:
            if agent.kind == claude.KIND:
                for path in self._claude_paths(agent):
                    yield path, claude.KIND
            elif agent.kind == codex.KIND:
                for home in agent.homes:
                    for path, inode in self._walk(os.path.join(home, "sessions"), depth=3):
                        if self._ours(path, inode, directories, sessions):
                            yield path, codex.KIND

    def _ours(self, path: str, inode: int, directories: set[str], sessions: set[str]) -> bool:
        """Codex keeps all projects together; a rollout that is nobody's is opened once and never again."""
        source = self._foreign(path, inode)
        return not source.cwd or source.cwd in directories or source.session in sessions

    def _foreign(self, path: str, inode: int) -> Source:
        known = self._heads.get((path, inode))
        if known is None or not known.cwd:
            known = self._heads[path, inode] = describe(path, codex.KIND)
        return known

    def _claude_paths(self, agent: Wanted) -> Iterator[str]:
        """Files in the folder of the agent's directory, and its sessions wherever else they lie."""
        missing = set(agent.sessions)
        for home in agent.homes:
            projects = os.path.join(home, "projects")
            for folder in dict.fromkeys(claude.slug(directory) for directory in agent.directories):
                for path, _ in self._walk(os.path.join(projects, folder), depth=2):
                    missing.discard(claude.session_of(path))
                    yield path
        for home in agent.homes if missing else ():
            projects = os.path.join(home, "projects")
            for folder in self._list(projects).folders:
                for session in missing:
                    path = os.path.join(folder, f"{session}.jsonl")
                    if os.path.exists(path):
                        yield path
                        yield from (p for p, _ in self._walk(os.path.join(folder, session), depth=1))

    def _walk(self, root: str, depth: int) -> Iterator[tuple[str, int]]:
        """Transcripts below a folder: what is called so, and what was read before it was rotated away."""
        folder = self._list(root)
        yield from folder.files
        if depth:
            for name in folder.folders:
                yield from self._walk(name, depth - 1)

    def _list(self, path: str) -> _Folder:
        """A folder's content, read again only when the folder changed."""
        try:
            stat = os.stat(path)
        except OSError:
            return _Folder(0, (), ())
        known = self._folders.get(path)
        if known is not None and known.stamp == stat.st_mtime_ns:
            return known
        files, folders = [], []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir():
                        folders.append(entry.path)
                    elif entry.name.endswith(".jsonl") or (stat.st_dev, entry.inode()) in self._follows:
                        files.append((entry.path, entry.inode()))
        except OSError:
            return _Folder(0, (), ())
        settled = time.time_ns() - stat.st_mtime_ns > _RACY_NS
        found = _Folder(stat.st_mtime_ns if settled else -1, tuple(sorted(files)), tuple(sorted(folders)))
        self._folders[path] = found
        return found


def _decoder(*, fast: bool) -> claude.Decode:
    if fast:
        try:
            return claude.quick()
        except ImportError:
            pass  # the standard library gives the same figures, more slowly
    return claude.lenient


def files_below(paths: Iterable[str]) -> Iterator[str]:
    """Every transcript file among some files and directories, each once, in a stable order."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for root, folders, names in os.walk(path):
            folders.sort()
            yield from (
                os.path.join(root, name) for name in sorted(names) if name.endswith((".jsonl", ".db"))
            )
