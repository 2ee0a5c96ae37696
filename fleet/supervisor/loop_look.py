"""One look at the loop: its position, its status file, its repository, its inboxes, its children's answers.

Nothing here waits: git and gates are children whose answers arrive on a later look. What cannot be read
stands in `blind`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from fleet.core.decision import Note
from fleet.core.effects import RunGate
from fleet.core.loop.gates import commit_of
from fleet.core.loop.loop_case import (
    GateJob,
    GateResult,
    GitView,
    InboxView,
    Job,
    LoopJob,
    LoopSeen,
    StatusView,
)
from fleet.core.model import Fleet, Loop, Phase
from fleet.core.words import EventType
from fleet.host import git
from fleet.ports import JobEnd
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.gate_runs import GateBook, gate_result, proved_for
from fleet.supervisor.loop_children import FetchEnd, LoopChildren, Unproved
from fleet.supervisor.phase_files import MARKER, identity, phase_trouble, places, read_status
from fleet.supervisor.world import World


class LoopLook:
    """Looks at one project's loop."""

    def __init__(self, world: World, house: House, children: LoopChildren) -> None:
        self._world = world
        self._house = house
        self._children = children
        self._results = GateBook(house.store, world.locks.state)
        self._at = 0  # the phase last seen

    def look(self, fleet: Fleet, loop: Loop, *, alive: Iterable[str] = ()) -> LoopSeen:
        """One look. `alive`: loop agents that still run."""
        self._hear(loop)
        blind: list[str] = []
        entry = PhaseBook(self._house.store, self._world.locks.state, loop.state_file).read(mend=True)
        place = entry.place
        self._at = place.index if place else 0
        phase = loop.phases[self._at] if place and self._at < len(loop.phases) else None
        view = self._git(loop, blind)
        status = self._status(loop, phase, blind) if phase else None
        done = status is not None and status.reading.done
        disk, wish = self._world.disk, loop.on_complete
        marker = disk.stat(f"{self._house.log_dir}/{MARKER}") is not None
        return LoopSeen(
            place=place,
            index=entry.index,
            trouble=entry.trouble,
            status=status,
            marker=marker,
            trigger=identity(disk, wish.trigger_file) if wish else "",
            called=self._called(wish.run) if wish and marker else "",
            git=view,
            inboxes=self._inboxes(loop, view, blind),
            gates=self._results.read() if done and phase and phase.gates else (),
            jobs=self._children.at_work(),
            alive=tuple(alive),
            next_trouble=phase_trouble(disk, fleet, loop, place.index + 1) if done and place else "",
            blind=tuple(blind),
        )

    def watch_paths(self, loop: Loop) -> tuple[str, ...]:
        """Files whose changes are worth an early look. Never directories: agents write a lot."""
        names = [p.status for p in loop.phases[self._at : self._at + 1]]
        files = [path for name in (*names, *loop.handoff.inboxes) for path in places(loop, name)]
        with contextlib.suppress(OSError):
            repo = os.path.realpath(loop.handoff.repo)
            files += self._children.refs.watched_files(repo, loop.handoff.branch)
        return tuple(dict.fromkeys(files))

    def _called(self, task: str) -> str:
        entry = self._house.desired.load().entries.get(task)
        return entry.task if entry is not None else ""

    def _git(self, loop: Loop, blind: list[str]) -> GitView | None:
        repo, errands = loop.handoff.repo, self._children.errands
        try:
            view = self._children.view(loop)
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
        fetched, errands.fetched = errands.fetched, None
        ended = fetched or FetchEnd()
        return replace(
            view,
            history=errands.history,
            fetched=fetched is not None,
            fetch_trouble=ended.trouble,
            fetch_lock=ended.lock,
            tree=errands.tree,
        )

    def _status(self, loop: Loop, phase: Phase, blind: list[str]) -> StatusView | None:
        try:
            return read_status(self._world.disk, loop, phase)
        except OSError as error:
            why = f"{error.strerror or error}; a status file is a plain file of at most 64 KiB"
            blind.append(f"{error.filename or phase.status}: {why}")
            return None

    def _inboxes(self, loop: Loop, view: GitView | None, blind: list[str]) -> tuple[InboxView, ...]:
        names, spec, children = loop.handoff.inboxes, loop.handoff, self._children
        if not names or view is None:
            return ()
        tip = view.tip
        paths = {n: [os.path.normpath(os.path.join(d, n)) for d in (spec.state_subdir, "")] for n in names}
        tree = children.errands.inboxes.get(tip)
        if tip and tree is None and LoopJob.INBOXES not in children.jobs.keys():  # noqa: SIM118 (a port)
            children.errands.inboxes_asked = tip
            words = git.tree_command(spec.repo, tip, [p for both in paths.values() for p in both])
            children.ask_git(LoopJob.INBOXES, words, spec.repo, git.LOG_TIMEOUT_S)
        found = []
        for name in names:
            remote = None
            if tree is not None or not tip:
                remote = next((tree[p] for p in paths[name] if tree and p in tree), "")
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

    # --- what children answered ---------------------------------------------------------------------

    def _hear(self, loop: Loop) -> None:
        """Take in what children answered since the last look."""
        for ended in self._children.jobs.poll():
            if isinstance(ended.key, GateJob):
                run = self._children.errands.gates.pop(ended.key, None)
                if run is not None:
                    self._hear_gate(loop, ended.key, run, ended)
            else:
                self._hear_git(loop, ended.key, ended)

    def _hear_git(self, loop: Loop, job: LoopJob, ended: JobEnd[Job]) -> None:
        errands = self._children.errands
        match job:
            case LoopJob.REFS:
                self._children.hear_refs(ended.code, ended.output or ended.why.encode())
            case LoopJob.FETCH:
                errands.fetched = _fetch_end(ended)
            case LoopJob.HISTORY:
                errands.history = git.parse_history(*errands.history_asked, ended.code, ended.output)
            case LoopJob.INBOXES:
                if ended.code == 0:
                    errands.inboxes = {errands.inboxes_asked: git.parse_tree(ended.output)}
            case LoopJob.WORKTREE:
                self._hear_tree(loop, ended)
            case _:
                assert_never(job)

    def _hear_gate(self, loop: Loop, job: GateJob, run: RunGate, ended: JobEnd[Job]) -> None:
        """Judge what a gate said; where the work tree matters, once that was looked at again."""
        result = gate_result(run, ended, loop, self._world.clock.wall())
        if run.tree is not None and not run.gate.clean:
            unproved = self._children.errands.unproved
            unproved[job] = Unproved(run, result)
            self._children.jobs.cancel(LoopJob.WORKTREE)  # it may have looked before the gate ended
            why = self._children.ask_tree(loop)
            if not why:
                return
            del unproved[job]
            result = replace(result, ok=False, said=why)
        self._keep(result)

    def _hear_tree(self, loop: Loop, ended: JobEnd[Job]) -> None:
        """The state of the work tree is known; so is what the gates that waited for it were run on."""
        errands = self._children.errands
        (head, at), waiting = errands.tree_asked, list(errands.unproved.values())
        if ended.code != 0:
            why = f"git status: {_said(ended)}"
            results = [replace(one.result, ok=False, said=why) for one in waiting]
        else:
            disk, repo = self._world.disk, loop.handoff.repo
            errands.tree = tree = git.parse_changes(disk, repo, head, ended.output, at)
            results = [proved_for(one.result, one.run, tree) for one in waiting]
        errands.unproved.clear()
        for result in results:
            self._keep(result)

    def _keep(self, result: GateResult) -> None:
        self._results.keep(result)
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
