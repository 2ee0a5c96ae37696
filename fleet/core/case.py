"""One agent's case at one moment: all a rule may look at, and the form of its answer."""

from __future__ import annotations

from typing import NamedTuple

from fleet.core.decision import Note
from fleet.core.desired import Want
from fleet.core.effects import Touch
from fleet.core.loop.loop_case import NO_LOOP, LoopShown
from fleet.core.memory import AgentMemory, Limit, Message
from fleet.core.model import Backend, Member, WatchdogSpec
from fleet.core.seen import PaneView, Posted, Reading, ScreenState
from fleet.core.words import Detail, Witness
from fleet.times.moment import NEVER, UNNAMED, Moment, Steady, Wall

SEEN_ONCE = "seen once, confirmed at the next look"  # in reasons
BY_SCREEN: dict[ScreenState | None, Detail] = {
    ScreenState.WORKING: Detail.WORKING,
    ScreenState.IDLE: Detail.IDLE,
    ScreenState.ASKING: Detail.ASKING,
    ScreenState.LIMITED: Detail.LIMITED,
    ScreenState.RETRYING: Detail.RETRYING,
    ScreenState.ERROR: Detail.ERROR,
    ScreenState.CONTEXT: Detail.CONTEXT,
    ScreenState.WEDGED: Detail.WEDGED,
    ScreenState.STARTING: Detail.STARTING,
    ScreenState.SHELL: Detail.MISMATCH,
    ScreenState.UNKNOWN: Detail.UNKNOWN,
}


class ProcView(NamedTuple):
    """The pane's process tree, summed up."""

    expected: bool = True  # the backend's own process is there, or the backend names none
    other: str = ""  # another configured backend's process, if the expected one is not there
    shell_only: bool = False  # nothing but a shell
    busy: bool = False  # used the processor or has children at work since the last look
    measured: bool = True  # there was a last look to compare with; until then `busy` means nothing


class Wish(NamedTuple):
    """What the operator wants of this agent."""

    want: Want | None = None  # None: nothing was said
    paused: bool = False
    frozen: bool = False
    held_by: str = ""  # a verb at work on it right now
    until: Wall = UNNAMED  # when its pause ends by itself; 0.0: never
    tries: int = 0  # as in core/desired.py
    resets: int = 0
    run: int = 0
    by: str = ""  # the verb that looks, if it has called for the run itself
    over: bool = False  # its pause has come to its end, and stands on record still


class AgentSeen(NamedTuple):
    """What this look found of one agent."""

    blind: str = ""  # why we could not look; everything else then means nothing
    pane: PaneView | None = None  # None: positively not there
    foreign: bool = False  # the name is taken by a session without our stamp
    reading: Reading | None = None  # of a capture of this very look, or unchanged since
    fresh: bool = False  # the capture was made in this look
    proc: ProcView = ProcView()
    survivors: int | None = None  # processes of the run still alive; None: not counted
    left: str = ""  # without a pane: the run they belong to, if not the one we saw last
    wish: Wish = Wish()
    working: bool | None = None  # what a structured source says; None: none speaks
    answered: bool = False  # it says that the model itself ended the last turn
    heard_at: Wall = UNNAMED  # when it said so
    heard_from: Witness | None = None
    model: str = ""  # which model really answers, where a source tells
    asked: str = ""  # a structured source says a question is open
    limit: Limit | None = None  # a structured source reported a limit
    prompts: tuple[tuple[Wall, str], ...] = ()  # the newest that a source saw arrive, with how each begins
    preparing: bool = False  # its preamble has not ended
    launched: Steady = NEVER  # when its preamble had ended; 0: it has none
    mailbox: bool = False  # its server answers: a message can be posted there
    posted: tuple[tuple[str, Posted], ...] = ()  # by message id: what became of those that were
    transcript: Steady = NEVER  # last growth of the transcript, 0: none known
    last_words: str = ""  # the end of a dead pane's screen
    ending: Reading | None = None  # and what a person must do about them, if they say so
    auth_failed: str = ""
    server_lost: bool = False
    conversation: str = ""  # an id that its CLI has just told
    unwanted: tuple[str, ...] = ()  # messages that their senders took back


class Case(NamedTuple):
    """All a rule may look at."""

    agent: Member
    backend: Backend
    watchdog: WatchdogSpec
    memory: AgentMemory
    seen: AgentSeen
    now: Moment  # when the look began
    looked: Steady = NEVER  # when it was over; the watchdog may have been stopped in between
    loop: LoopShown = NO_LOOP
    account_until: Wall = UNNAMED  # another agent of the same account is limited until then
    account_by: str = ""
    stagger: float = 0.0  # seconds after the window's end at which this one may go
    resumed: bool = False  # we have just come back from a suspend or clock jump
    may_start: bool = True  # the fleet's budget allows one more unplanned start
    ping_gap: float = 60.0
    in_person: bool = False  # a verb is at work for a person who waits
    seen_nudge: bool = True  # loop.done_nudge

    def with_memory(self, memory: AgentMemory) -> Case:
        """The same case with another memory."""
        return self if memory is self.memory else self._replace(memory=memory)

    @property
    def leased(self) -> bool:
        """Is a verb at work on it?"""
        return bool(self.seen.wish.held_by)

    @property
    def news_at(self) -> Steady:
        """The latest moment at which what this look found new can have come about: its age begins there."""
        return max(self.looked, self.now.steady)

    @property
    def sight(self) -> Detail:
        """The word for what is seen, when no rule has one."""
        pane = self.seen.pane
        if pane is None:
            return Detail.DOWN
        if pane.dead:
            return Detail.EXITED
        if not self.agent.has_screen:
            return Detail.WORKING
        return BY_SCREEN.get(self.memory.state, Detail.STARTING)


class Verdict(NamedTuple):
    """A rule's answer. An action or `hold` ends the agent's turn; otherwise the next rule is asked."""

    reason: str
    action: Touch | None = None
    hold: bool = False
    detail: Detail | None = None
    explains: bool = False  # what is seen: its reason is shown when no rule names a detail
    memory: AgentMemory | None = None
    wake_at: Steady | None = None  # look again not later than this
    notes: tuple[Note, ...] = ()
    finished: tuple[Message, ...] = ()  # messages whose receipt is final

    @property
    def ends(self) -> bool:
        """Does it end the agent's turn?"""
        return self.hold or self.action is not None


def hold(
    reason: str,
    detail: Detail | None = None,
    wake_at: Steady | None = None,
    memory: AgentMemory | None = None,
    notes: tuple[Note, ...] = (),
) -> Verdict:
    """Nothing is done at this look, and no later rule is asked."""
    return Verdict(reason, hold=True, detail=detail, wake_at=wake_at, memory=memory, notes=notes)


def do(
    act: Touch,
    detail: Detail | None = None,
    wake_at: Steady | None = None,
    memory: AgentMemory | None = None,
    notes: tuple[Note, ...] = (),
) -> Verdict:
    """Carry this out, for the cause that it names."""
    return Verdict(act.cause, action=act, detail=detail, wake_at=wake_at, memory=memory, notes=notes)
