"""A busy quarter of an hour, with one thing failing at each point in turn: a kill, a write, a tmux answer."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from tests.sim.faults import Fault
from tests.sim.simulation import Simulation

EVENTFUL = 60.0  # universe time from which things happen
STRIDE = 4  # tests that share the points between them


def scene(*faults: Fault, seed: int = 3) -> Simulation:
    """Three agents: one dies, one wedges, one is limited for two minutes; somebody writes to each."""
    sim = Simulation(seed, 0.5, faults, agents=3)
    sim.machine.temper.weights = {"idle": 1.0}
    sim.machine.temper.boot_death = sim.machine.temper.not_found = 0.0
    for member in sim.machine.members.values():
        member.watch = "heal+stall"
    clock, members = sim.machine.clock, sim.machine.members

    def life(name: str, act: str) -> None:
        agent = members[name].agent
        if agent is not None and agent.alive:
            getattr(agent, act)()

    clock.after(EVENTFUL + 1, lambda: life("a0", "_to_exit1"))
    clock.after(EVENTFUL + 2, lambda: life("a1", "_to_wedge"))
    clock.after(EVENTFUL + 3, lambda: life("a2", "_to_done"))
    for number, name in enumerate(("a0", "a1", "a2", "a0")):
        clock.after(EVENTFUL + 5 + 20 * number, lambda n=name: sim.verb("send_patiently", [n], Random(n)))
    clock.after(EVENTFUL + 90, lambda: sim.verb("down", ["a1"], Random(1)))
    clock.after(EVENTFUL + 130, lambda: sim.verb("up", ["a1"], Random(1)))
    return sim


@cache
def points() -> int:
    """How many port calls the eventful part takes when nothing fails."""
    sim = scene()
    sim.machine.clock.after(EVENTFUL, lambda: setattr(sim, "_from", sim.machine.calls))
    sim.machine.clock.after(EVENTFUL + 200, lambda: setattr(sim, "_to", sim.machine.calls))
    assert sim.run().failure == ""
    return sim._to - sim._from


def test_the_scene_ends_well_when_nothing_fails():
    assert points() > 200


@pytest.mark.sim
@pytest.mark.long
@pytest.mark.parametrize("offset", range(STRIDE))
def test_a_watchdog_killed_at_any_port_call_loses_and_repeats_nothing(offset):
    for call in range(1 + offset, points(), STRIDE * 3):
        failure = scene(Fault(EVENTFUL, "crash", 1, call)).run().failure
        assert failure == "", f"killed at port call {call}: {failure}"


@pytest.mark.long
@pytest.mark.sim
@pytest.mark.parametrize(
    "kind", ["disk_error", "tmux_partial", "server_kill", "server_hang", "reboot", "agent_kill"]
)
def test_one_failure_anywhere_is_survived(kind):
    for call in range(1, points(), STRIDE * 15):
        failure = scene(Fault(EVENTFUL, kind, call, call)).run().failure
        assert failure == "", f"{kind} at port call {call}: {failure}"


@pytest.mark.sim
@pytest.mark.long
def test_a_kill_in_the_recovery_from_a_kill_is_survived():
    rng = Random(5)
    for _ in range(15):
        calls = sorted(rng.sample(range(1, points()), 3))
        faults = tuple(Fault(EVENTFUL, "crash", rng.randrange(99), call) for call in calls)
        failure = scene(*faults).run().failure
        assert failure == "", f"killed at port calls {calls}: {failure}"


@pytest.mark.long
@pytest.mark.sim
def test_a_down_at_any_port_call_wins():
    """I25: whatever the watchdog is about to do to a dead agent, it is not brought back."""
    for call in range(1, 60):
        sim = scene()
        clock = sim.machine.clock
        clock.after(
            EVENTFUL + 1, lambda s=sim, c=call: s.machine.arm(c, lambda: s.verb("down", ["a0"], Random(1)))
        )
        failure = sim.run().failure
        assert failure == "", f"down at port call {call}: {failure}"
