"""Show the profile of a backend.

`backend show NAME` prints the shipped profile with the project's own keys over it, as TOML that
could stand in agents.toml. `backend list` prints the names.

Example: agents.py backend show claude
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import Any

from fleet import bootstrap
from fleet.backends import profiles
from fleet.core.model import Backend
from fleet.verbs.arguments import positional
from fleet.verbs.io import Fail, Io
from fleet.verbs.screen import backend_named

GROUP = "set up"

PAIRS = ("env", "screen")


ARGUMENTS = (
    positional("what", "one profile, or the names of all", choices=("show", "list")),
    positional("name", "the backend to show", nargs="?"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print one profile, or the names of all. Exit 2 for a name that is unknown."""
    if args.what == "list":
        rows = [(name, profiles.load(name).version) for name in profiles.names()]
        if args.json:
            io.json([{"name": name, "proved_against": version} for name, version in rows])
        else:
            io.table(("backend", "proved against"), rows)
        return 0
    if not args.name:
        raise Fail("backend show needs a name", hint="agents.py backend show claude", code=2)
    backend = backend_named(args, io, args.name)
    table = document(backend)
    if args.json:
        io.json(table)
    else:
        bootstrap.enter(["tomli_w"])
        io.write(as_toml(backend.name, table))
    return 0


def document(backend: Backend) -> dict[str, Any]:
    """The keys that say something, in the order in which they are declared."""
    table: dict[str, Any] = {}
    for field in fields(backend):
        value = getattr(backend, field.name)
        if field.name == "name" or value in {"", ()}:
            continue
        if field.name in PAIRS:
            value = dict(value)
        elif field.name in {"patterns", "dialogs", "texts"}:
            value = [{key: text for key, text in asdict(row).items() if text} for row in value]
        elif isinstance(value, tuple):
            value = list(value)
        table[field.name] = value
    return table


def as_toml(name: str, table: dict[str, Any]) -> str:
    """As it would stand in agents.toml."""
    import tomli_w

    return tomli_w.dumps({"backend": {name: table}})
