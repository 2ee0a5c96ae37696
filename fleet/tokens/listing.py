"""Which transcripts there are, and whose."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.backends.readers import Wanted, stores
from fleet.tokens.finder import Finder
from fleet.tokens.places import describe, mentions, owner


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
