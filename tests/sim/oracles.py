"""The invariants, judged by what is true and never by what the watchdog believes.

Each oracle carries the number of the promise it guards. An act is excused when the thing that forbids it
came about after the tick began: between a look and an act there is always a moment that nobody can close.
What a mood forbids, it forbids once the watchdog had the chance to notice: some undisturbed ticks.
"""

from __future__ import annotations

import json
import signal as signals
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from fleet.core.words import EventType, Outcome
from fleet.store.eventlog import parse
from tests.sim.agents import BUSY, PERSONAS, Mood, SimAgent
from tests.sim.declared import LOG_DIR, WATCHDOG_SESSION
from tests.sim.machine import Machine, SimMember
from tests.sim.processes import SimProc
from tests.sim.sources import conversation_file
from tests.sim.tmux import SimSession

DEADLY = frozenset({signals.SIGTERM, signals.SIGKILL, signals.SIGINT, signals.SIGHUP, signals.SIGQUIT})
NOTICED_S = 90.0
NOTICED_TICKS = 4
ENDED = frozenset({Mood.WEDGE, Mood.SHELL, Mood.IMPOSTER})
QUIET = frozenset({Mood.IDLE, Mood.DONE, Mood.WAIT, Mood.ERROR, Mood.CONTEXT, Mood.HUNG})
KEYS = frozenset({"paste", "press"})
SLOP = 2.0
FARTHEST_S = 8 * 86_400.0  # nobody believes a reset later than that; a clock was moved
TAIL = 20000  # bytes of the record in which the cause of an act must stand


class Violation(BaseException):
    """A promise was broken. No guard of the watchdog may take it for a fault of its own."""


@dataclass
class Policy:
    """What the configuration in force promises, as the oracles need it."""

    stall_idle: float = 300.0
    stall_grace: float = 180.0
    fallback: float = 300.0


@dataclass
class Excuses:
    """What people and fate did lately, in the universe's time: an act may follow from it."""

    jumped: float = -1e9  # the wall clock
    server_lost: float = -1e9
    host_lost: float = -1e9
    touched: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: -1e9))  # verb on an agent
    looked: float = -1e9  # a watchdog, last
    lost: float = -1e9  # the server or the host, as far as a watchdog could see it
    heard: dict[str, float] = field(
        default_factory=lambda: defaultdict(lambda: -1e9)
    )  # of that verb: likewise

    def on_look(self, now: float, *, deputy: bool) -> None:
        """A watchdog looks. What happened while there was none happens for it now.

        A deputy does so as well, for the agents of its verb; what it leaves is left to the next watchdog.
        """
        if max(self.server_lost, self.host_lost) > self.looked:
            self.lost = now
        self.heard.update((name, now) for name, at in self.touched.items() if at > self.looked)
        if not deputy:
            self.looked = now


class Oracles:
    """What may be done to a pane or a process, checked at every effect."""

    def __init__(self, machine: Machine, policy: Policy) -> None:
        self.machine = machine
        self.policy = policy
        self.excuses = Excuses()
        self.began = 0.0  # universe time at which the current tick began
        self.looked = False  # has this watchdog listed the fleet since it was made?
        self.listed = False  # has it in this tick?
        self.acts: Counter[str] = Counter()
        self.declares: Callable[[str], bool] = lambda _name: True  # does the watchdog know of that agent?
        self._limited: dict[str, float] = {}  # when it was last seen truly limited
        self._shut: dict[str, tuple[object, ...]] = {}  # its window as it stands on disk
        self._spent: set[bytes] = set()  # causes on record that an act has followed from
        self.starts = Starts(self)
        machine.table.on_end = self.starts.on_end

    def fail(self, number: str, text: str) -> NoReturn:
        """Say which promise, when, and what happened."""
        raise Violation(f"{number}: {text} (t={self.machine.clock.t:.2f}, actor {self.machine.actor})")

    @property
    def watching(self) -> bool:
        """Is it the watchdog that acts, here and now?"""
        return self.machine.actor == "watchdog" and not self.machine.tmux.late

    def raced(self, name: str) -> bool:
        """Did the operator lay hands on it just now, as far as a watchdog could see it?"""
        return max(self.excuses.touched[name], self.excuses.heard[name]) >= self.began - 60

    # -- hooks

    def on_tick_begun(self) -> None:
        """A new look."""
        self.began, self.listed = self.machine.clock.t, False

    def on_act(self, verb: str, session: SimSession | None, detail: str) -> None:
        """A tmux command is about to take effect, or has created something."""
        if verb == "listing":
            if self.watching:
                self.excuses.on_look(self.machine.clock.t, deputy=self.machine.current is not None)
            self.looked = self.looked or self.watching
            self.listed = self.listed or self.watching
            return
        self.acts[verb] += 1
        if verb == "create":
            if self.watching and not self.looked:
                self.fail("I22", f"{detail} is created before this watchdog looked at the fleet")
            if not self.machine.tmux.late and detail != WATCHDOG_SESSION:
                self._has_cause("start", detail)
        elif verb == "created":
            if detail == Outcome.DONE and session is not None:
                self.starts.on_created(session)
        elif session is not None:
            self._on_session(verb, session, detail)

    def on_signal(self, proc: SimProc, signum: int) -> None:
        """A signal is about to be delivered."""
        self.acts[f"signal {signum}"] += 1
        if proc.owner != "ours" or proc.run not in self.machine.runs:
            self.fail("I30", f"signal {signum} to {proc.name} ({proc.pid}), which is not ours")
        member = self.machine.members.get(proc.agent)
        if member is None or not self.watching:
            return
        self._has_cause("signal", member.name)
        if signum in DEADLY:
            agent = member.agent
            if agent is not None and agent.proc.run == proc.run and agent.alive:
                self._justified(member, agent, f"signal {signum}")
        elif signum == signals.SIGSTOP and not member.frozen and not self.raced(member.name):
            self.fail("I23", f"{member.name} was stopped in place though nobody froze it")

    def on_tick_over(self) -> None:
        """Between two ticks nothing may be left that had to be undone."""
        self.starts.on_tick_over()
        self._truly_limited()
        if not self.listed or self.machine.disk.fault or self.machine.tmux.hung:
            return
        for member in self.machine.members.values():
            agent = member.agent
            if agent is not None and agent.since < self.began:
                held = member.paused or member.frozen or member.wish != "up" or self.raced(member.name)
                agent.noticed = 0 if held else agent.noticed + 1

    def at_the_end(self) -> None:
        """I46, I35: what happened is on record once, and one cause of trouble is told once."""
        files = self.machine.disk.files
        paths = [f"{LOG_DIR}/events.jsonl{end}" for end in (".4", ".3", ".2", ".1", "")]
        lines = [line for path in paths if path in files for line in bytes(files[path].data).split(b"\n")]
        records = [record for line in lines if (record := parse(line)) is not None]
        twice = [line for line, count in Counter(json.dumps(r) for r in records).items() if count > 1]
        if twice:
            self.fail("I46", f"{len(records)} records, {len(twice)} of them more than once: {twice[0]}")
        told: Counter[str] = Counter()
        for record in records:
            if record["type"] in ("watchdog.recovered", "watchdog.started"):
                told.clear()
            elif record["type"] == "watchdog.step_failed":
                self.fail(
                    "I35", f"a fault of our own: {record['reason']}\n{record['facts'].get('trace', '')}"
                )
            elif record["type"] == "watchdog.degraded":
                cause = record["reason"].partition(":")[0]
                told[cause] += 1
                if told[cause] > 1:
                    self.fail("I35", f"told again and again that {cause!r} fails: {record['reason']}")

    def _truly_limited(self) -> None:
        """I6: a window is shut only by a limit that is there; old and quoted banners shut none."""
        now = self.machine.clock.t
        for member in self.machine.members.values():
            name, agent = member.name, member.agent
            if agent is not None and agent.mood is Mood.LIMIT:
                self._limited[name] = now
            file = self.machine.disk.files.get(f"{LOG_DIR}/state/limited-sim-{name}.json")
            shut = _window(bytes(file.data)) if file else ()
            fresh = shut and shut != self._shut.get(name, ())
            self._shut[name] = shut
            if fresh and now - self._limited.get(name, -1e9) > NOTICED_S:
                self.fail("I6", f"{name} is held for limited, which it has not been lately: {shut!r}")

    # -- panes

    def _on_session(self, verb: str, session: SimSession, detail: str) -> None:
        if not session.project or session.proc.owner != "ours":
            self.fail("I2", f"{verb} on {session.name}, which is not ours")
        if not self.watching:
            return
        if not self.looked:
            self.fail("I22", f"{verb} on {session.name} before this watchdog looked at the fleet")
        member, agent = self.machine.members.get(session.proc.agent), session.program
        if member is None or not isinstance(agent, SimAgent):
            return
        if verb != "remove":
            self._has_cause(verb, member.name)
            self._may_type(verb, member, agent, detail)
        elif agent.alive:
            self._has_cause("", member.name)  # a start that takes its place is a cause as well
            self._justified(member, agent, "remove")

    def _has_cause(self, effect: str, who: str) -> None:
        """I46: whatever is done is on the durable record beforehand; each keystroke has one of its own."""
        file = self.machine.disk.files.get(f"{LOG_DIR}/events.jsonl")
        name = who.removeprefix("sim-")
        durable = bytes(file.data[: file.synced][-TAIL:]) if file else b""
        for line in reversed(durable.split(b"\n")):
            record = parse(line)
            if record is None or record["type"] != EventType.EFFECT_BEGUN or record["agent"] != name:
                continue
            if effect and record["facts"]["effect"] != effect:
                continue
            if effect in KEYS and line in self._spent:
                break
            self._spent.add(line)
            return
        self.fail("I46", f"{effect or 'an act'} on {who} without a cause on record")

    def _may_type(self, verb: str, member: SimMember, agent: SimAgent, detail: str) -> None:
        name, mood = member.name, agent.mood
        if verb == "paste" and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in detail):
            self.fail("I10", f"control characters were typed into {name}: {detail!r}")
        over = 0.0 < member.until <= self.machine.clock.wall()
        if (member.paused or member.frozen) and not over and self.excuses.touched[name] < self.began:
            self.fail("I25", f"{name} is paused and was typed to: {detail}")
        if agent.draft_by_human and agent.draft_since < self.began:
            self.fail("I12", f"{verb} {detail!r} on the line where a person writes, in {name}")
        if agent.since >= self.began:
            return  # it changed while we looked
        if mood in (Mood.SHELL, Mood.IMPOSTER):
            self.fail("I8", f"{verb} {detail!r} into {name}, where {agent.proc.name} runs")
        allowed = mood is Mood.DIALOG and verb == "press" and detail == "1"
        if mood in (Mood.ASK, Mood.DIALOG) and not allowed:
            self.fail("I14", f"{verb} {detail!r} into an open question of {name}")
        if agent.menu and (verb, detail) != ("press", "Escape"):
            self.fail("I14", f"{verb} {detail!r} into the menu of a limit of {name}")
        if mood in (Mood.WORK, Mood.RETRY) and not agent.persona.queues and verb == "paste":
            self.fail("I13", f"{verb} {detail!r} into {name} at work")
        if mood is Mood.STRANGE:
            self.fail("I7", f"{verb} {detail!r} into a screen of {name} that nobody can read")
        self.outside_window(verb, member, agent)

    def outside_window(self, verb: str, member: SimMember, agent: SimAgent | None) -> None:
        """I5: nothing is done to a limited agent, or to one of its account, before the banner's instant.

        Of an account are those that the declaration in force names: a watchdog that was started while most of
        the file was gone knows no more.
        """
        members = [m for m in self.machine.members.values() if self.declares(m.name)]
        mates = [m.agent for m in members if m.account is member.account and m.agent]
        for mate in mates:
            if mate.mood is not Mood.LIMIT or not mate.alive or not self.noticed(mate):
                continue
            left = mate.banner - self.machine.clock.wall()
            shown = self.machine.clock.t - mate.refused
            if mate.banner and 0 < left <= FARTHEST_S:
                self.fail(
                    "I5", f"{verb} on {member.name}, {left:.0f} s before the reset that {mate.name} shows"
                )
            named = mate.account.printed - self.machine.clock.wall()  # another banner of it names a reset
            over = -shown < named <= 0
            if not mate.banner and mate is agent and shown < self.policy.fallback - SLOP and not over:
                self.fail("I5", f"{verb} on {member.name} {shown:.0f} s after a banner without a reset")

    def noticed(self, agent: SimAgent) -> bool:
        """Must the watchdog know of this mood by now? Not if clocks or people came in between."""
        if agent.noticed < NOTICED_TICKS or self.machine.clock.t - agent.since < NOTICED_S:
            return False
        # what a banner names cannot be known once the clock was moved under it
        since = min(agent.since, agent.account.known) if agent.mood is Mood.LIMIT else agent.since
        return self.excuses.jumped < since - 3600 and self.excuses.touched[agent.name] < agent.since

    def _justified(self, member: SimMember, agent: SimAgent, what: str) -> None:
        """I5 I7 I16 I23 I36: a living agent is only stopped for a reason that is true."""
        mood, now, policy = agent.mood, self.machine.clock.t, self.policy
        if self.raced(member.name) or member.wish == "down" or agent.proc.run in self.machine.condemned:
            return
        if mood in ENDED or agent.since >= self.began:
            return
        idle = now - agent.since
        if mood is Mood.LIMIT:
            self.fail("I5", f"{what} on {member.name}, which is limited")
        if mood in BUSY:
            self.fail("I16", f"{what} on {member.name}, which is at work ({mood}) for {idle:.0f} s")
        if mood in QUIET and member.watch == "heal+stall" and idle >= policy.stall_idle - SLOP:
            waits = agent.until + policy.stall_grace - self.machine.clock.wall() if mood is Mood.WAIT else 0.0
            if waits > SLOP and agent.until:
                self.fail("I16", f"{what} on {member.name}, which waits {waits:.0f} s more by its own word")
            self.machine.condemned.add(agent.proc.run)  # the stop goes on, whatever it does meanwhile
            return
        if mood is Mood.AUTH and self.excuses.touched[member.name] > agent.since:
            return  # a person forgave it, and nothing came of it
        if mood is Mood.STRANGE:
            self.fail("I7", f"{what} on {member.name}, whose screen nobody can read")
        self.fail("I23", f"{what} on {member.name}, healthy ({mood}) for {idle:.0f} s")


def _window(mark: bytes) -> tuple[object, ...]:
    """What shuts a window: since when, until when, by which words. That its banner was gone is no news."""
    try:
        data = json.loads(mark)
        return data["since"], data["until"], data["line"]
    except (ValueError, TypeError, KeyError):
        return ()  # a story has damaged it


class Starts:
    """What may be started, how often, and in what state of the world."""

    WINDOW_S, WINDOW_STARTS = 900.0, 10  # five of each tally, crashes and clean exits
    MINUTE, HOUR = 10, 60

    def __init__(self, oracles: Oracles) -> None:
        self._o = oracles
        self._machine = oracles.machine
        self._mine: dict[str, list[float]] = defaultdict(list)
        self.fleet: list[float] = []
        self.window: dict[str, tuple[float, float]] = {}  # died inside a limit window: its end (wall), when
        self._fatal: dict[str, float] = {}  # failed for good, as a person would judge: since when
        self._counted = -1

    def on_end(self, proc: SimProc, _code: int | None, _signum: int | None) -> None:
        """A process is gone; if it was an agent, its last mood says what may follow."""
        member = self._machine.members.get(proc.agent)
        agent = member.agent if member is not None else None
        if member is None or agent is None or agent.proc is not proc:
            return
        noticed = self._o.noticed(agent)
        unborn = not agent.was_ready and not agent.resumed  # a conversation that never began
        member.afresh = agent.mood in {Mood.WEDGE, Mood.CONTEXT} or unborn
        if agent.mood is Mood.LIMIT and noticed and agent.banner:
            self.window[member.name] = (agent.banner, self._machine.clock.t)
        if agent.mood is Mood.AUTH and noticed and member.watch != "none":
            self._fatal[member.name] = self._machine.clock.t
        if not agent.was_ready:
            member.bad_boots += agent.resumed
        elif (
            self._machine.clock.t - agent.born > NOTICED_S
        ):  # long enough for anybody to see that it was well
            member.bad_boots = 0

    def on_created(self, session: SimSession) -> None:
        """A session has just come to life."""
        self._counted = -1
        self.one_life_each()
        member = self._machine.members.get(session.proc.agent)
        if member is None or member.agent is None:
            return
        self._same_conversation(member, member.agent)
        if self._o.watching:
            owed = member.name in self.window  # it died in a limit window: its start was put off, not earned
            self._wanted(member)
            if not owed:
                self._in_budget(member.name)

    def _same_conversation(self, member: SimMember, agent: SimAgent) -> None:
        if member.resume and member.conversation and agent.conversation != member.conversation:
            lost = PERSONAS[member.persona].transcript and not self._kept(member.conversation)
            if member.bad_boots < 2 and not member.afresh and not member.fresh and not lost:
                self._o.fail("I18", f"{member.name} begins anew although {member.conversation} is on record")
            member.bad_boots = 0
        if agent.conversation != member.conversation:
            member.fresh = False
        member.afresh = False
        member.conversation = agent.conversation or member.conversation

    def _kept(self, conversation: str) -> bool:
        """Does the CLI still have that one? Nobody can go on with what is gone."""
        path = conversation_file(conversation)
        return path in self._machine.disk.files or path in self._machine.disk.dirs

    def _wanted(self, member: SimMember) -> None:
        o, name, now = self._o, member.name, self._machine.clock.t
        if member.wish != "up":  # no excuse: what is wanted is read again under the lock that verbs wait for
            o.fail("I25", f"{name} is created although it was taken down")
        if o.excuses.touched[name] < self._fatal.get(name, -1e9):
            o.fail("I21", f"{name} is started although its credentials were refused for good")
        self._fatal.pop(name, None)
        until, died = self.window.pop(name, (0.0, now))
        if self._machine.clock.wall() < until and max(o.excuses.touched[name], o.excuses.jumped) < died:
            o.fail("I5", f"{name} died inside a limit window and was started before its end")
        if not o.raced(name):
            o.outside_window("a start", member, None)

    def _in_budget(self, name: str) -> None:
        o, now = self._o, self._machine.clock.t
        lost = max(o.excuses.server_lost, o.excuses.host_lost, o.excuses.lost)
        if o.raced(name) or now - max(o.excuses.touched[name], o.excuses.heard[name]) < 120:
            self._mine[name].clear()  # the operator forgave it everything
            return
        if now - lost < 300:
            return
        mine, fleet = self._mine[name], self.fleet
        mine.append(now)
        fleet.append(now)
        recent = sum(now - t < self.WINDOW_S for t in mine)
        if recent > self.WINDOW_STARTS:
            o.fail("I21", f"{name} was started {recent} times within {self.WINDOW_S:.0f} s")
        if sum(now - t < 60 for t in fleet) > self.MINUTE:
            o.fail("I21", f"the fleet made more than {self.MINUTE} starts in a minute")
        if now - lost > 3600 and sum(now - t < 3600 for t in fleet) > self.HOUR:
            o.fail("I21", f"the fleet made more than {self.HOUR} starts in an hour")

    def on_tick_over(self) -> None:
        """Between two ticks."""
        self.one_life_each()

    def one_life_each(self) -> None:
        """I1 and I29: one live session and one live process set an agent, nobody left of an old run."""
        if self._counted == self._machine.table.changes:
            return
        self._counted = self._machine.table.changes
        runs: dict[str, set[str]] = defaultdict(set)
        for proc in self._machine.table.by_pid.values():
            if proc.agent in self._machine.members:
                runs[proc.agent].add(proc.run)
        for name, found in runs.items():
            if len(found) > 1:
                self._o.fail("I1", f"{name} has processes of {len(found)} runs: {sorted(found)}")
        server = self._machine.tmux.server
        sessions = server.sessions.values() if server is not None else ()
        for name, count in Counter(s.proc.agent for s in sessions if s.project and not s.dead).items():
            if count > 1 and name in self._machine.members:
                self._o.fail("I1", f"{name} has {count} live sessions")
