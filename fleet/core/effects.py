"""Everything that may be done to an agent and about the loop. Closed unions: a new effect is a decision.

An effect carries what it expects to find. Between seeing and acting the world may change, so the executor
looks again and, where it differs, does nothing and says so. One that does not say on whom, on what and why
is never made: an assert stops it, and costs that agent its turn.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields

from fleet.core.decision import Note
from fleet.core.loop.loop_case import GateJob, Place, TreeView
from fleet.core.model import Backend, Gate, TextRule
from fleet.core.seen import PaneRef
from fleet.times.moment import UNNAMED, Wall

UNSAID = "an effect that does not say all it expects"


class _Whole:
    """An effect says all it expects: what has no default is not empty."""

    __slots__ = ()

    def __post_init__(self) -> None:
        asked = [f.name for f in fields(self) if f.default is MISSING]  # type: ignore[arg-type]
        assert all(getattr(self, name) not in ("", ()) for name in asked), f"{UNSAID}: {self}"


@dataclass(frozen=True, slots=True)
class Start(_Whole):
    """Begin a new run. `replace` is the dead pane it takes over, whose processes are all gone."""

    agent: str
    cause: str
    planned: bool = False
    replace: PaneRef | None = None
    resume: bool = True


@dataclass(frozen=True, slots=True)
class Signal(_Whole):
    """Send a signal to the whole process set of a run."""

    agent: str
    signum: int
    cause: str
    run: str = ""
    pid: int = 0

    def __post_init__(self) -> None:
        assert all((self.agent, self.cause, self.run or self.pid)), f"{UNSAID}: {self}"


@dataclass(frozen=True, slots=True)
class Remove(_Whole):
    """Take the session away once its processes are gone."""

    agent: str
    ref: PaneRef
    cause: str


@dataclass(frozen=True, slots=True)
class Paste(_Whole):
    """Put a message's text into the composer. Never submits it."""

    agent: str
    ref: PaneRef
    message: str  # id in the outbox
    cause: str
    expects: str = ""  # the program that must be in the pane; empty: any
    rules: tuple[TextRule, ...] = ()  # what its CLI wants around a text


@dataclass(frozen=True, slots=True)
class Press(_Whole):
    """Press named keys: to submit what we typed, or the one key a dialog allows."""

    agent: str
    ref: PaneRef
    keys: tuple[str, ...]
    cause: str
    message: str = ""
    expects: str = ""


@dataclass(frozen=True, slots=True)
class Post(_Whole):
    """Hand a message to the CLI's own server. Done again, it looks whether the server has it already."""

    agent: str
    ref: PaneRef
    message: str
    server: str
    conversation: str
    cause: str
    backend: Backend  # how its server is spoken to


@dataclass(frozen=True, slots=True)
class Keep(_Whole):
    """Keep the screen as a candidate fixture: no pattern describes it."""

    agent: str
    ref: PaneRef
    cause: str


@dataclass(frozen=True, slots=True)
class Unpause(_Whole):
    """End a pause whose time is over: the processes of the run go on, then the wish says so."""

    agent: str
    cause: str
    run: str = ""  # whose processes are frozen; empty: none are
    pid: int = 0


@dataclass(frozen=True, slots=True)
class LearnId(_Whole):
    """Put down the id that a CLI gave to its conversation: the next start resumes there."""

    agent: str
    conversation: str
    session: str
    run: str  # that has it


Touch = Start | Signal | Remove | Paste | Press | Post | Keep | Unpause  # at most one per agent and look
Action = Touch | LearnId


# --------------------------------------------------------------------------------------------------
# About the loop.


@dataclass(frozen=True, slots=True)
class Move(_Whole):
    """Compare and set the position: from what it was read to be, to another, in one durable record."""

    expect: Place | None
    to: Place
    note: Note  # recorded once it is true
    startable: bool = False  # expect also that every kickoff of the new phase can be built


@dataclass(frozen=True, slots=True)
class WriteMarker(_Whole):
    """Write SEQUENCE-COMPLETE."""

    ids: tuple[str, ...]
    note: Note


@dataclass(frozen=True, slots=True)
class ClearMarker(_Whole):
    """Remove a SEQUENCE-COMPLETE that is not true any more."""

    why: str


@dataclass(frozen=True, slots=True)
class ConsumeTrigger(_Whole):
    """Delete the trigger file, if it is still that one: what it asked for is on record."""

    identity: str


@dataclass(frozen=True, slots=True)
class CallTask(_Whole):
    """Want the task agent of completion up. A run that was made for another token is replaced, once."""

    agent: str
    token: str


@dataclass(frozen=True, slots=True)
class RunGate(_Whole):
    """Run one gate as a child; its result is kept under (phase, gate, print, key, begun)."""

    phase: str
    index: int
    gate: Gate
    print: str
    key: str = ""  # what its answer depends on; empty when that cannot be seen
    since: str = ""  # review: commits before this one do not count
    tip: str = ""
    baseline: float | None = None
    begun: Wall = UNNAMED  # when the phase began
    tree: TreeView | None = None  # what it is run on; None where that does not matter

    @property
    def job(self) -> GateJob:
        """Its child."""
        return GateJob(self.phase, self.index, self.print, self.key)


@dataclass(frozen=True, slots=True)
class CancelGate(_Whole):
    """End the child of a gate whose answer no part waits for any more."""

    job: GateJob


@dataclass(frozen=True, slots=True)
class LookAtTree(_Whole):
    """Ask for the state of the work tree, in a child."""

    repo: str


@dataclass(frozen=True, slots=True)
class Fetch(_Whole):
    """Fetch the watched repository's remote, in a child."""

    repo: str


@dataclass(frozen=True, slots=True)
class ReadHistory(_Whole):
    """List what lies between two commits, in a child."""

    repo: str
    base: str
    tip: str


LoopEffect = (
    Move
    | WriteMarker
    | ClearMarker
    | ConsumeTrigger
    | CallTask
    | RunGate
    | CancelGate
    | LookAtTree
    | Fetch
    | ReadHistory
)
