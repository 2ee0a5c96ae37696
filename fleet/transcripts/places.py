"""Which file is whose: telling formats apart, finding an agent's transcripts, saying who owns each.

An agent owns a transcript when it bears a session id that we chose or learnt; failing that, when it was
started in the agent's directory. Where several agents share a directory the `log_signature` of one of
them must stand at the head of the transcript; a transcript nobody can claim alone is counted once, as
shared.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleet import regular
from fleet.transcripts import claude, codex, opencode
from fleet.transcripts.usage import Transcript

if TYPE_CHECKING:  # reading a bare transcript needs no word of the config
    from fleet.core.model import Fleet

HEAD_BYTES = 1 << 18  # a kickoff stands at the head; nothing further in is looked at to say whose a file is
_GLANCE = 1 << 14  # mostly this much tells
SHARED = "(shared)"  # cannot be the name of an agent
EXPORT = "opencode-export"
MESSAGE = "opencode-message"  # one message of the store of older versions, a file each

_HOMES: Mapping[str, Callable[[Mapping[str, str]], tuple[str, ...]]] = {
    claude.KIND: claude.homes,
    codex.KIND: codex.homes,
    opencode.KIND: opencode.homes,
}
_HEADS = {claude.KIND: claude.head, codex.KIND: codex.head}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One agent whose transcripts are asked for. A kind without a reader is allowed and finds nothing."""

    name: str
    kind: str
    directory: str
    signature: str = ""
    sessions: frozenset[str] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict)  # the environment its CLI is started with

    @property
    def homes(self) -> tuple[str, ...]:
        finder = _HOMES.get(self.kind)
        return finder(self.env) if finder else ()

    @property
    def directories(self) -> tuple[str, ...]:
        """As declared, and as the kernel will say it is called."""
        real = os.path.realpath(self.directory)
        return (self.directory,) if real == self.directory else (self.directory, real)


def head_bytes(path: str, size: int = HEAD_BYTES) -> bytes:
    """The opening of a file; nothing when it cannot be read. A pipe in a file's place is never waited for."""
    try:
        return regular.read(path, size)
    except OSError:
        return b""


def objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects among some lines; everything else is passed over."""
    for line in io.BytesIO(raw):  # a line at a time: mostly the first one tells all
        try:
            data = json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"), strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield data


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
    if raw.startswith(b"SQLite format 3\x00"):
        return opencode.KIND
    for line in objects(raw):
        if "payload" in line and "type" in line:
            return codex.KIND
        if "messages" in line and "info" in line:
            return EXPORT
        if "sessionID" in line and "role" in line:
            return MESSAGE
        if "sessionId" in line or "message" in line or line.get("type") == "summary":
            return claude.KIND
    return ""


def _sniff_long(raw: bytes) -> str:
    """No whole line within the head: a pretty-printed document, or a first line that is huge."""
    if raw.lstrip()[:1] != b"{":
        return ""
    if b'"messages"' in raw and b'"info"' in raw and b'"projectID"' in raw:
        return EXPORT
    if b'"sessionID"' in raw and b'"role"' in raw and b'"messageID"' not in raw:
        return MESSAGE
    if b'"payload"' in raw:
        return codex.KIND
    return claude.KIND if b'"sessionId"' in raw or b'"message"' in raw else ""


def describe(path: str, kind: str) -> Transcript:
    """A file as a source: the session and directory that its first lines name."""
    session, cwd = _HEADS[kind](objects(head_bytes(path, _GLANCE))) if kind in _HEADS else ("", "")
    if kind in _HEADS and not cwd:
        session, cwd = _HEADS[kind](objects(head_bytes(path)))
    if kind == claude.KIND:
        session = claude.session_of(path)
    return Transcript(path, kind, session, cwd)


def mentions(source: Transcript, signature: str) -> bool:
    """Whether the head of a transcript holds a text, spelt plainly or as JSON spells it."""
    raw = _first_words(source) if source.kind == opencode.KIND else head_bytes(source.path)
    spellings = {signature, json.dumps(signature)[1:-1], json.dumps(signature, ensure_ascii=False)[1:-1]}
    return any(spelling.encode() in raw for spelling in spellings)


def _first_words(source: Transcript) -> bytes:
    import sqlite3

    path, _, session = source.path.rpartition("#")
    query = "select data from part where session_id = ? order by time_created limit 20"
    try:
        with closing(opencode.connect(path)) as connection:
            rows = connection.execute(query, (session,)).fetchall()
    except sqlite3.Error:
        return b""
    return b"\n".join(str(row[0]).encode() for row in rows)


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
    folders = {claude.slug(directory) for directory in agent.directories}
    return source.kind == claude.KIND and not folders.isdisjoint(source.path.split(os.sep))


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
        if agent.kind in _HOMES:
            groups.setdefault((agent.kind, agent.directories[-1], agent.homes), []).append(agent.name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)
