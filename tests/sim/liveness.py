"""Once the faults stop, everything must become well, and in good time.

Bounds are generous where a promise is about patience (a used-up restart budget) and tight where it is about
attention. What must hold is again judged by the machine alone.
"""

from __future__ import annotations

import json
from collections import Counter

from fleet.store.house import House
from tests.sim.agents import Mood, SimAgent
from tests.sim.declared import LOG_DIR
from tests.sim.machine import Machine, SimMember
from tests.sim.names import PHASES
from tests.sim.oracles import FARTHEST_S, Oracles
from tests.sim.verbs import Sent

STOP = 60.0  # a stubborn process set is gone by then
HEALED = 120.0 + STOP
BUDGET = 3700.0  # the fleet's restarts of an hour may have been used up by the storm
MENDED = 900.0 + STOP
PROBED = 45.0 + 300.0 + 240.0
BROKEN = frozenset({Mood.SHELL, Mood.WEDGE, Mood.IMPOSTER})
STALLED = frozenset({Mood.DONE, Mood.ERROR, Mood.CONTEXT, Mood.HUNG})


class Liveness:
    """I17 I26 I33 I47 I48 I50: demanded after the storm."""

    def __init__(self, machine: Machine, oracles: Oracles, house: House, sent: list[Sent]) -> None:
        self._machine = machine
        self._oracles = oracles
        self._house = house
        self._sent = sent
        self._since: float | None = None
        self._spent = False
        self._peace_wall = 0.0
        self._dead: dict[str, float] = {}
        self._held: dict[str, float] = {}  # when its account was last limited

    def over(self, member: SimMember) -> bool:
        """Has the loop no use for it? A task runs once, and after the last phase the loop's agents end."""
        index = self._machine.disk.text(f"{LOG_DIR}/state/phase-idx").strip()
        ended = index.isdigit() and int(index) >= len(PHASES)
        return member.kind == "task" or (member.kind == "loop" and ended)

    def begin(self) -> None:
        """Peace begins now."""
        self._since = self._machine.clock.t
        self._peace_wall = self._machine.clock.wall() - 1.0
        self._spent = sum(self._since - t < 3600 for t in self._oracles.starts.fleet) > 50

    def look(self) -> None:
        """After each tick of the peace."""
        if self._since is None:
            return
        members = self._machine.members.values()
        limited = {id(m.account) for m in members if m.agent and m.agent.mood is Mood.LIMIT and m.agent.alive}
        for member in members:
            if member.wish == "up" and member.watch != "none" and not self.over(member):
                self._one(member, limited=id(member.account) in limited)

    def _lasted(self, began: float) -> float:
        return self._machine.clock.t - max(began, self._since or 0.0)

    def _one(self, member: SimMember, *, limited: bool) -> None:
        agent, fail = member.agent, self._oracles.fail
        if agent is None or not agent.alive:
            self._must_return(member, limited=limited)
            return
        self._dead.pop(member.name, None)
        # `up` keeps a limit window, and inside it nothing is done to an agent of the account (I5), no reboot
        named = max(member.account.printed, member.account.until)
        if limited or named + PROBED > self._machine.clock.wall():
            self._held[member.name] = self._machine.clock.t
        lasted = min(self._lasted(agent.since), self._lasted(self._held.get(member.name, 0.0)))
        if agent.mood in BROKEN and lasted > (BUDGET if self._spent else MENDED):
            fail("I47", f"{member.name} is {agent.mood} for {lasted:.0f} s and nobody mends it")
        stalled = agent.mood in STALLED and member.watch == "heal+stall"
        if agent.mood is Mood.HUNG and agent.persona.reports:
            stalled = False  # its own last word is that it works, and that is believed
        patient = self._spent or agent.children > 0  # for all we know they are at work
        if stalled and lasted > (BUDGET + MENDED if patient else MENDED):
            fail("I17", f"{member.name} sits there ({agent.mood}) for {lasted:.0f} s with nobody caring")
        if agent.mood is Mood.LIMIT:
            self._must_resume(member, agent)

    def _must_return(self, member: SimMember, *, limited: bool) -> None:
        self._dead.setdefault(member.name, self._machine.clock.t)
        lasted = self._lasted(self._dead[member.name])
        until, _ = self._oracles.starts.window.get(member.name, (0.0, 0.0))
        # a bare `up` leaves the limited until their window ends, however that account came to be refused
        until = max(until, member.account.printed, member.account.until)
        mates = [m.agent for m in self._machine.members.values() if m.account is member.account and m.agent]
        until = max(until, *(self._named(mate) for mate in mates if mate.mood is Mood.LIMIT), 0.0)
        waits = limited or until + PROBED > self._machine.clock.wall()
        if not waits and lasted > (BUDGET if self._spent else HEALED):
            self._oracles.fail("I47", f"{member.name} is dead for {lasted:.0f} s and nobody heals it")

    def _must_resume(self, member: SimMember, agent: SimAgent) -> None:
        over = self._machine.clock.wall() - max(agent.account.until, self._named(agent))
        lasted = self._lasted(agent.since)
        if min(over, lasted) > PROBED:
            self._oracles.fail("I48", f"{member.name} is limited {over:.0f} s after the end of its window")

    def _named(self, agent: SimAgent) -> float:
        """The end of its window as its banner names it.

        That is believed, also where the clock was set back under it since, but for eight days at most; one
        that came on a clock which is behind is tried after those.
        """
        moved = self._oracles.excuses.jumped >= agent.since
        far = agent.banner - self._machine.clock.wall() > FARTHEST_S
        return 0.0 if moved and far else agent.banner

    def at_the_end(self) -> None:
        """I50: no message waits, nothing is degraded, nothing was set aside."""
        fail, disk = self._oracles.fail, self._machine.disk
        corrupt = [path for path in disk.files if ".corrupt-" in path]
        if corrupt:
            fail("I20", f"set aside though nothing damaged it: {corrupt}")
        self._messages()
        view = json.loads(disk.text(self._house.path("view.json")) or "{}")
        if view.get("degraded") or view.get("config"):
            fail("I35", f"still degraded in peace: {view.get('degraded')!r} {view.get('config')!r}")

    def _messages(self) -> None:
        """I11 I39: each message is heard once a run, and one reported as delivered was heard."""
        heard = {m.name: self._heard(m) for m in self._machine.members.values()}
        for name, texts in heard.items():
            for (run, text), count in Counter(texts).items():
                if count > 1 and text.startswith("note "):
                    self._oracles.fail("I11", f"{name} heard {text!r} {count} times in run {run}")
        for sent in self._sent:
            proves = self._machine.members[sent.agent].persona != "plain"  # a composer to prove it by
            if sent.delivered and proves and sent.text not in {t for _, t in heard[sent.agent]}:
                self._oracles.fail("I11", f"{sent.text!r} was reported as delivered, and nobody heard it")

    @staticmethod
    def _heard(member: SimMember) -> list[tuple[str, str]]:
        agent = member.agent
        return member.heard + ([(agent.proc.run, t) for t in agent.received] if agent else [])
