"""Everything that may be done to an agent. A closed union: a new act is a decision.

An action carries what it expects to find. Between seeing and acting the world may change, so
whoever performs it looks again and, where it differs, does nothing and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleet.core.model import Backend, TextRule
from fleet.core.seen import PaneRef


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a new run. `replace` is the dead pane it takes over, already swept of survivors."""

    agent: str
    cause: str
    planned: bool = False
    replace: PaneRef | None = None
    resume: bool = True


@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to the whole process set of a run."""

    agent: str
    run: str
    pid: int
    signum: int
    cause: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Take the session away once its processes are gone."""

    agent: str
    ref: PaneRef
    cause: str


@dataclass(frozen=True, slots=True)
class Paste:
    """Put a message's text into the composer. Never submits it."""

    agent: str
    ref: PaneRef
    message: str  # id in the outbox
    cause: str
    expects: str = ""  # the program that must be in the pane; empty: any
    rules: tuple[TextRule, ...] = ()  # what its CLI wants around a text


@dataclass(frozen=True, slots=True)
class Press:
    """Press named keys: to submit what we typed, or the one key a dialog allows."""

    agent: str
    ref: PaneRef
    keys: tuple[str, ...]
    cause: str
    message: str = ""
    expects: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """Hand a message to the CLI's own server. Done again, it looks whether the server has it already."""

    agent: str
    ref: PaneRef
    message: str
    server: str
    conversation: str
    cause: str
    backend: Backend  # how its server is spoken to


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the screen as a candidate fixture: nobody could read it."""

    agent: str
    ref: PaneRef
    cause: str


Action = Start | Signal | Remove | Paste | Press | Post | Keep
