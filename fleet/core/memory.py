"""What must survive a restart of the supervisor, and nothing else.

Ages are kept on the *steady* clock: it runs while we run, carries on over a restart by the wall
time that passed, and never goes back, so that neither a suspend nor a clock jump can age an agent.
Instants that the outside world named (a reset time, a WAITING-UNTIL) are on the wall clock.
"""

from __future__ import annotations

from typing import NamedTuple

from fleet.core.seen import PaneRef, ScreenState
from fleet.core.words import Detail, MessageKind, MessageState, Origin, PingAbout, StopStage, Witness
from fleet.times.moment import FIRST, NEVER, UNNAMED, Steady, Wall


class MadeFor(NamedTuple):
    """What a run was started for. One that was made for something else is replaced, as planned."""

    phase: str = ""  # of the loop; empty for an agent that is not governed by it
    call: int = 0  # of the operator, or of completion: see core/desired.py


class Run(NamedTuple):
    """One start of an agent until its end. Written by the verb or the watchdog that started it."""

    id: str
    session: str
    started: Wall
    pid: int = 0
    backend: str = ""
    model: str = ""
    made_for: MadeFor = MadeFor()
    conversation: str = ""  # the CLI's own session id, where we chose or know it
    resumed: bool = False
    delivery: str = ""  # arg, ping or exec: ping still owes the kickoff by typing
    kickoff: str = ""  # the file that holds the exact prompt
    tail: str = ""  # its last words, to recognise it in a composer
    print: str = ""  # fingerprint of the declaration it was started from: drift is a difference
    why: str = ""
    server: str = ""  # the address of its own server, where we chose one
    told: str = ""  # the phase whose kickoff this conversation has been given
    brief: str = ""  # digest of the kickoff that its conversation holds
    origin: Origin | None = None  # whose environment it was given: core/starts.py

    def supersedes(self, known: Run | None) -> bool:
        """Is this record of a run news beside the run that is known?

        Records of runs are not synced: a loss of power may bring an older one back. Its call is an older one.
        """
        if known is None:
            return True
        return self.id != known.id and self.made_for.call >= known.made_for.call


FOLDED_AT = 150  # characters


class Message(NamedTuple):
    """Something to type, and how far it got. `tail` recognises a long text on the screen."""

    id: str
    kind: MessageKind
    text: str = ""
    file: str = ""
    tail: str = ""
    status: MessageState = MessageState.QUEUED
    asked: Wall = UNNAMED  # when it was put into the outbox
    ended: Wall = UNNAMED  # when it came to its end
    queued: Steady = NEVER  # when the watchdog took it in; 0: not yet
    at: Steady = NEVER  # the last step
    at_wall: Wall = UNNAMED  # the paste: structured receipts must be younger
    enters: int = 0
    tries: int = 0  # pastes that never showed up
    run: str = ""  # the run it was typed into: another run has never seen it
    why: str = ""
    posted: bool = False  # it went to the CLI's server; `at_wall` and the id make its name there
    pasted: bool = False  # tmux took the text, or may have; a watchdog that died first leaves it False
    about: PingAbout | None = None  # of a ping
    inbox: str = ""  # of a ping about an inbox: which one
    phase: str = ""  # of a ping: the phase it was made for; it is not typed in another one
    clean: bool = False  # the composer was seen empty before it was typed
    clears: int = 0  # how often we tried to take our text back
    long: bool = False  # its text stands in its document only
    idle: bool = False  # not while the agent works: what the CLI queues it would take for a command

    @property
    def topic(self) -> tuple[MessageKind, PingAbout | None, str]:
        """What it is about: of two that wait, the newer may say it all."""
        return self.kind, self.about, self.inbox

    @property
    def folds(self) -> bool:
        """Composers show a long or many-lined paste as a placeholder."""
        return bool(self.file) or self.long or "\n" in self.text or len(self.text) > FOLDED_AT


class Words(NamedTuple):
    """Something bad that a screen says, and where it stands: that tells it from the same words said anew."""

    state: ScreenState  # what the screen says with it
    line: str
    above: str = ""  # the lines right above it, without digits and spinners
    until: Wall | None = None  # the end that it named when it was first seen
    since: Steady = NEVER  # when it was first seen there
    floor: int = 0  # lines below it when it was first seen there
    below: int = 0  # the most lines that were ever below it


class Limit(NamedTuple):
    """A usage-limit window. `until` already holds the slack; nothing is done to the agent before it."""

    since: Wall
    until: Wall
    line: str = ""
    source: Witness = Witness.SCREEN
    parsed: bool = True
    probes: int = 0
    probed: Steady = NEVER  # the last probe, 0 before the first
    clear_seen: Steady = NEVER  # when the banner was first seen gone
    named: Wall = UNNAMED  # the end that its banner named, slack and all; a window may end before it


class Stopping(NamedTuple):
    """A stop in progress. Never carried over a restart: it is decided again from what is seen."""

    cause: str
    planned: bool  # ours: never counted against the agent
    ref: PaneRef | None
    run: str
    pid: int
    stage: StopStage = StopStage.BEGUN
    at: Steady = NEVER
    clear: int = 0  # how many counts in a row found no process


class AgentMemory(NamedTuple):
    """Everything the rules remember of one agent."""

    run: Run | None = None
    seen_run: str = ""  # newest run id whose pane we saw alive
    ready: Steady = NEVER  # of this run; 0: not yet
    alive_since: Steady = NEVER  # first sight of this run alive
    over: str = ""  # run id whose end has been counted already
    planned: bool = False  # that end was ours: bringing it back costs no budget

    detail: Detail | None = None  # None: not judged yet
    since: Wall = UNNAMED  # when the detail began

    deaths: tuple[Steady, ...] = ()  # unplanned ends
    exits: tuple[Steady, ...] = ()  # clean exits without a stop
    heals: int = 0  # restarts we made, ever
    retry_at: Steady = NEVER  # not before
    flapping: Steady = NEVER  # since when, 0 if not
    fatal: str = ""
    fix: str = ""
    tries: int = 0  # the operator's fresh tries and resets that were heeded: see core/desired.py
    resets: int = 0
    pardoned_at: Wall = UNNAMED  # the newest `reset`; what a source said before it proves nothing either
    pardoned: str = ""  # run whose end a `reset` has forgiven: how it ended proves nothing any more

    limit: Limit | None = None
    limit_hint: Steady = NEVER  # first look at a banner; armed at the second
    words: Words | None = None  # the newest accusation on its screen, while it stands there
    dealt: tuple[Words, ...] = ()  # those that had their consequence, while they stand there
    said: tuple[str, ...] = ()  # the last texts that we typed into this run: never evidence

    quiet_since: Steady = NEVER  # last sign of work
    content: str = ""  # hash of the content last seen
    still_since: Steady = NEVER  # last change of anything on the screen
    activity: Wall = UNNAMED  # what tmux last said about output: only whether it changed matters
    state: ScreenState | None = None  # last one; None: not read yet
    state_since: Steady = NEVER
    state_looks: int = 0  # captures in a row that said so

    shell_since: Steady = NEVER
    marker: Wall = UNNAMED  # newest WAITING-UNTIL honoured
    marker_woken: Wall = UNNAMED  # the marker whose passing was told to the agent
    bad_marker: str = ""

    disagreed: str = ""  # the contradiction between screen and structured source told last
    kept: str = ""  # run whose unreadable screen has been kept and told

    pressed: str = ""  # dialog last answered, and how often
    presses: int = 0
    woke: Steady = NEVER
    nudged: str = ""  # phase whose done marker was asked for
    bad_resumes: int = 0
    afresh: bool = False  # its conversation cannot go on: the next start begins a new one
    finished: str = ""  # run of a task that came to its end by itself, with exit code 0

    outbox: tuple[Message, ...] = ()
    typed: tuple[Steady, ...] = ()  # when we last typed of our own accord
    stopping: Stopping | None = None

    def with_detail(self, detail: Detail, wall: Wall) -> AgentMemory:
        """The same, in another state of which the clock starts now."""
        return self if detail == self.detail else self._replace(detail=detail, since=wall)


class FleetMemory(NamedTuple):
    """What concerns all agents together."""

    steady: Steady = FIRST  # the steady clock when last saved; far from zero, which means "never" ...
    wall: Wall = UNNAMED  # ... and the wall clock at that moment ...
    mono: float = 0.0  # ... and the monotonic one
    server_pid: int = 0
    server_started: int = 0
    server_lost: Steady = NEVER
    heals: tuple[Steady, ...] = ()  # unplanned starts of the last hour, the whole fleet
    amnesty: int = 0  # how often the operator had these forgotten
