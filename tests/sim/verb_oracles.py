"""What a verb says it did must be so at the moment it says it, unless another one came in between."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.sim.declared import LOG_DIR
from tests.sim.machine import Machine, SimMember
from tests.sim.oracles import Oracles
from tests.sim.processes import SimProc

if TYPE_CHECKING:
    from tests.sim.verbs import Verb

STOPS, STARTS = frozenset({"down"}), frozenset({"up", "restart"})


class VerbOracles:
    """I25 I29 I39: exit code 0 means that it is done."""

    def __init__(self, machine: Machine, oracles: Oracles) -> None:
        self._machine = machine
        self._oracles = oracles
        self._last: dict[str, Verb] = {}  # the newest verb about an agent
        self._on: list[Verb] = []  # verbs at work that start or stop

    def begun(self, verb: Verb) -> None:
        """From now on it is the newest."""
        for name in verb.agents:
            self._last[name] = verb
            if any(name in other.agents for other in self._on):
                verb.contested.add(name)
            agent = self._machine.members[name].agent
            verb.runs[name] = agent.proc.run if agent is not None else ""
        if verb.name in STARTS or verb.name in STOPS:
            self._on.append(verb)

    def over(self, verb: Verb) -> None:
        """It has ended, and perhaps said that all is well."""
        self._on = [other for other in self._on if other is not verb]
        if verb.code != 0:
            return
        for name in verb.agents:
            if self._last[name] is verb and name not in verb.contested:
                self._one(verb, self._machine.members[name])

    def _one(self, verb: Verb, member: SimMember) -> None:
        fail, name, said = self._oracles.fail, member.name, " ".join(verb.words)
        procs = self._procs(name)
        if verb.name in STOPS:
            if procs:
                left = [(p.pid, p.name) for p in procs]
                fail("I29", f"`{said}` says that {name} is down, and there are {left}")
            if member.wish != "down":
                fail("I25", f"`{said}` is over, and nothing on disk says that {name} is to stay down")
        elif verb.name in STARTS:
            if member.wish != "up":
                fail("I25", f"`{said}` is over, and nothing on disk says that {name} is wanted")
            new = member.agent is not None and member.agent.proc.run != verb.runs[name]
            if verb.name == "restart" and not new and not self._ended(member):
                fail("I39", f"`{said}` says that {name} was restarted, and it is the same run")
            if verb.name == "up" and len(verb.agents) == 1 and member.agent is None:
                fail("I39", f"`{said}` says that {name} is up, and it never lived")
        elif verb.name == "pause":
            if not member.paused:
                fail("I25", f"`{said}` is over, and nothing on disk says that {name} is paused")
            if "--freeze" in verb.words and any(not p.stopped for p in procs):
                fail("I25", f"`{said}` says that {name} is frozen, and a process of it runs")
        elif verb.name == "unpause":
            if member.paused or member.frozen:
                fail("I25", f"`{said}` is over, and on disk {name} is still paused")
            if any(p.stopped for p in procs):
                fail("I25", f"`{said}` says that {name} goes on, and a process of it stands still")

    def _ended(self, member: SimMember) -> bool:
        """After the last phase there is no run to start."""
        return member.kind == "loop"

    def _procs(self, name: str) -> list[SimProc]:
        return [p for p in self._machine.table.by_pid.values() if p.agent == name and p.owner == "ours"]


def forgiven(machine: Machine, name: str) -> bool:
    """Does its memory on disk hold nothing against it?"""
    body = json.loads(machine.disk.text(f"{LOG_DIR}/state/agents/{name}.json") or "{}")
    data = body.get("data", {})
    return not (data.get("fatal") or data.get("deaths") or data.get("exits"))
