"""The invariants, judged by what is true and never by what the watchdog believes.

Each oracle carries the number of the promise it guards. An act is excused when the thing that forbids it
came about after the tick began: between a look and an act there is always a moment that nobody can close.
"""

from __future__ import annotations

import signal as signals
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NoReturn

from fleet.world.ports import Launch
from tests.sim.agents import BUSY, Mood, SimAgent
from tests.sim.machine import Machine, Member
from tests.sim.processes import SimProc
from tests.sim.tmux import SimSession

DEADLY = frozenset({signals.SIGTERM, signals.SIGKILL, signals.SIGINT, signals.SIGHUP, signals.SIGQUIT})
NOTICED = 90.0  # seconds in which a banner must have been looked at twice
ENDED = frozenset({Mood.WEDGE, Mood.SHELL, Mood.IMPOSTER, Mood.AUTH, Mood.GONE})
QUIET = frozenset({Mood.IDLE, Mood.DONE, Mood.WAIT, Mood.ERROR, Mood.CONTEXT, Mood.HUNG})
SLOP = 2.0


class Violation(AssertionError):
    """A promise was broken."""


@dataclass
class Policy:
    """What the configuration in force promises, as the oracles need it."""

    stall_idle: float = 300.0
    stall_grace: float = 180.0
    fallback: float = 300.0
    fleet_minute: int = 10
    fleet_hour: int = 60
    window: float = 900.0
    window_starts: int = 6


@dataclass
class Excuses:
    """What people and fate did lately, in the universe's time: an act may follow from it."""

    jumped: float = -1e9  # the wall clock
    server_lost: float = -1e9
    host_lost: float = -1e9
    touched: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: -1e9))  # verb on an agent


class Oracles:
    """Everything that is checked while the simulation runs."""

    def __init__(self, machine: Machine, policy: Policy) -> None:
        self.machine = machine
        self.policy = policy
        self.excuses = Excuses()
        self.began = 0.0  # universe time at which the current tick began
        self.looked = False  # has this watchdog listed the fleet since it was made?
        self.acts: Counter[str] = Counter()
        self.starts: dict[str, list[float]] = defaultdict(list)  # unplanned, by agent
        self.fleet_starts: list[float] = []
        self.owed: dict[str, float] = {}  # created against a `down`: gone again by then
        self.ended: dict[str, str] = {}  # agent -> how its last life truly ended
        self.limited_until: dict[str, float] = {}  # agent that died inside a window -> wall
        self.fatal: set[str] = set()
        self._counted = -1  # as of which change of the process table lives were counted

    def fail(self, number: str, text: str) -> NoReturn:
        """Say which promise, when, and what happened."""
        raise Violation(f"{number}: {text} (t={self.machine.clock.t:.2f}, actor {self.machine.actor})")

    # -- hooks

    def on_act(self, verb: str, session: SimSession | None, detail: str) -> None:
        """A tmux command is about to take effect, or has created something."""
        if self.machine.actor == "second":
            self.fail("I27", f"a second watchdog did {verb} {detail}")
        if verb == "listing":
            self.looked = self.looked or self.machine.actor == "watchdog"
            return
        self.acts[verb] += 1
        if verb == "create":
            self._before_create(detail)
        elif verb == "created":
            if detail == "" and session is not None:
                self._created(session)
        elif session is not None:
            self._owned(verb, session)
            if self.machine.actor == "watchdog" and not self.machine.tmux.late:
                if not self.looked:
                    self.fail("I22", f"{verb} on {session.name} before this watchdog looked at the fleet")
                self._on_pane(verb, session, detail)

    def on_signal(self, proc: SimProc, signum: int) -> None:
        """A signal is about to be delivered."""
        if self.machine.actor == "second":
            self.fail("I27", f"a second watchdog signalled {proc.name}")
        self.acts[f"signal {signum}"] += 1
        if proc.owner != "ours" or proc.run not in self.machine.runs:
            self.fail("I30", f"signal {signum} to {proc.name} ({proc.pid}), which is not ours")
        if self.machine.actor != "watchdog":
            return
        member = self.machine.members.get(proc.agent)
        if member is not None and signum in DEADLY:
            if member.agent is not None and member.agent.proc.run == proc.run and member.agent.alive:
                self._justified(member, member.agent, f"signal {signum}")
        elif (
            member is not None and signum == signals.SIGSTOP and not member.frozen and not self._raced(member)
        ):
            self.fail("I23", f"{member.name} was stopped in place though nobody froze it")

    def on_tick_over(self) -> None:
        """Between two ticks nothing may be left that had to be undone."""
        now = self.machine.clock.t
        for name, deadline in list(self.owed.items()):
            member = self.machine.members[name]
            if member.wish == "up" or member.agent is None or not self._in_tmux(member.agent):
                del self.owed[name]
            elif now > deadline:
                self.fail("I25", f"{name} was created against a `down` and still stands")
        self.one_life_each()

    # -- single promises

    def one_life_each(self) -> None:
        """I1: one live session and one live process set an agent."""
        if self._counted == self.machine.table.changes:
            return
        self._counted = self.machine.table.changes
        runs: dict[str, set[str]] = defaultdict(set)
        for proc in self.machine.table.by_pid.values():
            if proc.agent in self.machine.members:
                runs[proc.agent].add(proc.run)
        for name, found in runs.items():
            if len(found) > 1:
                self.fail("I1", f"{name} has processes of {len(found)} runs: {sorted(found)}")
        server = self.machine.tmux.server
        if server is not None:
            alive = Counter(s.proc.agent for s in server.sessions.values() if s.project and not s.dead)
            for name, count in alive.items():
                if count > 1 and name in self.machine.members:
                    self.fail("I1", f"{name} has {count} live sessions")

    def _before_create(self, session: str) -> None:
        if not self.looked and self.machine.actor == "watchdog" and not self.machine.tmux.late:
            self.fail("I22", f"{session} is created before this watchdog looked at the fleet")

    def _created(self, session: SimSession) -> None:
        member = self.machine.members.get(session.proc.agent)
        self.one_life_each()
        if member is None:
            return
        now, name = self.machine.clock.t, member.name
        if self.machine.actor != "watchdog":
            return
        if member.wish != "up":
            if self.excuses.touched[name] < self.began:
                self.fail("I25", f"{name} is created although it was taken down")
            self.owed[name] = now + 60.0
        if name in self.fatal and self.excuses.touched[name] < self.began:
            self.fail("I21", f"{name} is started although it had failed for good")
        until = self.limited_until.pop(name, 0.0)
        if self.machine.clock.wall() < until and self.excuses.jumped < self.began - 86_400:
            self.fail("I5", f"{name} died inside a limit window and was started before its end")
        self._count_start(name, now)

    def _count_start(self, name: str, now: float) -> None:
        planned = now - self.excuses.touched[name] < 120
        lost = now - max(self.excuses.server_lost, self.excuses.host_lost) < 300
        if planned or lost or name not in self.ended:
            return
        mine, fleet, policy = self.starts[name], self.fleet_starts, self.policy
        mine.append(now)
        fleet.append(now)
        recent = [t for t in mine if now - t < policy.window]
        if len(recent) > 2 * policy.window_starts:  # crashes and clean exits have a tally each
            self.fail("I21", f"{name} was started {len(recent)} times within {policy.window:.0f} s")
        if sum(now - t < 60 for t in fleet) > policy.fleet_minute:
            self.fail("I21", f"the fleet made more than {policy.fleet_minute} starts in a minute")
        quiet = now - max(self.excuses.server_lost, self.excuses.host_lost) > 3600
        if quiet and sum(now - t < 3600 for t in fleet) > policy.fleet_hour:
            self.fail("I21", f"the fleet made more than {policy.fleet_hour} starts in an hour")

    def _owned(self, verb: str, session: SimSession) -> None:
        if not session.project or session.proc.owner != "ours":
            self.fail("I2", f"{verb} on {session.name}, which is not ours")

    def _on_pane(self, verb: str, session: SimSession, detail: str) -> None:
        member = self.machine.members.get(session.proc.agent)
        agent = session.program
        if member is None or not isinstance(agent, SimAgent):
            return
        if verb == "remove":
            if agent.alive:
                self._justified(member, agent, "remove")
        else:
            self._may_type(verb, member, agent, detail)

    def _may_type(self, verb: str, member: Member, agent: SimAgent, detail: str) -> None:
        name = member.name
        if verb == "paste" and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in detail):
            self.fail("I10", f"control characters were typed into {name}: {detail!r}")
        if (member.paused or member.frozen) and self.excuses.touched[name] < self.began:
            self.fail("I25", f"{name} is paused and was typed to: {detail}")
        if agent.draft_by_human and agent.draft_since < self.began:
            self.fail("I12", f"{verb} {detail!r} on the line where a person writes, in {name}")
        if agent.since >= self.began:
            return  # it changed while we looked
        mood = agent.mood
        if mood in (Mood.SHELL, Mood.IMPOSTER):
            self.fail("I8", f"{verb} {detail!r} into {name}, where {agent.proc.name} runs")
        if mood in (Mood.ASK, Mood.DIALOG) and not (
            mood is Mood.DIALOG and verb == "press" and detail == "1"
        ):
            self.fail("I14", f"{verb} {detail!r} into an open question of {name}")
        if mood in (Mood.WORK, Mood.RETRY) and not agent.persona.queues and verb == "paste":
            self.fail("I13", f"{verb} {detail!r} into {name} at work")
        if mood is Mood.STRANGE:
            self.fail("I7", f"{verb} {detail!r} into a screen of {name} that nobody can read")
        self._outside_window(verb, member, agent)

    def _outside_window(self, verb: str, member: Member, agent: SimAgent) -> None:
        """I5: nothing is done to a limited agent before the instant its banner names."""
        now, clock = self.machine.clock.t, self.machine.clock
        shown = now - agent.since
        if agent.mood is not Mood.LIMIT or shown < NOTICED or self.excuses.jumped > agent.since - 3600:
            return
        if self.excuses.touched[member.name] > agent.since:  # an operator who resets wants it to go on
            return
        printed = agent.banner
        if printed and clock.wall() < printed:
            self.fail("I5", f"{verb} on {member.name} {printed - clock.wall():.0f} s before its reset")
        if not printed and shown < self.policy.fallback - SLOP:
            self.fail("I5", f"{verb} on {member.name} {shown:.0f} s after a banner without a reset")

    def _justified(self, member: Member, agent: SimAgent, what: str) -> None:
        """I5 I7 I16 I23 I36: a living agent is only stopped for a reason that is true."""
        if self._raced(member) or member.wish == "down" or agent.proc.run in self.machine.condemned:
            return
        mood, now, policy = agent.mood, self.machine.clock.t, self.policy
        if mood in ENDED or agent.since >= self.began:
            return
        idle = now - agent.since
        if mood is Mood.LIMIT:
            self._outside_window(what, member, agent)
            self.fail("I5", f"{what} on {member.name}, which is limited")
        if mood in BUSY:
            self.fail("I16", f"{what} on {member.name}, which is at work ({mood}) for {idle:.0f} s")
        if mood in QUIET and member.watch == "heal+stall" and idle >= policy.stall_idle - SLOP:
            waits = agent.until + policy.stall_grace - self.machine.clock.wall() if mood is Mood.WAIT else 0.0
            if waits > SLOP and agent.until:
                self.fail("I16", f"{what} on {member.name}, which waits {waits:.0f} s more by its own word")
            return
        if mood is Mood.STRANGE:
            self.fail("I7", f"{what} on {member.name}, whose screen nobody can read")
        self.fail("I23", f"{what} on {member.name}, healthy ({mood}) for {idle:.0f} s")

    def _raced(self, member: Member) -> bool:
        return self.excuses.touched[member.name] >= self.began - 60

    def _in_tmux(self, agent: SimAgent) -> bool:
        server = self.machine.tmux.server
        return server is not None and agent.session in server.sessions.values()


def wanted(launch: Launch) -> str:
    """The session a launch asks for."""
    return launch.session
