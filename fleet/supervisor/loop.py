"""The loop as the watchdog holds it: recall, look, keep what was decided, do it. Deciding is core's.

Nothing here waits: git and gates are children (`fleet/supervisor/loop_children.py`) whose answers arrive at a
later look. The order is that of every decision (`fleet/core/decision.py`): messages, memory, notes, effects.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import assert_never

from fleet.core.codec import from_plain, to_plain
from fleet.core.decision import Result
from fleet.core.desired import Want
from fleet.core.effects import (
    CallTask,
    CancelGate,
    ClearMarker,
    ConsumeTrigger,
    Fetch,
    LookAtTree,
    LoopEffect,
    Move,
    ReadHistory,
    RunGate,
    WriteMarker,
)
from fleet.core.loop.decide_loop import LoopDecision
from fleet.core.loop.loop_case import GateResult, GitView, InboxView, Job, LoopMemory, LoopSeen, StatusView
from fleet.core.model import Fleet, Loop, Phase
from fleet.core.words import Outcome
from fleet.host import git
from fleet.ports import Children
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.bookkeeper import Bookkeeper
from fleet.supervisor.loop_children import LoopChildren
from fleet.supervisor.phase import MARKER, identity, phase_trouble, places, read_status, write_marker
from fleet.supervisor.world import World

DOCUMENT = "loop"
DONE = Result(Outcome.DONE)


class LoopKeeper:
    """Keeps one project's loop."""

    def __init__(self, world: World, house: House, jobs: Children[Job]) -> None:
        self._world = world
        self._house = house
        self._children = LoopChildren(world, house, jobs)
        self.books = Bookkeeper(world, house)
        self._at = 0  # the phase last seen
        self.memory: LoopMemory | None = None

    def recall(self) -> LoopMemory:
        """What is remembered; a damaged record counts as none, which makes this sight the first one."""
        if self.memory is None:
            data = self._house.store.load(DOCUMENT)
            try:
                self.memory = from_plain(LoopMemory, data) if data else LoopMemory()
            except ValueError as error:
                self._house.store.troubles.append(f"state/loop.json: {error}; starting from what is seen")
                self.memory = LoopMemory()
        return self.memory

    def keep(self, decision: LoopDecision) -> None:
        """Put down messages, memory and notes. A crash in between decides the same again."""
        for agent, message in decision.messages:
            self._house.outbox.put(agent, message)
        if decision.memory != self.recall():
            self._house.store.save(DOCUMENT, to_plain(decision.memory))
            self.memory = decision.memory
        for note in decision.notes:
            self._house.events.note(note)

    # --- looking: what cannot be read stands in `blind` ------------------------------------------------

    def look(self, fleet: Fleet, loop: Loop, *, alive: Iterable[str] = ()) -> LoopSeen:
        """Position, status file, repository, inboxes, answers of children. `alive`: agents that run."""
        self._children.hear(loop)
        blind: list[str] = []
        entry = self._book(loop).read(mend=True)
        self._at = entry.place.index if entry.place else 0
        here = loop.phases[self._at : self._at + 1] if entry.place else ()
        view = self._git(loop, blind)
        status = self._status(loop, here[0], blind) if here else None
        marker = self._world.disk.stat(self._marker) is not None
        trigger, called = self._completion(loop, marker=marker)
        inboxes = self._inboxes(loop, view, blind)
        gates: tuple[GateResult, ...] = ()
        trouble = ""
        if status is not None and status.reading.done:
            gates = self._children.results.read() if here[0].gates else ()
            trouble = phase_trouble(self._world.disk, fleet, loop, self._at + 1)
        return LoopSeen(
            place=entry.place,
            index=entry.index,
            trouble=entry.trouble,
            status=status,
            marker=marker,
            trigger=trigger,
            called=called,
            git=view,
            inboxes=inboxes,
            gates=gates,
            jobs=self._children.at_work(),
            alive=tuple(alive),
            next_trouble=trouble,
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

    def _completion(self, loop: Loop, *, marker: bool) -> tuple[str, str]:
        """The trigger file that is there, and after the last phase the call that its task agent has."""
        wish = loop.on_complete
        if wish is None:
            return "", ""
        trigger = identity(self._world.disk, wish.trigger_file)
        entry = self._house.desired.load().entries.get(wish.run) if marker else None
        return trigger, entry.task if entry is not None else ""

    def _git(self, loop: Loop, blind: list[str]) -> GitView | None:
        repo = loop.handoff.repo
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
        return self._children.answered(view)

    def _status(self, loop: Loop, phase: Phase, blind: list[str]) -> StatusView | None:
        try:
            return read_status(self._world.disk, loop, phase)
        except OSError as error:
            why = f"{error.strerror or error}; a status file is a plain file of at most 64 KiB"
            blind.append(f"{error.filename or phase.status}: {why}")
            return None

    def _inboxes(self, loop: Loop, view: GitView | None, blind: list[str]) -> tuple[InboxView, ...]:
        """Each inbox as it lies in the work tree and as it is committed."""
        spec = loop.handoff
        if not spec.inboxes or view is None:
            return ()
        tip = view.tip
        both = (spec.state_subdir, "")
        paths = {n: [os.path.normpath(os.path.join(d, n)) for d in both] for n in spec.inboxes}
        tree = self._children.tree_of(loop, tip, [p for own in paths.values() for p in own])
        return tuple(
            InboxView(name, self._inbox(loop, name, tip, blind), _committed(tree, own))
            for name, own in paths.items()
        )

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

    # --- doing: what an effect expects is checked again; what does not fit any more is left ------------

    def do(self, fleet: Fleet, loop: Loop, effect: LoopEffect) -> Result:
        """Carry out one effect; says what became of it. Nothing is retried: the next look decides again."""
        self._world.point(f"loop.{type(effect).__name__.lower()}")
        children = self._children
        match effect:
            case Move():
                return self._move(fleet, loop, effect)
            case WriteMarker():
                return self._write_marker(effect)
            case ClearMarker():
                self._world.disk.remove(self._marker)
                return DONE
            case ConsumeTrigger():
                return self._consume(loop, effect)
            case CallTask():
                return self._call(fleet, effect)
            case RunGate():
                return _started(children.run_gate(loop, effect))
            case CancelGate():
                children.forget_gate(effect.job)
                return DONE
            case LookAtTree():
                return _started(children.ask_tree(loop))
            case Fetch():
                return DONE if children.fetch(effect.repo) else Result(Outcome.REFUSED)
            case ReadHistory():
                return _started(children.ask_history(effect))
            case _:
                assert_never(effect)

    def _move(self, fleet: Fleet, loop: Loop, effect: Move) -> Result:
        """All kickoffs of the new phase are built once more before the record says that it has begun."""
        why = phase_trouble(self._world.disk, fleet, loop, effect.to.index) if effect.startable else ""
        if why:
            return Result(Outcome.REFUSED, why)
        moved = self._book(loop).move(effect.expect, effect.to)
        if moved.ok:
            self._world.point("loop.moved")
            self._house.events.note(effect.note)
        return moved

    def _write_marker(self, effect: WriteMarker) -> Result:
        write_marker(self._world.disk, self._house.log_dir, effect.ids, self._world.clock.wall())
        self._house.events.note(effect.note)
        return DONE

    def _consume(self, loop: Loop, effect: ConsumeTrigger) -> Result:
        disk, path = self._world.disk, loop.on_complete.trigger_file if loop.on_complete else ""
        if not path or identity(disk, path) != effect.identity:
            return Result(Outcome.STALE)  # another one is there: the next look tells of it
        disk.remove(path)
        return DONE

    def _call(self, fleet: Fleet, effect: CallTask) -> Result:
        """The task agent is wanted up. A call is a fresh try: failed starts are forgotten."""
        name, token = effect.agent, effect.token
        entry = self._house.desired.load().entries.get(name)
        if all(member.name != name for member in fleet.members):
            return Result(Outcome.STALE)
        if entry is not None and entry.task == token:
            return Result(Outcome.EXISTS)
        changes = {"want": Want.UP, "paused": False, "frozen": False, "task": token}
        self._house.desired.update(
            lambda d: d.set([name], **changes).call([name]).pardon([name], window=False, budget=False)
        )
        return DONE

    # --- files ----------------------------------------------------------------------------------------

    @property
    def _marker(self) -> str:
        return f"{self._house.log_dir}/{MARKER}"

    def _book(self, loop: Loop) -> PhaseBook:
        return PhaseBook(self._house.store, self._world.locks.state, loop.state_file)


def _committed(tree: dict[str, str] | None, paths: Sequence[str]) -> str | None:
    """The hash of an inbox in a commit: empty when it is not there, None while it is not known."""
    return None if tree is None else next((tree[path] for path in paths if path in tree), "")


def _started(why: str) -> Result:
    """What became of a child that was to be started."""
    return Result(Outcome.REFUSED, why) if why else DONE
