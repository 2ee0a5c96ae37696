"""The promises of the loop, judged by what is true in the repository.

Each ping is heard once, names a commit that is there, and never reaches a run of a later phase. A phase moves
by one, once, on a marker that is true and on gates that pass. The task at the end runs once for a trigger.
"""

from __future__ import annotations

import re
from collections import Counter

from tests.sim.agents import SimAgent
from tests.sim.declared import LOG_DIR
from tests.sim.disk import SimDisk
from tests.sim.machine import Machine
from tests.sim.names import ADVERSARY, BUILDER, CLOSER, PHASES, TRIGGER
from tests.sim.oracles import Oracles
from tests.sim.work import Work

INDEX = f"{LOG_DIR}/state/phase-idx"
SIDECAR = f"{LOG_DIR}/state/phase.json"
PENDING = '"pending":true'
MARKER = f"{LOG_DIR}/SEQUENCE-COMPLETE"
_NEWEST = re.compile(r"^Handoff: .*newest commit ([0-9a-f]{12})|^git show ([0-9a-f]{12})$")
_INBOX = re.compile(r"^Handoff: there is a new message in (\S+)\. ")
_GATE = re.compile(r"^Phase (p\d) is marked as done, but gate")
ENOUGH_S = 6 * 3600.0  # of peace, with nobody refused: then the loop has come to its end
KIND = {ADVERSARY: "claim", BUILDER: "review"}


def index_on(disk: SimDisk) -> int | None:
    """The number of the phase on disk; None where there is none, or something else."""
    word = disk.text(INDEX).strip()
    return int(word) if word.isdigit() else None


class LoopOracles:
    """Looks at every message that is heard and at every move of the loop."""

    def __init__(self, machine: Machine, oracles: Oracles, work: Work) -> None:
        self._machine = machine
        self._oracles = oracles
        self._work = work
        self._index = 0
        self._asked: int | None = None  # where a person wants it to be
        self._known: set[str] = set()  # the commits that were there when they said so
        self._heard: set[tuple[str, str]] = set()
        self._left: Counter[str] = Counter()  # messages in an inbox, ever
        self._told: Counter[tuple[str, str]] = Counter()  # of them, by agent and inbox
        self._since: float | None = None  # when peace began
        self._seen = self._refused = 0.0
        self.triggers = 0
        self.moves = 0
        machine.on_turn = work.turn
        machine.on_heard = self.on_heard

    @property
    def phase(self) -> str:
        """The phase that the disk names; empty before the first and after the last."""
        index = index_on(self._machine.disk)
        return PHASES[index] if index is not None and index < len(PHASES) else ""

    @property
    def complete(self) -> bool:
        """Is every phase behind the loop?"""
        index = index_on(self._machine.disk)
        return index is not None and index >= len(PHASES)

    # -- what is heard

    def on_heard(self, agent: SimAgent, text: str) -> None:
        """A message of ours was submitted."""
        if agent.name not in KIND:
            return
        if found := _NEWEST.match(text):
            self._ping(agent, found[1] or found[2])
        elif found := _INBOX.match(text):
            self._inbox(agent, found[1])
        elif (found := _GATE.match(text)) and found[1] != agent.phase:
            self._oracles.fail("I13", f"{agent.name} in phase {agent.phase} hears of a gate of {found[1]}")

    def _ping(self, agent: SimAgent, short: str) -> None:
        commit = next((c for h, c in self._work.repo.commits.items() if h.startswith(short)), None)
        fail = self._oracles.fail
        if commit is None or commit.kind != KIND[agent.name]:
            fail("I13", f"{agent.name} is told of {short}, which is no {KIND[agent.name]}")
        if (agent.name, short) in self._heard:
            fail("I11", f"{agent.name} is told of {commit.subject!r} ({short}) twice")
        self._heard.add((agent.name, short))
        if commit.phase < agent.phase:
            fail("I13", f"{agent.name} in phase {agent.phase} is told of a commit of {commit.phase}")

    def left(self, path: str) -> None:
        """Somebody is about to leave a file in an inbox."""
        self._left[path.rpartition("/")[2]] += 1

    def _inbox(self, agent: SimAgent, name: str) -> None:
        self._told[agent.name, name] += 1
        if self._told[agent.name, name] > self._left[name]:
            self._oracles.fail("I11", f"{agent.name} is told of {name} more often than it was written")

    # -- where the loop stands

    def on_tick_over(self) -> None:
        """Has the watchdog moved the loop, and was that right?"""
        self._note_refused()
        now = index_on(self._machine.disk)
        if now == self._index or now is None:
            return
        was, self._index = self._index, now
        self.moves += 1
        self.excuse()
        if now != was + 1:
            self._oracles.fail("I27", f"the loop went from {was} to {now}")
        if self._work.changed_at < self._oracles.began and (why := self._work.may_advance(PHASES[was])):
            self._oracles.fail("I27", f"phase {PHASES[was]} was left although {why}")

    def begin_peace(self) -> None:
        """From now on the loop must get on, as far as its agents are served."""
        self._since = self._seen = self._machine.clock.t
        self._refused = 0.0

    def _note_refused(self) -> None:
        """Time in which the account of either was refused: nothing is done to a limited agent."""
        now, wall = self._machine.clock.t, self._machine.clock.wall()
        for account in (self._machine.members[name].account for name in KIND):
            if max(account.until, account.printed) > wall:
                self._refused += now - self._seen
                break
        self._seen = now

    def asked_for(self, index: int) -> None:
        """A person is about to set the phase."""
        self._asked, self._known = index, self._work.known()

    def answered(self) -> None:
        """The verb has ended. What it left half-way on disk is still its doing."""
        if PENDING not in self._machine.disk.text(SIDECAR):
            self._asked = None

    def on_index(self, *, by_hand: bool) -> None:
        """The index was written: by a verb, or by a watchdog that finishes what a killed verb began."""
        now = int(self._machine.disk.text(INDEX).strip())
        if by_hand or now == self._asked:
            known = self._known if now == self._asked else self._work.known()
            if now != self._index or now == self._asked:
                self._work.begin_again(PHASES[now:], known)
            self._index, self._asked = now, None
            self.excuse()

    def edited(self, index: int) -> None:
        """A person has written another number into the file, without a verb."""
        self._machine.disk.put(INDEX, f"{index}\n".encode())
        self._index = index

    def excuse(self) -> None:
        """The loop has moved: its agents are replaced, as planned."""
        for member in self._machine.members.values():
            if member.kind != "persistent":
                self._oracles.excuses.touched[member.name] = self._machine.clock.t

    def trigger(self) -> None:
        """Somebody asks for the task at the end."""
        self.triggers += 1
        self._machine.disk.put(f"{LOG_DIR}/{TRIGGER}", f"{self.triggers}\n".encode())
        self.excuse()

    def at_the_end(self, *, long: bool) -> None:
        """I28: the task ran at most once a trigger; after a long peace the loop has come to its end."""
        finished = len(self._work.finished)
        if finished > self.triggers:
            self._oracles.fail("I28", f"the closing task ran {finished} times for {self.triggers} triggers")
        peace = self._machine.clock.t - (self._since or 0.0) - self._refused
        if not long or peace < ENOUGH_S:
            return
        if not self.complete or MARKER not in self._machine.disk.files:
            where = self.phase or "its end"
            self._oracles.fail("I47", f"the loop still stands at {where} after a long peace")
        if self._machine.members[CLOSER].agent is None:
            self._oracles.fail("I28", "the closing task was never started")
