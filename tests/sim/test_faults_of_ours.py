"""A fault of our own costs one agent its turn. It is on record once, and everything else goes on."""

from __future__ import annotations

import errno
import os

import pytest

from fleet.core.agent import decide
from fleet.core.case import Case, Verdict
from fleet.core.effects import Start
from fleet.store.eventlog import parse
from fleet.supervisor.perform import Performer
from tests.sim.declared import LOG_DIR, Declared
from tests.sim.disk import SimDisk
from tests.sim.scenes import agent, at, lives, story
from tests.sim.simulation import Simulation

pytestmark = pytest.mark.sim


def on_record(sim: Simulation, kind: str) -> list[dict]:
    lines = sim.machine.disk.text(f"{LOG_DIR}/events.jsonl").encode().split(b"\n")
    return [record for line in lines if (record := parse(line)) is not None and record["type"] == kind]


def test_a_rule_that_breaks_down_over_one_agent_leaves_the_others_their_turn(monkeypatch):  # I35
    sim = story(Declared("a"), Declared("b"))

    def broken(case: Case) -> Verdict | None:
        late = case.agent.name == "a" and sim.machine.clock.t > 100
        return Verdict("because", action=Start("a", cause="")) if late else None

    monkeypatch.setattr(decide, "AGENT_RULES", (("broken", broken), *decide.AGENT_RULES))
    at(sim, 200, lambda: agent(sim, "b").die(signum=9))
    report = sim.run()
    (fault,) = on_record(sim, "watchdog.step_failed")
    assert "deciding on a: AssertionError" in fault["reason"]
    assert "in broken" in fault["facts"]["trace"]
    assert [r["agent"] for r in on_record(sim, "agent.healed")] == ["b"]
    assert lives(sim) == 3
    assert "a fault of our own" in report.failure, "the oracles see it as well"


def test_a_memory_that_cannot_be_read_costs_its_agent_the_turn_and_no_other(monkeypatch):  # I35
    """A damaged document on a disk that is read-only cannot be set aside. It is read again until it can."""
    sim = story(Declared("a"), Declared("b"))
    stuck = f"{LOG_DIR}/state/agents/a.json"
    rename = SimDisk.rename

    def refuses(self, old, new, **how):
        if old.startswith(stuck) and 200 < sim.machine.clock.t < 600:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), old)
        return rename(self, old, new, **how)

    def damage():
        sim.kill_watchdog(20.0)
        for path in (stuck, f"{stuck}.prev"):
            if sim.machine.disk.stat(path) is not None:
                sim.machine.disk.put(path, b"{")

    monkeypatch.setattr(SimDisk, "rename", refuses)
    seen = []
    at(sim, 200, damage)
    at(sim, 300, lambda: agent(sim, "b").die(signum=9))
    at(sim, 590, lambda: seen.append([r["agent"] for r in on_record(sim, "agent.healed")]))
    at(sim, 900, lambda: agent(sim, "a").die(signum=9))
    sim.run()
    assert seen == [["b"]], "b is healed while a cannot be judged"
    assert [r["agent"] for r in on_record(sim, "agent.healed")] == ["b", "a"]
    degraded = [r["reason"] for r in on_record(sim, "watchdog.degraded")]
    assert sum(reason.startswith("remembering a: ") for reason in degraded) == 1
    assert not on_record(sim, "watchdog.step_failed")


def test_an_effect_that_breaks_down_on_one_agent_leaves_the_others_theirs(monkeypatch):  # I35
    sim = story(Declared("a", "opal", wake=600.0), Declared("b", "opal", wake=600.0))
    act = Performer.act

    def broken(self, action, message):
        if action.agent == "a":
            raise KeyError("no such thing")
        return act(self, action, message)

    monkeypatch.setattr(Performer, "act", broken)
    sim.run()
    faults = on_record(sim, "watchdog.step_failed")
    assert faults
    assert all(f["reason"] == "acting on a: KeyError('no such thing')" for f in faults)
    assert {r["agent"] for r in on_record(sim, "message.confirmed")} == {"b"}
