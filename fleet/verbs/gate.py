"""Run the gates of a phase and show their results.

Runs them as the watchdog does, in order, and stops at the first that fails. Without PHASE it takes
the current phase. The results are kept: a gate that failed for a reason outside the commit can be
passed here.

Example: agents.py gate p1 --all
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from fleet.core.loop.gates import name_of, plan_gate
from fleet.core.loop.loop_case import LoopJob, LoopSeen
from fleet.core.loop.phases import place_at
from fleet.host import git
from fleet.host.children import Jobs
from fleet.host.disk import RealDisk
from fleet.supervisor.gate_runs import GateBook, gate_command, gate_log, gate_result, proved_for
from fleet.supervisor.operator import Operator
from fleet.supervisor.phase import read_status, watched
from fleet.times.moment import UNNAMED
from fleet.verbs.arguments import flag, positional
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.phase import entry_of, index_of, show

if TYPE_CHECKING:
    from fleet.core.effects import RunGate
    from fleet.core.loop.loop_case import GateResult, Job, Place, TreeView
    from fleet.core.model import Fleet, Loop
    from fleet.ports import JobEnd

GROUP = "run"

POLL_S = 0.02


class Ran(StrEnum):
    """How a gate went."""

    PASSED = "pass"
    FAILED = "FAIL"
    NOT_RUN = "not run"


COLOURS = {Ran.PASSED: "green", Ran.FAILED: "red", Ran.NOT_RUN: "dim"}


ARGUMENTS = (
    positional(
        "phase", "a phase id or its number from 0 (default: the current phase)", nargs="?", metavar="PHASE"
    ),
    flag("--all", "run the remaining gates after a failure"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Run the gates. Exit 1 when one failed."""
    fleet = running_fleet(args, io, trust=True)
    if fleet.loop is None:
        raise Fail(f"{fleet.config_path} has no [loop], so there are no gates", code=2)
    loop = fleet.loop
    place, seen = _position(fleet, loop, args.phase)
    phase = loop.phases[place.index]
    results: list[GateResult | None] = []
    if phase.gates:
        with _Runner(fleet, loop) as runner:
            for index in range(len(phase.gates)):
                failed = any(r is not None and not r.ok for r in results)
                seen = runner.with_tree(seen)
                step = plan_gate(phase, index, place, seen)
                results.append(None if failed and not args.all else runner.run(step))
    passed = all(r is not None and r.ok for r in results)
    rows = [_row(index, name_of(g), r) for index, (g, r) in enumerate(zip(phase.gates, results, strict=True))]
    if args.json:
        commit = seen.git.head if seen.git else ""
        io.json({"phase": phase.id, "commit": commit, "passed": passed, "gates": rows})
    elif not rows:
        io.print(f"phase {phase.id} has no gates")
    else:
        header = ("gate", "name", "result", "s", "said", "log")
        shown = [
            r | {"result": (r["result"], COLOURS[r["result"]]), "s": f"{r['seconds']:.1f}"} for r in rows
        ]
        io.table(header, [[r[name] for name in header] for r in shown], spare=("gate", "s"))
    return 0 if passed else 1


def _row(index: int, name: str, result: GateResult | None) -> dict[str, Any]:
    row = {"gate": index + 1, "name": name}
    if result is None:
        return row | {"result": Ran.NOT_RUN, "seconds": 0.0, "said": "", "log": "", "value": None}
    seconds, word = round(result.seconds, 3), Ran.PASSED if result.ok else Ran.FAILED
    return row | {
        "result": word, "seconds": seconds, "said": result.said, "log": result.log, "value": result.value,
    }  # fmt: skip


def _position(fleet: Fleet, loop: Loop, word: str | None) -> tuple[Place, LoopSeen]:
    """The phase meant, and what its gates depend on."""
    disk = RealDisk()
    now = entry_of(fleet, loop, disk).place
    if word is None:
        facts = show(fleet, loop)
        if facts["held"] or facts["complete"]:
            why = facts["held"] or "the sequence is complete"
            raise Fail(f"there is no current phase: {why}", hint="agents.py gate PHASE", code=2)
        index = facts["index"]
    else:
        index = index_of(loop, word)
    current = now is not None and now.index == index
    place = now if now is not None and current else place_at(loop, index, UNNAMED, before=now)
    try:
        status = read_status(disk, loop, loop.phases[index])
    except OSError:
        status = None
    repo = loop.handoff.repo
    try:
        seen = LoopSeen(place=place, status=status, git=watched(disk, loop))
    except OSError as error:
        raise Fail(f"{repo}: {error.strerror or error}", hint=f"git -C {repo} status") from None
    if seen.git is None:
        raise Fail(f"{loop.handoff.repo} is missing; gates run in it", hint="correct loop.handoff.repo")
    return place, seen


class _Runner:
    """Runs one gate after the other, and leaves nothing running."""

    def __init__(self, fleet: Fleet, loop: Loop) -> None:
        self.loop = loop
        self.operator: Operator = Operator(fleet)
        self.operator.make_room()
        self.jobs: Jobs[Job] = Jobs(self.operator.world.clock.mono)
        self.book = GateBook(self.operator.house.store, self.operator.world.locks.state)

    def run(self, step: RunGate) -> GateResult:
        """Run it to its end and keep what it said."""
        log_dir, wall = self.operator.house.log_dir, self.operator.world.clock.wall
        argv, env = gate_command(self.loop, step, log_dir)
        timeout, log = step.gate.timeout, gate_log(log_dir, step)
        why = self.jobs.start(step.job, argv, cwd=self.loop.handoff.repo, timeout=timeout, log=log, env=env)
        if why:
            raise Fail(f"gate {step.index + 1} cannot be started: {why}")
        result = gate_result(step, self._end(), self.loop, wall())
        if step.tree is not None and not step.gate.clean:
            result = proved_for(result, step, self._tree(step.tree.head))
        self.book.keep(result)
        return result

    def with_tree(self, seen: LoopSeen) -> LoopSeen:
        """The same with the state of the work tree, as it is now."""
        if seen.git is None or not seen.git.head:
            return seen
        return replace(seen, git=seen.git._replace(tree=self._tree(seen.git.head)))

    def _tree(self, head: str) -> TreeView:
        repo, world = self.loop.handoff.repo, self.operator.world
        words = git.changes_command(repo, self.operator.house.log_dir)
        at = world.clock.wall()
        why = self.jobs.start(LoopJob.WORKTREE, words, cwd=repo, timeout=git.LOG_TIMEOUT_S, env=git.ENV)
        ended = None if why else self._end()
        if ended is None or ended.code != 0:
            said = why or (ended.output.decode("utf-8", "replace").strip() if ended else "")
            raise Fail(f"{repo}: the state of the work tree is unknown: {said}", hint=f"git -C {repo} status")
        return git.parse_changes(world.disk, repo, head, ended.output, at)

    def _end(self) -> JobEnd[Job]:
        while not (ended := self.jobs.poll()):
            self.operator.world.clock.sleep(POLL_S)
        return ended[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.jobs.close()
        self.operator.locks.nudge()
