"""A death we were told of is looked for until tmux shows it, and not for ever."""

from __future__ import annotations

from random import Random

from tests.sim.simulation import Simulation, seeded


def test_a_death_that_tmux_does_not_show_yet_is_looked_for_again_at_once():
    """I47: a busy server hears of a death later than the pidfd; the next interval would be too late."""
    sim = Simulation(0, 1.0, faults=(), agents=2)
    with seeded(0):
        sim.verb("up", list(sim.machine.members), Random(0))
        while sim.machine.clock.t < 60.0:
            sim._step()
        dog = sim.watchdog
        calm = sim._tick()
        session = next(s for s in dog.last_look.alive if s.endswith("a0"))
        dog.hasten(f"pane:{session}")
        hurried = [sim._tick() for _ in range(3)]
        sim.machine.clock.advance_to(sim.machine.clock.t + 2.5)
        over = sim._tick()
    assert calm > 0.02
    assert max(hurried) <= 0.02
    assert over > 0.02
