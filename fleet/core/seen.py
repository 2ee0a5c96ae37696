"""What was seen, by which source and when. A fact without a source or a date is not one.

Unseen is not dead: a thing we could not look at is absent from an Observation's maps and the
reason stands in `blind`. Nothing destructive may follow from an absence that has a reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fleet.core.words import Witness
from fleet.times.moment import UNNAMED, Wall


class ScreenState(StrEnum):
    """What a screen, or any other source, says the agent is doing."""

    WORKING = "working"
    IDLE = "idle"
    ASKING = "asking"  # a dialog is open
    LIMITED = "limited"  # a usage limit with a window
    RETRYING = "retrying"  # the CLI itself waits and tries again
    ERROR = "error"  # the turn ended in an API error; the CLI is at its prompt
    CONTEXT = "context"  # the context is full; only a command or a fresh start helps
    AUTH = "auth"  # credentials refused; a retry cannot fix it
    WEDGED = "wedged"  # fatal_re: the conversation cannot go on
    STARTING = "starting"
    SHELL = "shell"  # a bare shell prompt where an agent should be
    DEAD = "dead"
    UNKNOWN = "unknown"


class ServerId(NamedTuple):
    """A tmux server is a pid and the second it started; ids of panes mean nothing without it."""

    pid: int
    started: int


class PaneRef(NamedTuple):
    """Everything an act must find unchanged before it touches a pane."""

    server: ServerId
    session: str
    pane: str  # "%12"
    pid: int
    run: str  # the run id we stamped on the pane at creation


class PaneView(NamedTuple):
    """One row of the fleet-wide list: the pane we created in a session of ours."""

    ref: PaneRef
    dead: bool
    exit_code: int | None = None  # both None while dead: tmux has not reaped it yet
    exit_signal: int | None = None
    created: Wall = UNNAMED
    activity: Wall = UNNAMED  # one-second resolution: last output
    history: int = 0
    cursor_x: int = 0
    cursor_y: int = 0
    in_mode: bool = False  # copy-mode swallows keys
    piped: bool = True  # what it prints goes to its log
    typed_at: Wall = UNNAMED  # of the newest key from an attached client, 0 if none
    project: str = ""

    @property
    def unreaped(self) -> bool:
        """Dead, and tmux does not know yet how it ended."""
        return self.dead and self.exit_code is None and self.exit_signal is None

    @property
    def finished(self) -> bool:
        """Its process ended by itself, with exit code 0."""
        return self.dead and self.exit_code == 0 and self.exit_signal is None

    @property
    def ending(self) -> str:
        """How its process ended, as far as tmux knows."""
        if self.exit_signal is not None:
            return f"killed by signal {self.exit_signal}"
        return f"exited with {self.exit_code}" if self.exit_code is not None else "ended"

    @property
    def change_key(self) -> tuple[Wall, int, int, int]:
        """While this stays the same the screen need not be captured again."""
        return (self.activity, self.history, self.cursor_y, self.cursor_x)


class Listing(NamedTuple):
    """One answer of tmux for the whole fleet. `server` None: there positively is no server."""

    server: ServerId | None
    panes: tuple[PaneView, ...] = ()
    foreign: tuple[str, ...] = ()  # sessions on this server without any stamp of ours


class Marker(NamedTuple):
    """A WAITING-UNTIL line. `until` None: it was there but could not be read."""

    until: Wall | None
    text: str
    capped: bool = False


class Reading(NamedTuple):
    """What one look at a screen says, and which line of the profile said it."""

    state: ScreenState
    pattern: str = ""
    line: str = ""  # the evidence, sanitised, at most 200 characters
    until: Wall | None = None  # when a limit resets or a retry fires
    dialog: str = ""
    key: str = ""  # the one key this dialog allows; empty: none
    fix: str = ""
    draft: str | None = None  # what stands in the composer; None: no composer could be made out
    marker: Marker | None = None
    above: str = ""  # of the evidence: the lines right above it, without digits and spinners
    below: int = 0  # of the evidence: lines of words below it; 0 where a profile tells turns apart
    spoken: bool = False  # the evidence stands where an agent's own words may stand as well
    beside: tuple[str, ...] = ()  # evidence of something bad that stands there beside a better state
    commands: bool = False  # its composer is in a mode that runs what is typed
    queued: str = ""  # messages that it shows as waiting for their turn
    content_hash: str = ""  # of the content lines without digits and spinners: the same means still


class ReportKind(StrEnum):
    """What a structured source can say."""

    SESSION = "session"  # conversation id became known
    TURN_BEGAN = "turn_began"
    TURN_ENDED = "turn_ended"
    TURN_FAILED = "turn_failed"
    ANSWERED = "answered"  # the model itself ended the turn: what stands at its end are the agent's own words
    PROMPT_TAKEN = "prompt_taken"  # a submitted message arrived: a receipt
    ASKED = "asked"
    LIMIT_HIT = "limit_hit"
    RETRYING = "retrying"
    AUTH_FAILED = "auth_failed"
    CONTEXT_FULL = "context_full"
    MODEL = "model"  # which model really answers
    EXITED = "exited"


class Posted(StrEnum):
    """What became of a message that went to a CLI's server."""

    UNDERWAY = "underway"
    TAKEN = "taken"  # the server has it among its messages
    REFUSED = "refused"  # it certainly has not, and did not want it
    UNSURE = "unsure"  # it may have it: no answer came


class Report(NamedTuple):
    """A dated fact from a structured source."""

    kind: ReportKind
    at: float  # wall clock of the fact, as the source dates it
    source: Witness
    session_id: str = ""
    until: float | None = None  # wall
    text: str = ""
    exact: bool = False  # `until` is the source's own number, not read from its words


class Proc(NamedTuple):
    """One process; pid and start together are its identity."""

    pid: int
    start: int  # clock ticks after boot
    ppid: int
    sid: int
    name: str  # comm
    exe: str = ""  # base name of the binary, where we may read it
    cpu: float = 0.0  # seconds used so far
    zombie: bool = False
    age: float = 0.0  # seconds since it started, with those that the machine slept
