"""A verb that starts or stops, killed at each of its port calls, beside a watchdog and without one.

Its wish is on disk or it is not. What is on disk is carried out: by the watchdog, or by the next verb where
there is none. No agent lives twice, and a `down` that says it is done has left no process.
"""

from __future__ import annotations

import errno
from functools import cache
from random import Random

import pytest

from tests.sim.declared import Declared
from tests.sim.names import ADVERSARY, BUILDER, CLOSER, PHASES
from tests.sim.scenes import agent, at, story, told
from tests.sim.simulation import Simulation
from tests.sim.verbs import Verb

pytestmark = pytest.mark.sim

LINES = ("up a", "restart a", "down a", "down")
TYPED, AGAIN, LOOKED = 200.0, 320.0, 310.0  # universe time
ABSENT_S = 700.0  # longer than all of that


def _processes(sim: Simulation, name: str) -> list[str]:
    return [p.name for p in sim.machine.table.by_pid.values() if p.agent == name and p.owner == "ours"]


def _wrong(sim: Simulation) -> list[str]:
    """What is not as the wishes on disk say."""
    found = []
    for member in sim.machine.members.values():
        lives = member.agent is not None and member.agent.alive
        if member.wish == "up" and not lives:
            found.append(f"{member.name} is wanted and does not live")
        if member.wish == "down" and (left := _processes(sim, member.name)):
            found.append(f"{member.name} is unwanted, and {left} are there")
    return found


class Scene:
    """One verb, killed at that port call, and typed again later. `call` 0: it is not killed."""

    def __init__(self, line: str, call: int, *, watched: bool) -> None:
        self.sim = story(Declared("a"), Declared("b"), hours=0.4)
        self.sim.machine.temper.daemons = 0.5
        self.verbs: list[Verb] = []
        self.found: list[str] = []
        everyone = ["a", "b"] if line == "down" else ["a"]
        words = tuple(line.split())

        def type_it(kill: int) -> None:
            self.verbs.append(self.sim.type_words(words, everyone, Random(7), kill=kill))

        if line == "up a":
            at(self.sim, 100, lambda: self.sim.type_words(("down", "a"), ["a"], Random(2)))
        if not watched:
            at(self.sim, TYPED - 10, lambda: self.sim.kill_watchdog(ABSENT_S))
        at(self.sim, TYPED, lambda: type_it(call))
        if watched and line != "down":  # a bare one ends the watchdog first, so only a verb goes on with it
            at(self.sim, LOOKED, lambda: self.found.extend(_wrong(self.sim)))
        at(self.sim, AGAIN, lambda: type_it(0))
        at(self.sim, AGAIN + 120, lambda: self.found.extend(_wrong(self.sim)))

    def wrong(self) -> list[str]:
        """What went wrong, a line each."""
        failure = self.sim.run().failure
        codes = [verb.code for verb in self.verbs]
        again = [] if codes[1:] == [0] else [f"the second one ended with {codes[1:]}: {self._said()}"]
        return [*([failure] if failure else []), *self.found, *again]

    def _said(self) -> str:
        return self.verbs[-1].err.getvalue()


@cache
def _calls(line: str, *, watched: bool) -> int:
    """How many port calls it takes when it is left alone."""
    scene = Scene(line, 0, watched=watched)
    assert scene.wrong() == []
    return scene.verbs[0].calls


def _check(line: str, calls: range, *, watched: bool) -> None:
    for call in calls:
        wrong = Scene(line, call, watched=watched).wrong()
        assert wrong == [], f"`{line}` killed at port call {call}, watched={watched}: {wrong}"


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("line", LINES)
def test_a_deputy_killed_at_some_port_calls_is_continued(line, watched):  # I1 I25 I29
    last = _calls(line, watched=watched)
    _check(line, range(4, last, max(1, last // 4)), watched=watched)


@pytest.mark.long
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("line", LINES)
def test_a_deputy_killed_at_any_port_call_is_continued(line, watched):  # I1 I25 I29
    _check(line, range(1, _calls(line, watched=watched) + 1), watched=watched)


class PhaseScene:
    """`phase next` where no watchdog runs, killed at that port call."""

    def __init__(self, call: int) -> None:
        worker = {"kind": "loop"}
        self.sim = story(
            Declared(BUILDER, role=BUILDER, **worker),
            Declared(ADVERSARY, role=ADVERSARY, **worker),
            Declared(CLOSER, kind="task", watch="none", enabled=False),
            hours=0.5,
            loop=True,
        )
        self.phases: list[str] = []
        self.verbs: list[Verb] = []
        at(self.sim, TYPED - 10, lambda: self.sim.kill_watchdog(ABSENT_S - 300))
        at(self.sim, TYPED, lambda: self._type(call))
        at(self.sim, TYPED + ABSENT_S, self._look)

    def _type(self, call: int) -> None:
        self.sim.set_phase(None, Random(3), call)
        self.verbs.extend(v for v in self.sim.verbs if v.name == "phase")

    def _look(self) -> None:
        assert self.sim.loop is not None
        members = self.sim.machine.members
        for name in (BUILDER, ADVERSARY):
            one = members[name].agent
            self.phases.append(one.phase if one is not None and one.alive else "none")
        self.phases.append(self.sim.loop.phase)

    def wrong(self) -> list[str]:
        """What went wrong, a line each."""
        failure = self.sim.run().failure
        together = len(set(self.phases)) == 1 and self.phases[0] in PHASES[:2]
        return [*([failure] if failure else []), *([] if together else [f"phases {self.phases}"])]


def test_a_phase_next_without_a_watchdog_killed_at_some_port_calls_is_continued():  # I27
    for call in (0, 6, 18, 40):
        wrong = PhaseScene(call).wrong()
        assert wrong == [], f"killed at port call {call}: {wrong}"


@pytest.mark.long
def test_a_phase_next_without_a_watchdog_killed_at_any_port_call_is_continued():  # I27
    whole = PhaseScene(0)
    assert whole.wrong() == []
    for call in range(1, whole.verbs[0].calls + 1):
        wrong = PhaseScene(call).wrong()
        assert wrong == [], f"killed at port call {call}: {wrong}"


@pytest.mark.parametrize("line", ["down a", "down"])
@pytest.mark.parametrize("watched", [True, False])
def test_a_disk_that_fills_up_behind_the_wish_costs_the_record_and_not_the_stop(line, watched):  # I25
    sim = story(Declared("a"))
    disk = sim.machine.disk
    noted, seen = disk.written, []

    def fills_up(path: str) -> None:
        noted(path)
        if path.endswith("/desired.json"):
            disk.written, disk.fault = noted, errno.ENOSPC

    def typed() -> None:
        disk.written = fills_up
        sim.type_words(tuple(line.split()), ["a"], Random(1))

    if not watched:
        at(sim, 150, lambda: sim.type_words(("down", "watchdog"), [], Random(1)))
    at(sim, 200, typed)
    at(sim, 260, lambda: seen.append(agent(sim, "a").alive))
    at(sim, 261, lambda: setattr(disk, "fault", 0))
    told(sim)
    assert seen == [False]
