"""The loop's nouns: where it stands, what was seen of it, and what may be done about it.

The position on disk is the only truth about phases. An advance is a durable record and nothing else;
agents follow because their run carries the phase it was started for. So whoever is killed in between is
mended by looking again, and nothing here needs to be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fleet.core.decision import Note
from fleet.core.done import Done
from fleet.core.model import Fleet, Gate, Loop
from fleet.core.moment import UNNAMED, Wall
from fleet.core.words import EventType, PingAbout

NO_STATUS = Done(done=False, why="there is no status file yet")
TOLD_CAP = 200  # gate failures remembered as told


@dataclass(frozen=True, slots=True)
class Place:
    """Where the loop stands. `index` equal to the number of phases, with no id: all are done."""

    index: int
    id: str = ""
    ids: tuple[str, ...] = ()  # the phase list as it was when this was written
    since: Wall = UNNAMED
    commit: str = ""  # the watched ref when the phase began: reviews before it say nothing about it
    keep_runs: bool = False  # moved by hand without a restart: runs of other phases may finish
    ratchets: tuple[tuple[str, float], ...] = ()  # the values accepted so far
    evidence: tuple[tuple[str, str], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the last phase is behind it."""
        return not self.id


@dataclass(frozen=True, slots=True)
class StatusView:
    """The status file of the current phase. `path` empty: there is none yet."""

    path: str = ""
    digest: str = ""
    reading: Done = NO_STATUS


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as the log shows it. The subject is matched, never shown to an agent."""

    hash: str
    subject: str
    at: int = 0  # author time: survives a rebase
    new: bool = True  # False: on the side that history left behind
    parents: tuple[str, ...] = ()
    same: bool = False  # git found the same change on the other side, under another hash


@dataclass(frozen=True, slots=True)
class History:
    """The answer to "what lies between these two commits", newest first."""

    base: str
    tip: str
    commits: tuple[Commit, ...] = ()
    lost: bool = False  # the base is unknown to the repository, or the answer was too large
    trouble: str = ""  # git did not answer: ask again


@dataclass(frozen=True, slots=True)
class InboxView:
    """One inbox file in both trees, by content hash; empty: no message there. None: could not look."""

    name: str
    work: str | None = ""
    remote: str | None = ""


@dataclass(frozen=True, slots=True)
class TreeView:
    """What the work tree holds beside its commit, as two fingerprints; both empty: nothing."""

    head: str
    tracked: str = ""
    untracked: str = ""
    at: Wall = UNNAMED

    @property
    def key(self) -> str:
        """The commit, and what else there is."""
        more = f"{self.tracked}.{self.untracked}"
        return self.head if more == "." else f"{self.head}+{more}"


@dataclass(frozen=True, slots=True)
class GitView:
    """What the repository shows. `tip` is the watched ref, `head` the work tree's commit."""

    ref: str = ""
    tip: str = ""
    head: str = ""
    remote: bool = False  # there is something to fetch from
    history: History | None = None
    fetched: bool = False  # a fetch has just ended ...
    fetch_trouble: str = ""  # ... and this is why it failed
    fetch_lock: str = ""  # ... or the lock file that another git holds, or left behind
    tree: TreeView | None = None  # the state of the work tree, as it was last asked for


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate said about one commit and work tree.

    `print` ties it to the gate as it was declared, `begun` to this go at the phase.
    """

    phase: str
    gate: int
    print: str
    key: str
    ok: bool
    said: str
    log: str = ""
    at: Wall = UNNAMED
    seconds: float = 0.0
    value: float | None = None
    begun: Wall = UNNAMED
    moved: bool = False  # the work tree changed while it ran: this says nothing of any state


@dataclass(frozen=True, slots=True)
class LoopSeen:
    """Everything one look found. What could not be looked at stands in `blind`; nothing follows from it."""

    place: Place | None = None  # what phase.json says
    index: int | None = None  # what the bare index file says
    trouble: str = ""  # one of them cannot be read: hold, do not guess
    status: StatusView | None = None  # None: could not be read
    marker: bool = False  # SEQUENCE-COMPLETE is there
    trigger: str = ""  # identity of the on_complete trigger file, empty when absent
    git: GitView | None = None
    inboxes: tuple[InboxView, ...] = ()
    gates: tuple[GateResult, ...] = ()
    jobs: frozenset[str] = frozenset()  # keys of children at work
    alive: tuple[str, ...] = ()  # loop agents that still run
    next_trouble: str = ""  # why the next phase's kickoffs cannot be built
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ping:
    """A message that wakes a side. The id is the event's, so that repeating it is harmless."""

    id: str
    agent: str
    text: str
    about: PingAbout
    inbox: str = ""  # of a ping about an inbox: which one
    phase: str = ""  # the phase it was made for: it is not news in another one

    @property
    def topic(self) -> tuple[str, PingAbout, str]:
        """Whom it tells of what: of two, the newer says it all."""
        return self.agent, self.about, self.inbox


@dataclass(frozen=True, slots=True)
class InboxMemory:
    """What an inbox held, and which contents have been told."""

    name: str
    work: str | None = None  # None: never looked at yet
    remote: str | None = None
    told: tuple[str, ...] = ()
    count: int = 0  # messages told so far


@dataclass(frozen=True, slots=True)
class LoopMemory:
    """What must survive a restart, saved before the plan that goes with it is carried out."""

    looked: str = ""  # phase whose status file has been looked at
    done_phase: str = ""
    done_digest: str = ""  # the status text that first read as done
    done_since: Wall = UNNAMED
    repo: str = ""
    branch: str = ""
    tip: str = ""  # looked through up to here
    inboxes: tuple[InboxMemory, ...] = ()
    told: tuple[str, ...] = ()  # gate failures already told
    fetch_at: Wall = UNNAMED  # not before
    fetch_trouble: str = ""
    locked: int = 0  # fetches in a row that met a lock
    ref: str = ""  # the ref that is watched
    ending: Wall = UNNAMED  # since when we wait for the loops to end
    task: str = ""  # the trigger that the on_complete task runs for
    held: str = ""  # reported already
    waiting: str = ""  # phase for which "done, waiting for a person" was reported


# What may be done: a closed union. Each step names what it expects to find; otherwise it does nothing.


@dataclass(frozen=True, slots=True)
class Move:
    """Compare and set the position: from what it was read to be, to another, in one durable record."""

    expect: Place | None
    to: Place
    note: Note  # recorded once it is true


@dataclass(frozen=True, slots=True)
class WriteMarker:
    """Write SEQUENCE-COMPLETE."""

    ids: tuple[str, ...]
    note: Note


@dataclass(frozen=True, slots=True)
class ClearMarker:
    """Take a SEQUENCE-COMPLETE away that is not true any more."""

    why: str


@dataclass(frozen=True, slots=True)
class ConsumeTrigger:
    """Delete the trigger file: what it asked for is on record."""

    identity: str


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


@dataclass(frozen=True, slots=True)
class LookAtTree:
    """Ask for the state of the work tree, in a child."""

    repo: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch the watched repository's remote, in a child."""

    repo: str


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """List what lies between two commits, in a child."""

    repo: str
    base: str
    tip: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """End a child whose answer nobody waits for any more."""

    job: str


Step = Cancel | Move | WriteMarker | ClearMarker | ConsumeTrigger | RunGate | LookAtTree | Fetch | ReadHistory


@dataclass(frozen=True, slots=True)
class RunTask:
    """The task agent that completion calls for. A run started for another token must be replaced, once."""

    agent: str
    token: str


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """What one look leads to. `phase` is the one that loop agents should be running, empty for none."""

    memory: LoopMemory
    phase: str = ""
    complete: bool = False
    held: str = ""
    stays: str = ""  # why it does not move, also where its agents go on
    state: str = ""  # one line for `status`
    keep_runs: bool = False
    steps: tuple[Step, ...] = ()
    task: RunTask | None = None
    pings: tuple[Ping, ...] = ()
    notes: tuple[Note, ...] = ()
    problems: tuple[str, ...] = ()
    wake_at: Wall | None = None  # look again not later than this


@dataclass(slots=True)
class Draft:
    """A plan in the making: what all rules look at, and what each of them adds."""

    fleet: Fleet
    loop: Loop
    seen: LoopSeen
    now: Wall
    memory: LoopMemory
    steps: list[Step] = field(default_factory=list)
    pings: list[Ping] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    wakes: list[Wall] = field(default_factory=list)
    held: str = ""
    state: str = ""
    task: RunTask | None = None

    @property
    def tip(self) -> str:
        """The watched commit, as far as it is known."""
        return self.seen.git.tip if self.seen.git else ""

    def note(self, type_: EventType, reason: str, **facts: str | float) -> None:
        """Put an event on the record."""
        self.notes.append(Note(type_, reason, tuple(facts.items())))

    def remember(self, **changes: Any) -> None:
        """Change what must survive."""
        self.memory = replace(self.memory, **changes)

    def ping(self, ping: Ping) -> None:
        """Send it. Of two on the same topic only the newer is worth it."""
        ping = replace(ping, phase=self.seen.place.id if self.seen.place else "")
        self.pings = [*(p for p in self.pings if p.topic != ping.topic), ping]
