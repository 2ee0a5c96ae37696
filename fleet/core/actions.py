"""Everything that may be done to an agent. A closed union: a new act is a decision.

An action carries what it expects to find. Between seeing and acting the world may change, so
the performer looks again and, where it differs, does nothing and says so. One that does not say on
whom, on what and why is never made: an assert stops it, and costs that agent its turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleet.core.model import Backend, TextRule
from fleet.core.seen import PaneRef


def _whole(act: object, *said: object) -> None:
    """Everything that an effect has to say is said."""
    assert all(said), f"an effect that does not say all it expects: {act}"


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a new run. `replace` is the dead pane it takes over, already swept of survivors."""

    agent: str
    cause: str
    planned: bool = False
    replace: PaneRef | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause)


@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to the whole process set of a run."""

    agent: str
    run: str
    pid: int
    signum: int
    cause: str

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.run or self.pid)


@dataclass(frozen=True, slots=True)
class Remove:
    """Take the session away once its processes are gone."""

    agent: str
    ref: PaneRef
    cause: str

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.ref.pane)


@dataclass(frozen=True, slots=True)
class Paste:
    """Put a message's text into the composer. Never submits it."""

    agent: str
    ref: PaneRef
    message: str  # id in the outbox
    cause: str
    expects: str = ""  # the program that must be in the pane; empty: any
    rules: tuple[TextRule, ...] = ()  # what its CLI wants around a text

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.ref.pane, self.message)


@dataclass(frozen=True, slots=True)
class Press:
    """Press named keys: to submit what we typed, or the one key a dialog allows."""

    agent: str
    ref: PaneRef
    keys: tuple[str, ...]
    cause: str
    message: str = ""
    expects: str = ""

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.ref.pane, self.keys)


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

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.ref.pane, self.message, self.server)


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the screen as a candidate fixture: no pattern describes it."""

    agent: str
    ref: PaneRef
    cause: str

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause, self.ref.pane)


@dataclass(frozen=True, slots=True)
class Unpause:
    """End a pause whose time is over: the processes of the run go on, then the wish says so."""

    agent: str
    cause: str
    run: str = ""  # whose processes are frozen; empty: none are
    pid: int = 0

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.cause)


@dataclass(frozen=True, slots=True)
class LearnId:
    """Put down the id that a CLI gave to its conversation: the next start resumes there."""

    agent: str
    conversation: str
    session: str
    run: str  # that has it

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.conversation, self.session, self.run)


Action = Start | Signal | Remove | Paste | Press | Post | Keep | Unpause | LearnId
