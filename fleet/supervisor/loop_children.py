"""The loop's children: what each one under way was asked, and what the last ones answered.

The look takes answers in and the executor asks, so both hold this one value. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fleet.core.effects import RunGate
from fleet.core.loop.loop_case import GateJob, GateResult, GitView, History, Job, LoopJob, TreeView
from fleet.core.model import Loop
from fleet.host import git
from fleet.ports import Children
from fleet.store.house import House
from fleet.supervisor.world import World
from fleet.times.moment import UNNAMED, Wall, later

ASK_AGAIN_S = 10.0  # git could not read the refs


@dataclass(frozen=True, slots=True)
class FetchEnd:
    """How a fetch ended: why it failed, or the lock file it met; both empty: it did not fail."""

    trouble: str = ""
    lock: str = ""


@dataclass(frozen=True, slots=True)
class Unproved:
    """A gate that has ended. On which work tree it was run is being asked."""

    run: RunGate
    result: GateResult


@dataclass(slots=True)
class RefsAnswer:
    """What git said of the refs, for a repository that does not keep them in files."""

    asked: object = None  # the question that is under way, with the stamp of the table
    known: object = None  # the one that was answered
    words: tuple[str, ...] = ()
    said: tuple[int | None, bytes] | None = None
    again: Wall = UNNAMED  # a failure is asked again then


@dataclass(slots=True)
class Errands:
    """What was asked, and what was answered last."""

    gates: dict[GateJob, RunGate] = field(default_factory=dict)  # at work
    unproved: dict[GateJob, Unproved] = field(default_factory=dict)
    history_asked: tuple[str, str] = ("", "")  # base and tip
    history: History | None = None
    fetched: FetchEnd | None = None  # None: no fetch has ended since the last look
    tree_asked: tuple[str, Wall] = ("", UNNAMED)  # for which commit, and when
    tree: TreeView | None = None  # the work tree as it was last seen
    inboxes_asked: str = ""  # the watched commit
    inboxes: dict[str, dict[str, str]] = field(default_factory=dict)  # by watched commit: hash by path
    refs: RefsAnswer = field(default_factory=RefsAnswer)


class LoopChildren:
    """Starts the loop's children, and knows what they are under way for."""

    def __init__(self, world: World, house: House, jobs: Children[Job]) -> None:
        self.jobs = jobs
        self.errands = Errands()
        self.refs = git.Refs(world.disk, self._ask_refs)
        self._clock = world.clock
        self._log_dir = house.log_dir

    def at_work(self) -> frozenset[Job]:
        """Those whose answer is not there yet."""
        return self.jobs.keys() | self.errands.unproved.keys()

    def ask_git(self, job: LoopJob, words: Sequence[str], repo: str, timeout: float) -> str:
        """Start git in a child: "" or why that cannot be."""
        return self.jobs.start(job, words, cwd=repo, timeout=timeout, env=git.ENV)

    def ask_tree(self, loop: Loop) -> str:
        """Ask for the state of the work tree: "" or why that cannot be."""
        repo = loop.handoff.repo
        try:
            view = self.view(loop)
        except OSError as error:
            return f"{repo}: {error.strerror or error}"
        except git.NotYet:
            return f"{repo}: git has not answered yet"
        self.errands.tree_asked = (view.head if view else "", self._clock.wall())
        words = git.changes_command(repo, self._log_dir)
        return self.ask_git(LoopJob.WORKTREE, words, repo, git.LOG_TIMEOUT_S)

    def view(self, loop: Loop) -> GitView | None:
        """The refs of the repository; None when it is not there. Raises OSError, and NotYet."""
        return self.refs.view(loop.handoff.repo, loop.handoff.branch)

    def forget_gate(self, job: GateJob) -> None:
        """End a gate's child; its answer is not wanted any more."""
        self.errands.gates.pop(job, None)
        self.errands.unproved.pop(job, None)
        self.jobs.cancel(job)

    def _ask_refs(self, repo: str, words: Sequence[str], stamp: object) -> tuple[int | None, bytes]:
        """The last answer. The question is put again when the table changed; no look waits for it."""
        answer, question = self.errands.refs, (tuple(words), stamp)
        if answer.words != tuple(words):
            self.jobs.cancel(LoopJob.REFS)
            self.errands.refs = answer = RefsAnswer(words=tuple(words))
        due = question != answer.known or (answer.again and self._clock.wall() >= answer.again)
        if due and LoopJob.REFS not in self.jobs.keys():  # noqa: SIM118 (a port, not a dict)
            answer.asked = question
            why = self.ask_git(LoopJob.REFS, words, repo, git.ASK_TIMEOUT_S)
            if why:
                self.hear_refs(None, why.encode())
        if answer.said is None:
            raise git.NotYet
        return answer.said

    def hear_refs(self, code: int | None, output: bytes) -> None:
        """The answer to the question about the refs."""
        answer = self.errands.refs
        answer.known, answer.said = answer.asked, (code, output)
        failed = code != 0 and (code != 1 or bool(output.strip()))
        answer.again = later(self._clock.wall(), ASK_AGAIN_S) if failed else UNNAMED
