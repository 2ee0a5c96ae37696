"""Carries out one effect of the loop. What it expects is checked again; what does not fit any more is left.

The next look decides again, so nothing is retried here.
"""

from __future__ import annotations

from typing import assert_never

from fleet.core.decision import Note, Result
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
from fleet.core.loop.gates import commit_of, name_of
from fleet.core.loop.loop_case import LoopJob
from fleet.core.model import Fleet, Loop
from fleet.core.words import EventType, Outcome
from fleet.host import git
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.gate_runs import gate_command, gate_log
from fleet.supervisor.loop_children import FetchEnd, LoopChildren
from fleet.supervisor.phase_files import MARKER, identity, phase_trouble, write_marker
from fleet.supervisor.world import World

DONE = Result(Outcome.DONE)


class LoopExecutor:
    """Carries out what was decided about one project's loop."""

    def __init__(self, world: World, house: House, children: LoopChildren) -> None:
        self._world = world
        self._house = house
        self._children = children

    def do(self, fleet: Fleet, loop: Loop, effect: LoopEffect) -> Result:
        """Carry it out, and say what became of it."""
        self._world.point(f"loop.{type(effect).__name__.lower()}")
        match effect:
            case Move():
                return self._move(fleet, loop, effect)
            case WriteMarker():
                return self._write_marker(effect)
            case ClearMarker():
                self._world.disk.remove(f"{self._house.log_dir}/{MARKER}")
                return DONE
            case ConsumeTrigger():
                return self._consume(loop, effect)
            case CallTask():
                return self._call(fleet, effect)
            case RunGate():
                return self._run_gate(loop, effect)
            case CancelGate():
                self._children.forget_gate(effect.job)
                return DONE
            case LookAtTree():
                return _started(self._children.ask_tree(loop))
            case Fetch():
                return self._fetch(effect)
            case ReadHistory():
                return self._read_history(effect)
            case _:
                assert_never(effect)

    def _move(self, fleet: Fleet, loop: Loop, effect: Move) -> Result:
        """All kickoffs of the new phase are built once more before the record says that it has begun."""
        why = phase_trouble(self._world.disk, fleet, loop, effect.to.index) if effect.startable else ""
        if why:
            return Result(Outcome.REFUSED, why)
        book = PhaseBook(self._house.store, self._world.locks.state, loop.state_file)
        moved = book.move(effect.expect, effect.to)
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

    def _run_gate(self, loop: Loop, effect: RunGate) -> Result:
        argv, env = gate_command(loop, effect, self._house.log_dir)
        log, repo = gate_log(self._house.log_dir, effect), loop.handoff.repo
        timeout = effect.gate.timeout
        why = self._children.jobs.start(effect.job, argv, cwd=repo, timeout=timeout, log=log, env=env)
        if not why:
            self._children.errands.gates[effect.job] = effect
            facts = (("phase", effect.phase), ("commit", commit_of(effect.key)), ("log", log))
            reason = f"gate {effect.index + 1} ({name_of(effect.gate)})"
            self._house.events.note(Note(EventType.GATE_STARTED, reason, facts))
        return _started(why)

    def _fetch(self, effect: Fetch) -> Result:
        words = git.fetch_command(effect.repo)
        why = self._children.ask_git(LoopJob.FETCH, words, effect.repo, git.FETCH_TIMEOUT_S)
        self._children.errands.fetched = FetchEnd(why) if why else None
        return Result(Outcome.REFUSED) if why else DONE  # the next look tells why

    def _read_history(self, effect: ReadHistory) -> Result:
        errands = self._children.errands
        errands.history_asked, errands.history = (effect.base, effect.tip), None
        words = git.history_command(effect.repo, effect.base, effect.tip)
        return _started(self._children.ask_git(LoopJob.HISTORY, words, effect.repo, git.LOG_TIMEOUT_S))


def _started(why: str) -> Result:
    """What became of a child that was to be started."""
    return Result(Outcome.REFUSED, why) if why else DONE
