"""The files of transcripts: of which format each is, where an agent's lie, and which agent owns each.

An agent owns a transcript when it bears a session id that we chose or learnt; failing that, when it was
started in the agent's directory. Where several agents share a directory the `log_signature` of one of
them must stand at the head of the transcript; a transcript that none of them can claim alone is counted once,
as shared.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet import reading
from fleet.backends.ledger import Transcript
from fleet.backends.readers import Wanted, formats, lines_of, readers, store_of, stores
from fleet.reading import Ident
from fleet.text import objects

if TYPE_CHECKING:  # reading a bare transcript needs no word of the config
    from fleet.core.model import Fleet

_RACY_NS = 2_000_000_000  # a directory changed this recently may change again within the same time stamp
HEAD_BYTES = 1 << 18  # a kickoff stands at the head; nothing further in is looked at to find the owner
_GLANCE = 1 << 14  # mostly this much tells
_ID_BYTES = 4096
SHARED = "(shared)"  # cannot be the name of an agent


def head_bytes(path: str, size: int = HEAD_BYTES) -> bytes:
    """The opening of a file; nothing when it cannot be read. A pipe in a file's place is never waited for."""
    try:
        return reading.read(path, size)
    except OSError:
        return b""


def sniff(path: str) -> str:
    """The format of a file, by its content; empty when it is none that we can read."""
    raw = head_bytes(path, _GLANCE)
    kind = _told_by(raw)
    if not kind and len(raw) == _GLANCE:
        raw = head_bytes(path)
        kind = _told_by(raw)
    return kind or _sniff_long(raw)


def _told_by(raw: bytes) -> str:
    """What the first line that says something says."""
    known = formats().values()
    for one in known:
        if one.magic and raw.startswith(one.magic):
            return one.name
    for line in objects(raw):
        for one in known:
            if one.is_line and one.is_line(line):
                return one.name
    return ""


def _sniff_long(raw: bytes) -> str:
    """No whole line within the head: a pretty-printed document, or a first line that is huge."""
    if raw.lstrip()[:1] != b"{":
        return ""
    return next((one.name for one in formats().values() if one.is_opening and one.is_opening(raw)), "")


def describe(path: str, kind: str) -> Transcript:
    """A file as a source: the session and directory that its first lines name."""
    lines = lines_of(kind)
    if lines is None:
        return Transcript(path, kind)
    session, cwd = lines.head(objects(head_bytes(path, _GLANCE)))
    if not cwd:
        session, cwd = lines.head(objects(head_bytes(path)))
    if lines.session_of:
        session = lines.session_of(path)
    return Transcript(path, kind, session, cwd)


def mentions(source: Transcript, signature: str) -> bool:
    """Whether the head of a transcript holds a text, spelt plainly or as JSON spells it."""
    store = store_of(source.kind)
    raw = store.opening(source) if store else head_bytes(source.path)
    spellings = {signature, json.dumps(signature)[1:-1], json.dumps(signature, ensure_ascii=False)[1:-1]}
    return any(spelling.encode() in raw for spelling in spellings)


def owner(source: Transcript, wanted: Sequence[Wanted], mentions: Callable[[Transcript, str], bool]) -> str:
    """The agent a transcript belongs to, SHARED, or nothing when it is no agent's."""
    for agent in wanted:
        if agent.kind == source.kind and source.session in agent.sessions:
            return agent.name
    near = [agent for agent in wanted if agent.kind == source.kind and _near(source, agent)]
    if len(near) == 1:
        return near[0].name
    signed = [agent for agent in near if agent.signature and mentions(source, agent.signature)]
    if len(signed) == 1:
        return signed[0].name
    return SHARED if near else ""


def _near(source: Transcript, agent: Wanted) -> bool:
    """Written by a CLI that ran in the agent's directory and kept its files where the agent's does."""
    if not any(source.path.startswith(home + os.sep) for home in agent.homes):
        return False
    if source.cwd:
        return source.cwd in agent.directories
    lines = lines_of(source.kind)
    if lines is None or lines.folder_of is None:
        return False
    folders = set(map(lines.folder_of, agent.directories))
    return not folders.isdisjoint(source.path.split(os.sep))


# --------------------------------------------------------------------------------------------------
# The agents of a fleet.


def conversations(fleet: Fleet, read: Callable[[str, int], bytes] = reading.read) -> dict[str, list[str]]:
    """The conversation each agent is known to be in."""
    found = {}
    for agent in fleet.agents:
        try:
            ident = read(f"{fleet.log_dir}/state/{agent.name}.id", _ID_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if ident:
            found[agent.name] = [ident]
    return found


def wanted_of(
    fleet: Fleet, environ: Mapping[str, str], sessions: Mapping[str, Iterable[str]]
) -> tuple[Wanted, ...]:
    """The agents of a fleet, with the environment their CLIs get and the session ids known for them."""
    found = []
    for agent in fleet.agents:
        backend = fleet.backend_of(agent)
        env = {**environ, **dict(backend.env), **dict(agent.env)}
        known = frozenset(sessions.get(agent.name, ()))
        found.append(Wanted(agent.name, backend.transcript, agent.dir, agent.log_signature, known, env))
    return tuple(found)


def sharing(wanted: Iterable[Wanted]) -> tuple[tuple[str, ...], ...]:
    """Groups of agents whose transcripts lie in one place; each group is told apart by id or signature."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for agent in wanted:
        if agent.kind in readers():
            groups.setdefault((agent.kind, agent.directories[-1], agent.homes), []).append(agent.name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


# --------------------------------------------------------------------------------------------------
# Finding their files.


class Folder(NamedTuple):
    """What a directory held when it was last listed."""

    stamp: int
    files: tuple[tuple[str, int], ...]  # path and inode
    folders: tuple[str, ...]


_EMPTY = Folder(-1, (), ())


class Finder:
    """Lists a directory again only when it changed.

    `known` says which files were read before: they are found under any name, so that a rotated file is
    read to its end.
    """

    def __init__(self, known: Callable[[Ident], bool] = lambda _: False) -> None:
        self._known = known
        self._folders: dict[str, Folder] = {}
        self._heads: dict[tuple[str, int], Transcript] = {}

    def files(self, wanted: Sequence[Wanted]) -> Iterator[tuple[str, str, os.stat_result]]:
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
            lines = lines_of(agent.kind)
            if lines is None:
                continue
            for path, inode in lines.paths(agent, self):
                if not lines.mixed or self._ours(path, inode, agent.kind, directories, sessions):
                    yield path, agent.kind

    def _ours(self, path: str, inode: int, kind: str, directories: set[str], sessions: set[str]) -> bool:
        """Where all projects lie together, a file of no agent is opened once and never again."""
        source = self._heads.get((path, inode))
        if source is None or not source.cwd:
            source = self._heads[path, inode] = describe(path, kind)
        return not source.cwd or source.cwd in directories or source.session in sessions

    def walk(self, root: str, depth: int) -> Iterator[tuple[str, int]]:
        """Transcripts below a folder: what is called so, and what was read before it was rotated away."""
        folder = self._list(root)
        yield from folder.files
        if depth:
            for name in folder.folders:
                yield from self.walk(name, depth - 1)

    def folders(self, root: str) -> tuple[str, ...]:
        """The folders in a folder."""
        return self._list(root).folders

    def _list(self, path: str) -> Folder:
        """A folder's content, read again only when the folder changed."""
        try:
            state = os.stat(path)
        except OSError:
            return _EMPTY
        known = self._folders.get(path)
        if known is not None and known.stamp == state.st_mtime_ns:
            return known
        files, folders = [], []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir():
                        folders.append(entry.path)
                    elif entry.name.endswith(".jsonl") or self._known((state.st_dev, entry.inode())):
                        files.append((entry.path, entry.inode()))
        except OSError:
            return _EMPTY
        settled = time.time_ns() - state.st_mtime_ns > _RACY_NS
        found = Folder(state.st_mtime_ns if settled else -1, tuple(sorted(files)), tuple(sorted(folders)))
        self._folders[path] = found
        return found


def rows_of(wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    """One row per transcript of these agents, newest first, and one per database that they use."""

    def row(agent: str, kind: str, session: str, path: str, stat: os.stat_result) -> dict[str, Any]:
        facts = {"agent": agent, "kind": kind, "session": session}
        return {**facts, "size": stat.st_size, "modified": stat.st_mtime, "path": path}

    rows = []
    for path, kind, stat in Finder().files(wanted):
        source = describe(path, kind)
        if name := owner(source, wanted, mentions):
            rows.append(row(name, kind, source.session, path, stat))
    for agent in wanted:
        there = filter(os.path.exists, stores([agent]))
        rows += [row(agent.name, agent.kind, "", path, os.stat(path)) for path in there]
    return sorted(rows, key=lambda row: -row["modified"])
