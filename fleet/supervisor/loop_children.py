"""The loop's children, git and gates: what each one under way was asked, and what the last ones answered.

Nothing here waits: a look takes in what was answered since the last one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from fleet.core.decision import Note
from fleet.core.effects import ReadHistory, RunGate
from fleet.core.loop.gates import commit_of, name_of
from fleet.core.loop.loop_case import GateJob, GateResult, GitView, History, Job, LoopJob, TreeView
from fleet.core.model import Loop
from fleet.core.words import EventType
from fleet.host import git
from fleet.ports import Children, JobEnd
from fleet.store.house import House
from fleet.supervisor.gate_runs import GateBook, gate_command, gate_log, gate_result, proved_for
from fleet.supervisor.world import World
from fleet.times.moment import UNNAMED, Wall, later

ASK_AGAIN_S = 10.0  # git could not read the refs


class FetchEnd(NamedTuple):
    """How a fetch ended: why it failed, or the lock file it met; both empty: it did not fail."""

    trouble: str = ""
    lock: str = ""


@dataclass(slots=True)
class RefsAnswer:
    """What git said of the refs, for a repository that does not keep them in files."""

    asked: object = None  # the question that is under way, with the stamp of the table
    known: object = None  # the one that was answered
    words: tuple[str, ...] = ()
    said: tuple[int | None, bytes] | None = None
    again: Wall = UNNAMED  # a failure is asked again then


class LoopChildren:
    """Starts the loop's children, and hears them."""

    def __init__(self, world: World, house: House, jobs: Children[Job]) -> None:
        self.refs = git.Refs(world.disk, self._ask_refs)
        self.results = GateBook(house.store, world.locks.state)
        self._jobs = jobs
        self._clock = world.clock
        self._disk = world.disk
        self._house = house
        self._gates: dict[GateJob, RunGate] = {}  # at work
        self._unproved: dict[GateJob, tuple[RunGate, GateResult]] = {}  # ended; on which tree is being asked
        self._history_asked = ("", "")  # base and tip
        self._history: History | None = None
        self._fetched: FetchEnd | None = None  # None: no fetch has ended since the last look
        self._tree_asked: tuple[str, Wall] = ("", UNNAMED)  # for which commit, and when
        self._tree: TreeView | None = None  # the work tree as it was last seen
        self._inboxes_asked = ""  # the watched commit
        self._inboxes: dict[str, dict[str, str]] = {}  # by watched commit: hash by path
        self._refs = RefsAnswer()

    # --- asking: "" or why that cannot be ---------------------------------------------------------------

    def at_work(self) -> frozenset[Job]:
        """Those whose answer is not there yet."""
        return self._jobs.keys() | self._unproved.keys()

    def run_gate(self, loop: Loop, run: RunGate) -> str:
        """Start a gate."""
        argv, env = gate_command(loop, run, self._house.log_dir)
        log, repo = gate_log(self._house.log_dir, run), loop.handoff.repo
        why = self._jobs.start(run.job, argv, cwd=repo, timeout=run.gate.timeout, log=log, env=env)
        if not why:
            self._gates[run.job] = run
            facts = (("phase", run.phase), ("commit", commit_of(run.key)), ("log", log))
            reason = f"gate {run.index + 1} ({name_of(run.gate)})"
            self._house.events.note(Note(EventType.GATE_STARTED, reason, facts))
        return why

    def forget_gate(self, job: GateJob) -> None:
        """End a gate's child; its answer is not wanted any more."""
        self._gates.pop(job, None)
        self._unproved.pop(job, None)
        self._jobs.cancel(job)

    def ask_tree(self, loop: Loop) -> str:
        """Ask for the state of the work tree."""
        repo = loop.handoff.repo
        try:
            view = self.view(loop)
        except OSError as error:
            return f"{repo}: {error.strerror or error}"
        except git.NotYet:
            return f"{repo}: git has not answered yet"
        self._tree_asked = (view.head if view else "", self._clock.wall())
        words = git.changes_command(repo, self._house.log_dir)
        return self._ask_git(LoopJob.WORKTREE, words, repo, git.LOG_TIMEOUT_S)

    def ask_history(self, effect: ReadHistory) -> str:
        """Ask for the commits in between."""
        self._history_asked, self._history = (effect.base, effect.tip), None
        words = git.history_command(effect.repo, effect.base, effect.tip)
        return self._ask_git(LoopJob.HISTORY, words, effect.repo, git.LOG_TIMEOUT_S)

    def fetch(self, repo: str) -> bool:
        """Start a fetch; why one cannot be started is an answer like any other, at the next look."""
        why = self._ask_git(LoopJob.FETCH, git.fetch_command(repo), repo, git.FETCH_TIMEOUT_S)
        self._fetched = FetchEnd(why) if why else None
        return not why

    def tree_of(self, loop: Loop, tip: str, paths: Sequence[str]) -> dict[str, str] | None:
        """The hash of each of these files in that commit; None while git has not said it."""
        if not tip:
            return {}
        tree, repo = self._inboxes.get(tip), loop.handoff.repo
        if tree is None and LoopJob.INBOXES not in self._jobs.keys():  # noqa: SIM118 (a port, not a dict)
            self._inboxes_asked = tip
            words = git.tree_command(repo, tip, paths)
            self._ask_git(LoopJob.INBOXES, words, repo, git.LOG_TIMEOUT_S)
        return tree

    def view(self, loop: Loop) -> GitView | None:
        """The refs of the repository; None when it is not there. Raises OSError, and NotYet."""
        return self.refs.view(loop.handoff.repo, loop.handoff.branch)

    def answered(self, view: GitView) -> GitView:
        """These refs, with what children said of the repository; how a fetch ended is said once."""
        fetched, self._fetched = self._fetched, None
        ended = fetched or FetchEnd()
        return view._replace(
            history=self._history,
            fetched=fetched is not None,
            fetch_trouble=ended.trouble,
            fetch_lock=ended.lock,
            tree=self._tree,
        )

    def _ask_git(self, job: LoopJob, words: Sequence[str], repo: str, timeout: float) -> str:
        return self._jobs.start(job, words, cwd=repo, timeout=timeout, env=git.ENV)

    def _ask_refs(self, repo: str, words: Sequence[str], stamp: object) -> tuple[int | None, bytes]:
        """The last answer. The question is put again when the table changed; no look waits for it."""
        question = (tuple(words), stamp)
        if self._refs.words != tuple(words):
            self._jobs.cancel(LoopJob.REFS)
            self._refs = RefsAnswer(words=tuple(words))
        answer = self._refs
        due = question != answer.known or (answer.again and self._clock.wall() >= answer.again)
        if due and LoopJob.REFS not in self._jobs.keys():  # noqa: SIM118 (a port, not a dict)
            answer.asked = question
            why = self._ask_git(LoopJob.REFS, words, repo, git.ASK_TIMEOUT_S)
            if why:
                self._hear_refs(None, why.encode())
        if answer.said is None:
            raise git.NotYet
        return answer.said

    # --- hearing ----------------------------------------------------------------------------------------

    def hear(self, loop: Loop) -> None:
        """Take in what children answered since the last look."""
        for ended in self._jobs.poll():
            if isinstance(ended.key, GateJob):
                run = self._gates.pop(ended.key, None)
                if run is not None:
                    self._hear_gate(loop, ended.key, run, ended)
            else:
                self._hear_git(loop, ended.key, ended)

    def _hear_git(self, loop: Loop, job: LoopJob, ended: JobEnd[Job]) -> None:
        match job:
            case LoopJob.REFS:
                self._hear_refs(ended.code, ended.output or ended.why.encode())
            case LoopJob.FETCH:
                self._fetched = _fetch_end(ended)
            case LoopJob.HISTORY:
                self._history = git.parse_history(*self._history_asked, ended.code, ended.output)
            case LoopJob.INBOXES:
                if ended.code == 0:
                    self._inboxes = {self._inboxes_asked: git.parse_tree(ended.output)}
            case LoopJob.WORKTREE:
                self._hear_tree(loop, ended)
            case _:
                assert_never(job)

    def _hear_refs(self, code: int | None, output: bytes) -> None:
        answer = self._refs
        answer.known, answer.said = answer.asked, (code, output)
        failed = code != 0 and (code != 1 or bool(output.strip()))
        answer.again = later(self._clock.wall(), ASK_AGAIN_S) if failed else UNNAMED

    def _hear_gate(self, loop: Loop, job: GateJob, run: RunGate, ended: JobEnd[Job]) -> None:
        """Judge what a gate said; where the work tree matters, once that was looked at again."""
        result = gate_result(run, ended, loop, self._clock.wall())
        if run.tree is not None and not run.gate.clean:
            self._unproved[job] = run, result
            self._jobs.cancel(LoopJob.WORKTREE)  # it may have looked before the gate ended
            why = self.ask_tree(loop)
            if not why:
                return
            del self._unproved[job]
            result = result._replace(ok=False, said=why)
        self._keep(result)

    def _hear_tree(self, loop: Loop, ended: JobEnd[Job]) -> None:
        """The state of the work tree is known; so is what the gates that waited for it were run on."""
        (head, at), waiting = self._tree_asked, list(self._unproved.values())
        if ended.code != 0:
            why = f"git status: {_said(ended)}"
            results = [result._replace(ok=False, said=why) for _, result in waiting]
        else:
            self._tree = tree = git.parse_changes(self._disk, loop.handoff.repo, head, ended.output, at)
            results = [proved_for(result, run, tree) for run, result in waiting]
        self._unproved.clear()
        for result in results:
            self._keep(result)

    def _keep(self, result: GateResult) -> None:
        self.results.keep(result)
        if result.ok:  # a failure is recorded when it is told
            facts = (
                ("phase", result.phase),
                ("commit", commit_of(result.key)),
                ("seconds", round(result.seconds, 3)),
            )
            reason = f"gate {result.gate + 1}: {result.said}"
            self._house.events.note(Note(EventType.GATE_PASSED, reason, facts))


def _fetch_end(ended: JobEnd[Job]) -> FetchEnd | None:
    """How a fetch ended; None when an agent's own git was faster: as good."""
    if ended.code == 0:
        return FetchEnd()
    lock = re.search(rb"Unable to create '([^'\n]+\.lock)': File exists", ended.output)
    if lock:
        return FetchEnd(lock=lock[1].decode("utf-8", "replace"))
    return None if b"cannot lock ref" in ended.output else FetchEnd(_said(ended))


def _said(ended: JobEnd[Job]) -> str:
    if ended.code is None:
        return f"ended at {ended.why}"
    lines = ended.output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {ended.code}"
