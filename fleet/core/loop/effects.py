"""Everything that may be done about the loop. A closed union: a new effect is a decision.

An effect carries what it expects to find. Between the look and the effect the world may change, so the
executor (`fleet/supervisor/loop_do.py`) looks again and, where it differs, does nothing and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleet.core.decision import Note
from fleet.core.loop.nouns import GateJob, Place, TreeView
from fleet.core.model import Gate
from fleet.times.moment import UNNAMED, Wall


def _whole(effect: object, *said: object) -> None:
    """Everything that an effect has to say is said."""
    assert all(said), f"an effect that does not say all it expects: {effect}"


@dataclass(frozen=True, slots=True)
class Move:
    """Compare and set the position: from what it was read to be, to another, in one durable record."""

    expect: Place | None
    to: Place
    note: Note  # recorded once it is true
    startable: bool = False  # expect also that every kickoff of the new phase can be built

    def __post_init__(self) -> None:
        _whole(self, self.note.reason)


@dataclass(frozen=True, slots=True)
class WriteMarker:
    """Write SEQUENCE-COMPLETE."""

    ids: tuple[str, ...]
    note: Note

    def __post_init__(self) -> None:
        _whole(self, self.ids, self.note.reason)


@dataclass(frozen=True, slots=True)
class ClearMarker:
    """Remove a SEQUENCE-COMPLETE that is not true any more."""

    why: str

    def __post_init__(self) -> None:
        _whole(self, self.why)


@dataclass(frozen=True, slots=True)
class ConsumeTrigger:
    """Delete the trigger file, if it is still that one: what it asked for is on record."""

    identity: str

    def __post_init__(self) -> None:
        _whole(self, self.identity)


@dataclass(frozen=True, slots=True)
class CallTask:
    """Want the task agent of completion up. A run that was made for another token is replaced, once."""

    agent: str
    token: str

    def __post_init__(self) -> None:
        _whole(self, self.agent, self.token)


@dataclass(frozen=True, slots=True)
class RunGate:
    """Run one gate as a child; its result is kept under (phase, gate, print, key, begun)."""

    phase: str
    index: int
    gate: Gate
    print: str
    key: str
    since: str = ""  # review: commits before this one do not count
    tip: str = ""
    baseline: float | None = None
    begun: Wall = UNNAMED  # when the phase began
    tree: TreeView | None = None  # what it is run on; None where that does not matter

    def __post_init__(self) -> None:
        _whole(self, self.phase, self.print)

    @property
    def job(self) -> GateJob:
        """Its child."""
        return GateJob(self.phase, self.index, self.print, self.key)


@dataclass(frozen=True, slots=True)
class CancelGate:
    """End the child of a gate whose answer no part waits for any more."""

    job: GateJob

    def __post_init__(self) -> None:
        _whole(self, self.job.phase)


@dataclass(frozen=True, slots=True)
class LookAtTree:
    """Ask for the state of the work tree, in a child."""

    repo: str

    def __post_init__(self) -> None:
        _whole(self, self.repo)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch the watched repository's remote, in a child."""

    repo: str

    def __post_init__(self) -> None:
        _whole(self, self.repo)


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """List what lies between two commits, in a child."""

    repo: str
    base: str
    tip: str

    def __post_init__(self) -> None:
        _whole(self, self.repo, self.base, self.tip)


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
