"""A death we were told of is looked for until tmux shows it, and not for ever."""

from __future__ import annotations

from random import Random

from fleet.ports import PaneDied
from tests.sim.scenes import agent
from tests.sim.simulation import Simulation, seeded


def running(sim):
    """A minute into its life."""
    sim.verb("up_all", list(sim.machine.members), Random(0))
    while sim.machine.clock.t < 60.0:
        sim._step()
    return sim.watchdog


def test_a_status_that_tmux_missed_is_asked_for_and_the_very_next_look_decides():
    """I47: of a signal no less than of an exit code, and nothing is counted twice."""
    for how in ({"signum": 9}, {"code": 3}):
        sim = Simulation(0, 1.0, faults=(), agents=2)
        with seeded(0):
            dog = running(sim)
            session = agent(sim, "a0").session
            agent(sim, "a0").die(**how)
            session.reaped = False
            dog.hasten(PaneDied(session.name))
            delay = sim._tick()
            assert dog.last_look.unreaped == {session.pid}
            assert dog.last_look.seen["a0"].survivors is None
            assert not dog.mind.memories["a0"].deaths
            sim.machine.clock.advance_to(sim.machine.clock.t + delay)
            sim._tick()
            assert delay < 0.01
            assert len(dog.mind.memories["a0"].deaths) == 1


def test_a_death_that_tmux_does_not_show_yet_is_looked_for_again_at_once():
    """I47: a busy server hears of a death later than the pidfd; the next interval would be too late."""
    sim = Simulation(0, 1.0, faults=(), agents=2)
    with seeded(0):
        dog = running(sim)
        calm = sim._tick()
        session = next(s for s in dog.last_look.alive if s.endswith("a0"))
        dog.hasten(PaneDied(session))
        hurried = [sim._tick() for _ in range(3)]
        sim.machine.clock.advance_to(sim.machine.clock.t + 2.5)
        over = sim._tick()
    assert calm > 0.02
    assert max(hurried) <= 0.02
    assert over > 0.02
