"""The loop's eyes and hands: build what one look sees, carry out what was decided about it.

Nothing here waits: git and gates are children whose answers arrive on a later look. Everything decided
is re-checked when it is done; what does not fit any more is left, and the next look decides again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fleet.core.codec import from_plain, to_plain
from fleet.core.decide_loop import decide_loop
from fleet.core.decision import Note
from fleet.core.loop import (
    Cancel,
    ClearMarker,
    ConsumeTrigger,
    Fetch,
    GateResult,
    GitView,
    History,
    InboxView,
    LookAtTree,
    LoopMemory,
    LoopPlan,
    LoopSeen,
    Move,
    ReadHistory,
    RunGate,
    StatusView,
    Step,
    TreeView,
    WriteMarker,
)
from fleet.core.model import Fleet, Loop, Phase
from fleet.core.moment import UNNAMED, Wall, later
from fleet.core.rules.gates import TREE_JOB as WORKTREE_JOB
from fleet.core.rules.gates import commit_of, job_of, name_of
from fleet.core.rules.handoff import FETCH_JOB, HISTORY_JOB
from fleet.core.rules.outbox import of_ping
from fleet.core.words import EventType
from fleet.ports import Children, Disk, JobEnd
from fleet.world import git
from fleet.world.gates import GateBook, gate_command, gate_log, gate_result, proved_for
from fleet.world.phasebook import PhaseBook
from fleet.world.phasefiles import MARKER, phase_trouble, places, read_status, write_marker
from fleet.world.world import House, World

TREE_JOB = "tree"
REFS_JOB = "refs"
ASK_AGAIN_S = 10.0  # git could not read the refs


@dataclass(slots=True)
class RefsAnswer:
    """What git said of the refs, for a repository that does not keep them in files."""

    asked: object = None  # the question that is under way, with the stamp of the table
    known: object = None  # the one that was answered
    words: tuple[str, ...] = ()
    said: tuple[int | None, bytes] | None = None
    again: Wall = UNNAMED  # a failure is asked again then


class LoopKeeper:
    """Keeps one project's loop. Belongs to the watchdog; verbs use parts of it."""

    def __init__(self, world: World, house: House, jobs: Children) -> None:
        self._world = world
        self._house = house
        self._jobs = jobs
        self._refs = git.Refs(world.disk, self._ask_git)
        self._answer = RefsAnswer()
        self._results = GateBook(house.store, world.locks.state)
        self._gates: dict[str, RunGate] = {}  # children of ours, by job
        self._history: History | None = None
        self._asked: tuple[str, str] = ("", "")
        self._fetched: tuple[str, str] | None = (
            None  # why the last fetch failed, its lock; None: told already
        )
        self._tree: TreeView | None = None  # the work tree as it was last seen ...
        # ... and for which commit and when it is asked for
        self._tree_asked: tuple[str, Wall] = ("", UNNAMED)
        self._unproved: dict[str, tuple[RunGate, GateResult]] = {}  # ended; which work tree it was is asked
        self._trees: dict[str, dict[str, str]] = {}  # the watched commit: its inboxes
        self._tree_tip = ""
        self._at = 0  # the phase last seen
        self.memory: LoopMemory | None = None

    # --- one turn -----------------------------------------------------------------------------------

    def turn(self, fleet: Fleet, *, alive: Iterable[str]) -> LoopPlan:
        """Look, decide, put pings into the outbox, remember, act. `alive`: loop agents that still run."""
        if fleet.loop is None:
            return LoopPlan(LoopMemory())
        memory = self.recall()
        seen = self.look(fleet, fleet.loop, alive=alive)
        plan = decide_loop(fleet, memory, seen, self._world.clock.wall())
        for ping in plan.pings:  # before memory moves on: a crash in between puts the same ones down again
            self._house.outbox.put(ping.agent, of_ping(ping))
        if plan.memory != memory:
            self._house.store.save("loop", to_plain(plan.memory))
            self.memory = plan.memory
        for note in plan.notes:
            self._record(note)
        trouble = self.perform(fleet, fleet.loop, plan.steps)
        return replace(plan, problems=(*plan.problems, *trouble)) if trouble else plan

    def recall(self) -> LoopMemory:
        """What is remembered; a damaged record counts as none, which makes this sight the first one."""
        if self.memory is None:
            data = self._house.store.load("loop")
            try:
                self.memory = from_plain(LoopMemory, data) if data else LoopMemory()
            except ValueError as error:
                self._house.store.troubles.append(f"state/loop.json: {error}; starting from what is seen")
                self.memory = LoopMemory()
        return self.memory

    def watch_paths(self, fleet: Fleet) -> tuple[str, ...]:
        """Files whose changes are worth an early look. Never directories: agents write a lot."""
        loop = fleet.loop
        if loop is None:
            return ()
        names = [p.status for p in loop.phases[self._at : self._at + 1]]
        files = [path for name in (*names, *loop.handoff.inboxes) for path in places(loop, name)]
        with contextlib.suppress(OSError):
            files += self._refs.watched_files(os.path.realpath(loop.handoff.repo), loop.handoff.branch)
        return tuple(dict.fromkeys(files))

    # --- looking ------------------------------------------------------------------------------------

    def look(self, fleet: Fleet, loop: Loop, *, alive: Iterable[str] = ()) -> LoopSeen:
        """One look. What cannot be read stands in `blind`."""
        self._collect(loop)
        blind: list[str] = []
        entry = self.book(loop).read(mend=True)
        place = entry.place
        self._at = place.index if place else 0
        phase = loop.phases[self._at] if place and self._at < len(loop.phases) else None
        view = self._git(loop, blind)
        status = self._status(loop, phase, blind) if phase else None
        done = status is not None and status.reading.done
        disk, trigger = self._world.disk, loop.on_complete.trigger_file if loop.on_complete else ""
        return LoopSeen(
            place=place,
            index=entry.index,
            trouble=entry.trouble,
            status=status,
            marker=disk.stat(self._marker) is not None,
            trigger=_identity(disk, trigger) if trigger else "",
            git=view,
            inboxes=self._inboxes(loop, view, blind),
            gates=self._results.read() if done and phase and phase.gates else (),
            jobs=self._jobs.keys() | self._unproved.keys(),
            alive=tuple(alive),
            next_trouble=phase_trouble(self._world.disk, fleet, loop, place.index + 1)
            if done and place
            else "",
            blind=tuple(blind),
        )

    @property
    def _marker(self) -> str:
        return f"{self._house.log_dir}/{MARKER}"

    def book(self, loop: Loop) -> PhaseBook:
        """The position's record."""
        return PhaseBook(self._house.store, self._world.locks.state, loop.state_file)

    def _git(self, loop: Loop, blind: list[str]) -> GitView | None:
        repo = loop.handoff.repo
        try:
            view = self._refs.view(repo, loop.handoff.branch)
        except OSError as error:
            blind.append(f"{repo}: {error.strerror or error}")
            return None
        except git.NotYet:
            return None
        if view is None:
            blind.append(
                f"{repo} is not there, so nothing is handed over: make it, or correct loop.handoff.repo"
            )
            return None
        fetched, self._fetched = self._fetched, None
        trouble, lock = fetched or ("", "")
        return replace(
            view,
            history=self._history,
            fetched=fetched is not None,
            fetch_trouble=trouble,
            fetch_lock=lock,
            tree=self._tree,
        )

    def _status(self, loop: Loop, phase: Phase, blind: list[str]) -> StatusView | None:
        try:
            return read_status(self._world.disk, loop, phase)
        except OSError as error:
            why = f"{error.strerror or error}; a status file is a plain file of at most 64 KiB"
            blind.append(f"{error.filename or phase.status}: {why}")
            return None

    def _inboxes(self, loop: Loop, view: GitView | None, blind: list[str]) -> tuple[InboxView, ...]:
        names = loop.handoff.inboxes
        if not names or view is None:
            return ()
        tip = view.tip
        paths = [
            os.path.normpath(os.path.join(sub, n)) for n in names for sub in (loop.handoff.state_subdir, "")
        ]
        tree = self._trees.get(tip)
        if tip and tree is None and TREE_JOB not in self._jobs.keys():  # noqa: SIM118 (a port, not a dict)
            self._tree_tip = tip
            words = git.tree_command(loop.handoff.repo, tip, paths)
            self._jobs.start(TREE_JOB, words, cwd=loop.handoff.repo, timeout=git.LOG_TIMEOUT_S, env=git.ENV)
        found = []
        for name in names:
            remote = None
            if tree is not None or not tip:
                both = (os.path.normpath(os.path.join(sub, name)) for sub in (loop.handoff.state_subdir, ""))
                remote = next((tree[p] for p in both if tree and p in tree), "")
            found.append(InboxView(name, self._inbox(loop, name, tip, blind), remote))
        return tuple(found)

    def _inbox(self, loop: Loop, name: str, tip: str, blind: list[str]) -> str | None:
        for path in places(loop, name):
            try:
                return git.blob_hash(self._world.disk.read(path), tip)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                blind.append(f"{path}: {error.strerror or error}")
                return None
        return ""

    # --- children -----------------------------------------------------------------------------------

    def _collect(self, loop: Loop) -> None:
        """Take what children answered since the last look."""
        for ended in self._jobs.poll():
            if ended.key == REFS_JOB:
                self._hear_refs(ended.code, ended.output or ended.why.encode())
            elif ended.key == FETCH_JOB:
                self._fetched = _fetch_end(ended)
            elif ended.key == HISTORY_JOB:
                self._history = git.parse_history(*self._asked, ended.code, ended.output)
            elif ended.key == TREE_JOB:
                if ended.code == 0:
                    self._trees = {self._tree_tip: git.parse_tree(ended.output)}
            elif ended.key == WORKTREE_JOB:
                self._see_tree(loop, ended)
            elif ended.key in self._gates:
                self._judge(loop, self._gates.pop(ended.key), ended)

    def _ask_git(self, repo: str, words: Sequence[str], stamp: object) -> tuple[int | None, bytes]:
        """The last answer; the question is put again when the table changed, and nobody waits for it."""
        answer, question = self._answer, (tuple(words), stamp)
        if answer.words != tuple(words):
            self._jobs.cancel(REFS_JOB)
            self._answer = answer = RefsAnswer(words=tuple(words))
        due = question != answer.known or (answer.again and self._world.clock.wall() >= answer.again)
        if due and REFS_JOB not in self._jobs.keys():  # noqa: SIM118 (a port, not a dict)
            answer.asked = question
            why = self._jobs.start(REFS_JOB, words, cwd=repo, timeout=git.ASK_TIMEOUT_S, env=git.ENV)
            if why:
                self._hear_refs(None, why.encode())
        if answer.said is None:
            raise git.NotYet
        return answer.said

    def _hear_refs(self, code: int | None, output: bytes) -> None:
        answer = self._answer
        answer.known, answer.said = answer.asked, (code, output)
        failed = code != 0 and (code != 1 or bool(output.strip()))
        answer.again = later(self._world.clock.wall(), ASK_AGAIN_S) if failed else UNNAMED

    def _judge(self, loop: Loop, step: RunGate, ended: JobEnd) -> None:
        result = gate_result(step, ended, loop, self._world.clock.wall())
        if step.tree is not None and not step.gate.clean:
            self._unproved[ended.key] = (step, result)
            self._jobs.cancel(WORKTREE_JOB)  # it may have looked before the gate ended
            why = self._look_at_tree(loop)
            if not why:
                return
            del self._unproved[ended.key]
            result = replace(result, ok=False, said=why)
        self._keep(result)

    def _see_tree(self, loop: Loop, ended: JobEnd) -> None:
        """The state of the work tree is known; so is what the gates that waited for it were run on."""
        head, at = self._tree_asked
        if ended.code != 0:
            waiting = [
                replace(r, ok=False, said=f"git status: {_said(ended)}") for _, r in self._unproved.values()
            ]
        else:
            disk, repo = self._world.disk, loop.handoff.repo
            self._tree = tree = git.parse_changes(disk, repo, head, ended.output, at)
            waiting = [proved_for(r, step, tree) for step, r in self._unproved.values()]
        self._unproved.clear()
        for result in waiting:
            self._keep(result)

    def _look_at_tree(self, loop: Loop) -> str:
        repo = loop.handoff.repo
        try:
            view = self._refs.view(repo, loop.handoff.branch)
        except OSError as error:
            return f"{repo}: {error.strerror or error}"
        except git.NotYet:
            return f"{repo}: git has not answered yet"
        self._tree_asked = (view.head if view else "", self._world.clock.wall())
        words = git.changes_command(repo, self._house.log_dir)
        return self._jobs.start(WORKTREE_JOB, words, cwd=repo, timeout=git.LOG_TIMEOUT_S, env=git.ENV)

    def _keep(self, result: GateResult) -> None:
        self._results.keep(result)
        if result.ok:  # a failure is recorded when it is told
            facts = (
                ("phase", result.phase),
                ("commit", commit_of(result.key)),
                ("seconds", round(result.seconds, 3)),
            )
            self._record(Note(EventType.GATE_PASSED, f"gate {result.gate + 1}: {result.said}", facts))

    # --- acting -------------------------------------------------------------------------------------

    def perform(self, fleet: Fleet, loop: Loop, steps: Iterable[Step]) -> tuple[str, ...]:
        """Carry the steps out in order; what went wrong comes back in words."""
        trouble = []
        for step in steps:
            self._world.point(f"loop.{type(step).__name__.lower()}")
            why = self._do(fleet, loop, step)
            if why:
                trouble.append(why)
        return tuple(trouble)

    def _do(self, fleet: Fleet, loop: Loop, step: Step) -> str:
        match step:
            case Move():
                return self._move(fleet, loop, step)
            case WriteMarker():
                self._write_marker(step)
            case ClearMarker():
                self._world.disk.remove(self._marker)
            case ConsumeTrigger():
                self._consume(loop, step)
            case RunGate():
                return self._run_gate(loop, step)
            case LookAtTree():
                return self._look_at_tree(loop)
            case Cancel():
                self._gates.pop(step.job, None)
                self._unproved.pop(step.job, None)
                self._jobs.cancel(step.job)
            case Fetch():
                words = git.fetch_command(step.repo)
                why = self._jobs.start(
                    FETCH_JOB, words, cwd=step.repo, timeout=git.FETCH_TIMEOUT_S, env=git.ENV
                )
                self._fetched = (why, "") if why else None
            case ReadHistory():
                self._asked, self._history = (step.base, step.tip), None
                words = git.history_command(step.repo, step.base, step.tip)
                return self._jobs.start(
                    HISTORY_JOB, words, cwd=step.repo, timeout=git.LOG_TIMEOUT_S, env=git.ENV
                )
        return ""

    def _move(self, fleet: Fleet, loop: Loop, step: Move) -> str:
        """All kickoffs of the new phase are built once more before the record says that it has begun."""
        advancing = step.note.type == EventType.PHASE_ADVANCED
        why = phase_trouble(self._world.disk, fleet, loop, step.to.index) if advancing else ""
        why = why or self.book(loop).move(step.expect, step.to)
        if not why:
            self._world.point("loop.moved")
            self._record(step.note)
        return why

    def _write_marker(self, step: WriteMarker) -> None:
        write_marker(self._world.disk, self._house.log_dir, step.ids, self._world.clock.wall())
        self._record(step.note)

    def _consume(self, loop: Loop, step: ConsumeTrigger) -> None:
        if loop.on_complete and _identity(self._world.disk, loop.on_complete.trigger_file) == step.identity:
            self._world.disk.remove(loop.on_complete.trigger_file)

    def _run_gate(self, loop: Loop, step: RunGate) -> str:
        job = job_of(step)
        argv, env = gate_command(loop, step, self._house.log_dir)
        log = gate_log(self._house.log_dir, step)
        why = self._jobs.start(job, argv, cwd=loop.handoff.repo, timeout=step.gate.timeout, log=log, env=env)
        if not why:
            self._gates[job] = step
            facts = (("phase", step.phase), ("commit", commit_of(step.key)), ("log", log))
            self._record(Note(EventType.GATE_STARTED, f"gate {step.index + 1} ({name_of(step.gate)})", facts))
        return why

    def _record(self, note: Note) -> None:
        facts: dict[str, Any] = dict(note.facts)
        self._house.events.record(note.type, reason=note.reason, **facts)


def _identity(disk: Disk, path: str) -> str:
    """Which file of that name it is; empty when there is none."""
    found = disk.stat(path)
    return f"{found.inode}-{found.mtime_ns}-{found.size}" if found else ""


def _fetch_end(ended: JobEnd) -> tuple[str, str] | None:
    """Why a fetch failed, and the lock it met; None when an agent's own git was faster: as good."""
    if ended.code == 0:
        return "", ""
    lock = re.search(rb"Unable to create '([^'\n]+\.lock)': File exists", ended.output)
    if lock:
        return "", lock[1].decode("utf-8", "replace")
    return None if b"cannot lock ref" in ended.output else (_said(ended), "")


def _said(ended: JobEnd) -> str:
    if ended.code is None:
        return f"ended at {ended.why}"
    lines = ended.output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {ended.code}"
