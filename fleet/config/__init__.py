"""agents.toml in, a frozen Fleet out; every error names its file, line and key."""

from __future__ import annotations

from typing import Any

from fleet.config.invocation import override
from fleet.config.problems import ConfigError, Problem
from fleet.config.source import FILE_NAME, find, here, load, parse, text_of
from fleet.core.model import Fleet

__all__ = [
    "FILE_NAME",
    "ConfigError",
    "Problem",
    "explain",
    "facts",
    "find",
    "here",
    "json_schema",
    "load",
    "override",
    "parse",
    "reference",
    "resolved",
    "text_of",
]

# What only `validate` and the documents need is not loaded by every other verb.


def resolved(fleet: Fleet) -> dict[str, Any]:
    """The fleet as a document again, ready for a TOML writer; reading it gives the same fleet."""
    from fleet.config import plain

    return plain.resolved(fleet)


def explain(key: str) -> str:
    """What a key means, its type, default and an example. ConfigError for one that does not exist."""
    from fleet.config import docs

    return docs.explain(key)


def facts(key: str) -> list[dict[str, str]]:
    """The same as rows for a program."""
    from fleet.config import docs

    return docs.facts(key)


def reference() -> str:
    """The text of docs/config.md."""
    from fleet.config import docs

    return docs.reference()


def json_schema() -> dict[str, Any]:
    """The JSON schema of agents.toml, for editors."""
    from fleet.config import docs

    return docs.json_schema()
