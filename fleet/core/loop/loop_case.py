"""The loop's case at one moment: where it stands, what was seen of it, what it remembers, what it shows.

A part of the loop looks at a `LoopCase` and answers with a `LoopPart`. The position on disk is the only truth
about phases. An advance is a durable record and nothing else; agents follow because their run carries the
phase it was started for. So the next look finishes what a killed watchdog or verb had begun, and nothing
here needs to be undone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fleet.core.decision import Note
from fleet.core.loop.done import Done
from fleet.core.memory import Message
from fleet.core.model import Fleet, Loop, Member
from fleet.core.queue import TAIL
from fleet.core.words import MessageKind, PingAbout
from fleet.times.moment import UNNAMED, Moment, Wall

if TYPE_CHECKING:
    from fleet.core.effects import LoopEffect  # which imports this file

NO_STATUS = Done(done=False, why="there is no status file yet")


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


class StatusView(NamedTuple):
    """The status file of the current phase. `path` empty: there is none yet."""

    path: str = ""
    digest: str = ""
    reading: Done = NO_STATUS


class Commit(NamedTuple):
    """One commit as the log shows it. The subject is matched, never shown to an agent."""

    hash: str
    subject: str
    at: int = 0  # author time: survives a rebase
    new: bool = True  # False: on the side that history left behind
    parents: tuple[str, ...] = ()
    same: bool = False  # git found the same change on the other side, under another hash


class History(NamedTuple):
    """The answer to "what lies between these two commits", newest first."""

    base: str
    tip: str
    commits: tuple[Commit, ...] = ()
    lost: bool = False  # the base is unknown to the repository, or the answer was too large
    trouble: str = ""  # git did not answer: ask again


class InboxView(NamedTuple):
    """One inbox file in both trees, by content hash; empty: no message there. None: could not look."""

    name: str
    work: str | None = ""
    remote: str | None = ""


class TreeView(NamedTuple):
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


class GitView(NamedTuple):
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


class GateResult(NamedTuple):
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


class LoopJob(StrEnum):
    """A child that the loop has at most one of."""

    REFS = "refs"  # git reads the refs of a repository that does not keep them in files
    FETCH = "fetch"
    HISTORY = "history"
    INBOXES = "inboxes"  # git lists them in the watched commit
    WORKTREE = "worktree"  # git tells the state of the work tree


@dataclass(frozen=True, slots=True, order=True)
class GateJob:
    """The child of one gate, by the question that it answers."""

    phase: str
    gate: int
    print: str
    key: str


Job = LoopJob | GateJob


@dataclass(frozen=True, slots=True)
class LoopSeen:
    """Everything one look found. What could not be looked at stands in `blind`; nothing follows from it."""

    place: Place | None = None  # what phase.json says
    index: int | None = None  # what the bare index file says
    trouble: str = ""  # one of them cannot be read: hold, do not guess
    status: StatusView | None = None  # None: could not be read
    marker: bool = False  # SEQUENCE-COMPLETE is there
    trigger: str = ""  # identity of the on_complete trigger file, empty when absent
    called: str = ""  # the trigger for which the task agent is wanted up already
    git: GitView | None = None
    inboxes: tuple[InboxView, ...] = ()
    gates: tuple[GateResult, ...] = ()
    jobs: frozenset[Job] = frozenset()  # children at work
    alive: tuple[str, ...] = ()  # loop agents that still run
    next_trouble: str = ""  # why the next phase's kickoffs cannot be built
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InboxMemory:
    """What an inbox held, and which contents have been told."""

    name: str
    work: str | None = None  # None: never looked at yet
    remote: str | None = None
    told: tuple[str, ...] = ()
    count: int = 0  # messages told so far


class LoopMemory(NamedTuple):
    """What must survive a restart, saved before the effects that go with it are carried out."""

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

    def having(self, **values: object) -> LoopMemory:
        """The memory with these values: itself if it has them, which most looks find."""
        same = all(getattr(self, name) == value for name, value in values.items())
        return self if same else self._replace(**values)  # type: ignore[arg-type]


class LoopShown(NamedTuple):
    """Where the loop stands, for the agents it governs, for the board and for the verbs."""

    phase: str = ""  # the one that loop agents should be running; empty for none
    complete: bool = False
    held: str = ""  # why no agent of the loop may be started
    keep_runs: bool = False  # moved by hand without a restart: runs of other phases may finish
    stays: str = ""  # why it does not move, also where its agents go on
    state: str = ""  # one line for `status`
    problems: tuple[str, ...] = ()

    @property
    def orders(self) -> tuple[str, bool, str, bool]:
        """What the agents of the loop act on: when it changes, each of them is judged at once."""
        return self.phase, self.complete, self.held, self.keep_runs


NO_LOOP = LoopShown()  # there is none, or nothing is known of it yet


class LoopCase(NamedTuple):
    """All a part may look at."""

    fleet: Fleet
    loop: Loop
    memory: LoopMemory
    seen: LoopSeen
    now: Moment

    @property
    def tip(self) -> str:
        """The watched commit, as far as it is known."""
        return self.seen.git.tip if self.seen.git else ""

    @property
    def phase(self) -> str:
        """The id of the phase that the record names; empty when it names none."""
        return self.seen.place.id if self.seen.place else ""

    def ping(
        self, agent: Member, event: str, about: PingAbout, texts: tuple[str, ...], *, inbox: str = ""
    ) -> tuple[str, Message]:
        """A message that tells one agent of an event, in the first of these texts that fits.

        It is news in this phase only.
        """
        words, name = wording(self.fleet, agent, *texts), ping_id(about, event, agent.name)
        tail, phase = words[-TAIL:], self.phase
        message = Message(name, MessageKind.PING, words, tail=tail, about=about, inbox=inbox, phase=phase)
        return agent.name, message

    def after(self, part: LoopPart) -> LoopCase:
        """The case as the next part gets it: with what this one remembers."""
        return self if part.memory is self.memory else self._replace(memory=part.memory)


class LoopPart(NamedTuple):
    """What one part says. Only `memory` must be given: with what the part changed of the case's."""

    memory: LoopMemory
    messages: tuple[tuple[str, Message], ...] = ()  # by agent
    notes: tuple[Note, ...] = ()
    effects: tuple[LoopEffect, ...] = ()
    problems: tuple[str, ...] = ()
    wakes: tuple[Wall, ...] = ()  # look again not later than the first of these
    held: str = ""  # why the loop does not move
    state: str = ""  # one line for `status`

    def joined(self, after: LoopPart) -> LoopPart:
        """What both say, in this order. Of `held` and `state` the later one's counts, if it has any."""
        return LoopPart(
            memory=after.memory,
            messages=self.messages + after.messages,
            notes=self.notes + after.notes,
            effects=self.effects + after.effects,
            problems=self.problems + after.problems,
            wakes=self.wakes + after.wakes,
            held=after.held or self.held,
            state=after.state or self.state,
        )

    def then(self, case: LoopCase, part: Callable[[LoopCase], LoopPart]) -> LoopPart:
        """Ask the next part, which sees what this one remembers, and join what it says."""
        return self.joined(part(case.after(self)))


# --------------------------------------------------------------------------------------------------
# A ping: a message that wakes a side of the loop. Which agents it is for, and in which words.


def ping_id(about: PingAbout, event: str, agent: str) -> str:
    """The message's id. It follows from the event: putting it down twice is harmless."""
    name = f"{about}-{event}-{agent}"
    return f"{about}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def targets(fleet: Fleet, names: Iterable[str]) -> tuple[Member, ...]:
    """The agents meant, each once, in the order named: an agent of that name, else all of that role."""
    found: dict[str, Member] = {}
    for name in names:
        agent = fleet.agent(name)
        meant = (agent,) if agent else tuple(a for a in fleet.agents if a.role == name)
        for one in meant:
            found.setdefault(one.name, one)
    return tuple(found.values())


def wording(fleet: Fleet, agent: Member, *texts: str) -> str:
    """The first of these texts that its backend does not take for a banner or for work; else the last."""
    backend = fleet.backend_of(agent)
    traps = [p for p in (backend.active_re, backend.limit_re, backend.fatal_re) if p]
    return next((t for t in texts if not any(re.search(p, t) for p in traps)), texts[-1])
