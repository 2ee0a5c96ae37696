"""A calm fleet to tell one story with: no faults but those of the story."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.agents import CALM, SimAgent
from tests.sim.declared import Declared
from tests.sim.faults import Fault
from tests.sim.simulation import Simulation


def story(
    *agents: Declared, hours: float = 1.0, faults: tuple[Fault, ...] = (), loop: bool = False
) -> Simulation:
    """Agents that work in long turns, boot without a question and never misbehave by themselves."""
    sim = Simulation(1, hours, faults, declared=list(agents), loop=loop)
    temper = sim.machine.temper
    temper.weights, temper.work = dict(CALM), 1e6
    temper.stubborn = temper.daemons = temper.boot_death = temper.not_found = temper.quotes = 0.0
    return sim


def at(sim: Simulation, t: float, act: Callable[[], object]) -> None:
    """Let something happen at that time."""
    sim.machine.clock.after(t, lambda: act() and None)


def agent(sim: Simulation, name: str) -> SimAgent:
    """The life that this agent has now."""
    found = sim.machine.members[name].agent
    assert found is not None
    return found


def lives(sim: Simulation) -> int:
    """How many times an agent was started, all of them together."""
    return sim.machine.lives


def told(sim: Simulation) -> None:
    """Run the story to its end; every oracle must have been content."""
    report = sim.run()
    assert not report.failure, report.failure
