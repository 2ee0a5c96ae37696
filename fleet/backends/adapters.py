"""Structured sources: where each CLI leaves word of what it does, and how to read it.

An adapter is two pure functions. `sources` names the places to look at for one run; `signals` turns what was
read there into dated Signals. Reading itself is the caller's, and so is every judgement. The names are those
a profile lists under `signals`; "screen" is always there and needs no adapter.

A place is read in one of four ways: a spool is a directory of small files, each consumed once; a file is
read whole whenever it changes; a tail is followed line by line; a page is fetched from a server on the
loopback. A tail whose file is not known yet is searched for: directories are listed newest first and
`claims` says whose a file is by its opening.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleet.backends import claude_signals, codex_signals, opencode_signals
from fleet.backends.facts import Facts, Heading, Reach, Source
from fleet.core.model import Backend
from fleet.core.seen import Report

__all__ = ["ADAPTERS", "Adapter", "Facts", "Heading", "Reach", "Source", "notify", "settings", "wanted"]


class Name(StrEnum):
    """The sources a profile may list."""

    HOOKS = "hooks"
    REGISTRY = "registry"
    TRANSCRIPT = "transcript"
    ROLLOUT = "rollout"
    NOTIFY = "notify"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Adapter:
    """One structured source."""

    sources: Callable[[Backend, Facts], tuple[Source, ...]]
    signals: Callable[[Heading, bytes], list[Report]]
    claims: Callable[[bytes, Facts], str] | None = None
    settings: Callable[[], Mapping[str, object]] | None = None
    notify: Callable[[str], list[str]] | None = None


ADAPTERS: dict[str, Adapter] = {
    Name.HOOKS: Adapter(
        claude_signals.spool, claude_signals.from_hook, settings=claude_signals.hook_settings
    ),
    Name.REGISTRY: Adapter(claude_signals.registry, claude_signals.from_registry),
    Name.TRANSCRIPT: Adapter(claude_signals.transcript, claude_signals.from_transcript),
    Name.ROLLOUT: Adapter(codex_signals.rollout, codex_signals.from_rollout, claims=codex_signals.claims),
    Name.NOTIFY: Adapter(codex_signals.spool, codex_signals.from_notify, notify=codex_signals.notify),
    Name.SERVER: Adapter(opencode_signals.pages, opencode_signals.from_page),
}


def wanted(backend: Backend, facts: Facts) -> list[Source]:
    """Every place to look at for this run, the most trusted first."""
    known = [(name, ADAPTERS[name]) for name in backend.signals if name in ADAPTERS]
    return [source for _, adapter in known for source in adapter.sources(backend, facts)]


def settings(backend: Backend) -> dict[str, object]:
    """What the settings file generated for one run must hold; empty when nothing is to be set."""
    made: dict[str, object] = {}
    for name in backend.signals:
        adapter = ADAPTERS.get(name)
        if adapter and adapter.settings:
            made.update(adapter.settings())
    return made


def notify(backend: Backend, signals_dir: str) -> str:
    """The program that the CLI is to run after each turn, as a TOML array; empty where there is none."""
    makers = (adapter.notify for name in backend.signals if (adapter := ADAPTERS.get(name)))
    words = next((make(signals_dir) for make in makers if make), [])
    # a JSON array of strings is a TOML one, but for a character that only JSON leaves as it is
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f") if words else ""
