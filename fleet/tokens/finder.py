"""Finding the files that may be an agent's, and saying which there are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.backends.ledger import Transcript
from fleet.backends.readers import Wanted, lines_of, stores
from fleet.reading import Ident
from fleet.tokens.places import describe, mentions, owner

_RACY_NS = 2_000_000_000  # a directory changed this recently may change again within the same time stamp


@dataclass(frozen=True, slots=True)
class Folder:
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
        """Where all projects lie together, a file that is nobody's is opened once and never again."""
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


def files_below(paths: Iterable[str]) -> Iterator[str]:
    """Every transcript file among some files and directories, each once, in a stable order."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for root, folders, names in os.walk(path):
            folders.sort()
            yield from (
                os.path.join(root, name)
                for name in sorted(names)
                if name.endswith((".jsonl", ".json", ".db"))
            )


# --------------------------------------------------------------------------------------------------
# Which transcripts there are, and whose.


def rows_of(wanted: Sequence[Wanted]) -> Iterator[dict[str, Any]]:
    """One row a transcript, newest first, and one for each database that agents use."""
    rows = []
    for path, kind, stat in Finder().files(wanted):
        source = describe(path, kind)
        name = owner(source, wanted, mentions)
        if name:
            rows.append(_row(name, kind, source.session, path, stat))
    for agent in wanted:
        there = filter(os.path.exists, stores([agent]))
        rows += [_row(agent.name, agent.kind, "", path, os.stat(path)) for path in there]
    yield from sorted(rows, key=lambda row: -row["modified"])


def _row(agent: str, kind: str, session: str, path: str, stat: os.stat_result) -> dict[str, Any]:
    return {
        "agent": agent,
        "kind": kind,
        "session": session,
        "size": stat.st_size,
        "modified": stat.st_mtime,
        "path": path,
    }
