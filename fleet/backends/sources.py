"""Structured sources: where each CLI leaves word of what it does, and how to read it.

An adapter is two pure functions. `sources` names the places to look at for one run; `signals` turns what was
read there into dated Reports. Reading itself is the caller's, and so is every judgement. The folder of a CLI
has its adapters in `signals.py`, under the names that a profile lists as `signals`; "screen" is always there
and needs no adapter.

A place is read in one of four ways: a spool is a directory of small files, each consumed once; a file is
read whole whenever it changes; a tail is followed line by line; a page is fetched from a server on the
loopback. A tail whose file is not known yet is searched for: directories are listed newest first and
`claims` says whose a file is by its opening.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from fleet.backends import profiles
from fleet.core.model import Backend
from fleet.core.seen import Report

WORDS = 500  # of a prompt or a message: enough to recognise it
SCREEN = "screen"


class Reach(StrEnum):
    """How a place is read."""

    SPOOL = "spool"  # a directory of small files, each consumed once
    FILE = "file"  # read whole whenever it changes
    TAIL = "tail"  # followed line by line
    SEARCH = "search"  # a directory in which the tail to follow is still to be found
    PAGE = "page"  # fetched over HTTP from the loopback


class Source(NamedTuple):
    """One place to look at."""

    adapter: str
    reach: Reach
    where: str  # a path, or an address
    suffix: str = ""  # in a directory: only names that end so


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one run when its sources are looked up."""

    dir: str
    started: float  # wall
    conversation: str = ""
    signals_dir: str = ""
    processes: tuple[tuple[int, int], ...] = ()  # pid and start of the pane's tree, the agent's own first
    env: Mapping[str, str] = field(default_factory=dict)  # as the CLI was started with
    server: str = ""  # address of its server, if it has one


class Heading(NamedTuple):
    """Under what circumstances some bytes were read."""

    backend: Backend
    facts: Facts
    source: Source
    at: float  # wall: the file's own time for files, now for pages
    zone: str = "UTC"  # the host's


class Mailbox(NamedTuple):
    """How the server of a CLI is given a message."""

    user: str  # goes with the password of the server
    name: Callable[[str, float], str]  # the server's id for a message of ours, first sent at that moment
    # Server, conversation, that id and the text: where to post it, what, and where it can be looked up.
    letter: Callable[[str, str, str, str], tuple[str, bytes, str]]


class Adapter(NamedTuple):
    """One structured source."""

    sources: Callable[[Backend, Facts], tuple[Source, ...]]
    signals: Callable[[Heading, bytes], list[Report]]
    claims: Callable[[bytes, Facts], str] | None = None
    settings: Callable[[], Mapping[str, object]] | None = None
    notify: Callable[[str], list[str]] | None = None
    mailbox: Mailbox | None = None  # its server takes messages


def spool(adapter: str, suffix: str) -> Callable[[Backend, Facts], tuple[Source, ...]]:
    """The directory into which the CLI writes for us: files with that suffix."""
    return lambda _backend, facts: (
        (Source(adapter, Reach.SPOOL, facts.signals_dir, suffix),) if facts.signals_dir else ()
    )


def spoken(content: Any) -> str:
    """The words of a content field: a string, or a list of blocks, of which those of a type of text count."""
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block for block in blocks if str(block.get("type")).lower().endswith("text")]
    return "\n".join(str(block.get("text", "")) for block in texts)


@functools.cache
def adapters() -> Mapping[str, Adapter]:
    """Every adapter of every folder, by the name that a profile gives it."""
    modules = (f"{__package__}.{folder}.signals" for folder in profiles.folders("signals.py"))
    found: dict[str, Adapter] = {}
    for module in modules:
        own: Mapping[str, Adapter] = importlib.import_module(module).ADAPTERS
        assert not own.keys() & found.keys(), f"{module}: two folders have a source of one name"
        found |= own
    return found


def _of(backend: Backend) -> list[Adapter]:
    known = adapters()
    return [known[name] for name in backend.signals if name in known]


def reports(backend: Backend) -> bool:
    """Does it say anything beside its screen?"""
    return any(name != SCREEN for name in backend.signals)


def wanted(backend: Backend, facts: Facts) -> list[Source]:
    """Every place to look at for this run, the most trusted first."""
    return [source for adapter in _of(backend) for source in adapter.sources(backend, facts)]


def settings(backend: Backend) -> dict[str, object]:
    """What the settings file generated for one run must hold; empty when nothing is to be set."""
    made: dict[str, object] = {}
    for adapter in _of(backend):
        if adapter.settings:
            made.update(adapter.settings())
    return made


def notify(backend: Backend, signals_dir: str) -> str:
    """The program that the CLI is to run after each turn, as a TOML array; empty where there is none."""
    makers = (adapter.notify for adapter in _of(backend))
    words = next((make(signals_dir) for make in makers if make), [])
    # a JSON array of strings is a TOML one, but for a character that only JSON leaves as it is
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f") if words else ""


def mailbox(backend: Backend) -> Mailbox | None:
    """How its server takes messages, if it has one that does."""
    return next((adapter.mailbox for adapter in _of(backend) if adapter.mailbox), None)
