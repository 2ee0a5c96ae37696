"""What is kept of one member from look to look, so that the next one asks only for what may have changed.

An `Eye` holds the last look at its member, and of the run that is there its screen, its processes and what
its CLI reported. What is expensive (a capture, a process tree, a count of survivors) is asked for only where
the listing says that something moved, where a rule waits for it, or when a full look is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from fleet.backends.screen_reader import ending, last_words, read
from fleet.core.case import AgentSeen, ProcView
from fleet.core.desired import Desire, Want
from fleet.core.heard import Heard
from fleet.core.memory import AgentMemory, Limit
from fleet.core.model import Backend, Fleet, Member
from fleet.core.seen import PaneView, Posted, Proc, Reading, ScreenState
from fleet.core.words import MessageState
from fleet.ports import Unavailable
from fleet.supervisor.hear import NOTHING
from fleet.supervisor.world import World
from fleet.text import redact, secret_values
from fleet.times.moment import LONG_AGO, NEVER, Moment, Steady

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "tcsh"})
BUSY_RATE = 0.1  # share of one processor that is more than an idle full-screen program needs
BUSY_MIN_S = 0.3
MEASURED_S = 5.0  # an agent may well be quiet for less
CHILD_YOUNG_S = 3600.0  # an older child is a long-lived helper, not work
HELPER_S = 5.0  # and so is one that came with the agent
LAST_WORDS = 1500
TWO_SECONDS = 2.0  # the list dates activity in whole seconds
HEARSAY_S = 1800.0
SCAN_S = 1.0  # between two looks at the processes of a run

AT_PROMPT = {ScreenState.IDLE, ScreenState.ERROR}
UNMEASURED = ProcView(measured=False)

_judged = attrgetter(
    "blind", "fresh", "reading", "proc", "survivors", "wish", "foreign", "server_lost", "working", "answered",
    "asked", "limit", "prompts", "posted", "conversation",
)  # fmt: skip
_judged_pane = attrgetter("ref", "dead", "exit_code", "exit_signal", "in_mode")


class Given(NamedTuple):
    """What a look knows of a member before it asks for more."""

    spec: Member
    pane: PaneView | None
    entry: Desire | None
    memory: AgentMemory
    foreign: bool  # the name of its session is taken by something else
    lost_at: Steady  # when the tmux server was last lost
    due: bool  # it is to be looked at wholly
    leased: bool  # a verb is at work on it

    @property
    def ends_anyway(self) -> bool:
        """Does its exit status say nothing? It is being stopped, or in a verb's hands."""
        return self.leased or self.memory.stopping is not None

    @property
    def is_unread(self) -> bool:
        """Is its screen of no use? It is to be down, or in a verb's hands."""
        return self.leased or (self.entry is not None and self.entry.want is Want.DOWN)


@dataclass(slots=True)
class Eye:
    """What is kept of one member; of a new run everything but the last look is forgotten."""

    run: str = ""
    pid: int = 0
    # the last look
    given: Given | None = None
    seen: AgentSeen | None = None
    # its screen
    listed: PaneView | None = None  # as it was when last captured, or has the same change key
    again: bool = True  # the list's clock has seconds: look once more after the last change
    shown: tuple[Backend, str, int] | None = None  # what the reading was made from
    reading: Reading | None = None
    words: str = ""
    ending: Reading | None = None
    # its processes
    proc: ProcView = UNMEASURED
    tree: tuple[Proc, ...] = ()
    cpu: float = 0.0
    cpu_at: float = 0.0  # on the monotonic clock
    scanned: Steady = LONG_AGO
    swept: str = ""  # run of which no process was left
    # its reports
    heard: Heard = NOTHING
    spoke: Steady = NEVER  # last new word of a structured source
    launched: Steady = NEVER  # when its preamble was first seen to have ended

    # --- the last look ------------------------------------------------------------------------------

    def still(self, given: Given) -> bool:
        """Is it exactly as at the last look, and does no rule wait for more than the list shows?"""
        then, pane, memory = self.given, given.pane, given.memory
        if then is None or self.seen is None or then.entry is not given.entry:
            return False
        if then.pane is not pane and then.pane != pane:
            return False
        if memory.stopping or (given.entry is not None and given.entry.hold is not None):
            return False
        if pane is not None and not pane.dead:
            return not memory.outbox and memory.state != ScreenState.AUTH
        if self.seen.survivors != 0 or (pane is None and unseen_run(memory)):
            return False
        return then.memory is memory and (then.foreign, then.lost_at) == (given.foreign, given.lost_at)

    def keep(self, given: Given, seen: AgentSeen) -> bool:
        """Keep this look. Did anything change that a rule looks at?"""
        before = self.seen
        if before is seen:
            return False
        self.given, self.seen = given, seen
        return before is None or seen.fresh or _facts(before) != _facts(seen)

    # --- its screen ---------------------------------------------------------------------------------

    def wants_capture(self, pane: PaneView, now: Moment, *, waited_for: bool) -> bool:
        """Is its screen worth a capture? `waited_for`: by a rule."""
        moved = pane is not self.listed and not (self.listed and self.listed.change_key == pane.change_key)
        self.listed = pane
        if not (moved or self.again or waited_for or (pane.dead and not self.words)):
            return False
        # dated after now it is from before the clock was set back, and settled
        self.again = moved or abs(now.since_wall(pane.activity)) < TWO_SECONDS
        return True

    def forget_screen(self) -> None:
        """The next look must be a real one."""
        self.listed, self.again = None, True

    def take_words(self, backend: Backend, screen: str, environ: Mapping[str, str]) -> None:
        """The last words of a dead pane, without secrets: they go on record."""
        words = last_words(screen)[-LAST_WORDS:]
        self.words = redact(words, secret_values(environ)) or " "
        self.ending = ending(backend, self.words)

    def take_screen(
        self, backend: Backend, screen: str, pane: PaneView, memory: AgentMemory, now: Moment, zone: str
    ) -> None:
        """Read a capture, unless the last reading holds for it as well. One with a time is made anew."""
        if self._was_read(backend, screen, pane.cursor_y):
            return
        self.shown = (backend, screen, pane.cursor_y)
        # a time of day on the screen is the next one after its newest words can have been written
        written = min(now.wall, pane.activity) if pane.activity else now.wall
        self.reading = read(backend, screen, now=written, zone=zone, ours=_ours(memory))

    def _was_read(self, backend: Backend, screen: str, cursor_y: int) -> bool:
        shown, reading = self.shown, self.reading
        if shown is None or shown[0] is not backend or shown[1:] != (screen, cursor_y) or reading is None:
            return False
        return reading.until is None and reading.marker is None

    @property
    def is_working(self) -> bool:
        """Does its screen say so by a pattern?"""
        reading = self.reading
        return reading is not None and reading.state is ScreenState.WORKING and reading.pattern != ""

    def refusal(self, memory: AgentMemory) -> str:
        """What its screen says of refused credentials, at the second look and later."""
        reading = self.reading
        if reading is None or reading.state is not ScreenState.AUTH:
            return ""
        return reading.line if memory.state == ScreenState.AUTH and memory.state_looks > 1 else ""

    # --- its processes ------------------------------------------------------------------------------

    def wants_tree(self, backend: Backend, given: Given, now: Moment, *, fresh: bool) -> bool:
        """Are its processes worth a look?"""
        if now.since(self.scanned) <= SCAN_S:
            return False
        if given.due:
            return True
        typing = any(m.status is MessageState.QUEUED for m in given.memory.outbox)
        return (typing or (fresh and backend.process_name != "")) and not self.is_working

    def scan(self, world: World, fleet: Fleet, backend: Backend, pid: int, now: Moment) -> None:
        """Look at the processes of its run: which programs are there, and is one at work?"""
        began = world.clock.mono()
        try:
            tree = world.processes.tree(pid)
        except Unavailable:
            return
        if not tree:
            return
        ended = world.clock.mono()  # stopped in between? the shorter span is the safe one
        cpu, elapsed = sum(p.cpu for p in tree), began - self.cpu_at
        compared = self.cpu_at > 0
        used = compared and cpu - self.cpu > max(BUSY_MIN_S, BUSY_RATE * elapsed)
        measured = compared and (used or elapsed >= MEASURED_S)
        busy = used or self._has_tools(tree)
        self.tree, self.scanned = tree, now.steady
        if measured or not compared:
            self.cpu, self.cpu_at = cpu, ended
        self.proc = _programs(fleet, backend, tree)._replace(busy=busy, measured=measured)

    def _has_tools(self, tree: Sequence[Proc]) -> bool:
        """Is a tool at work, or was one until it ended since the last look? What it used is lost with it."""
        alive, before = {(p.pid, p.start) for p in tree}, self.tree
        if any(at_work(tree[0], child) for child in tree[1:]):
            return True
        return any(at_work(before[0], gone) for gone in before if (gone.pid, gone.start) not in alive)

    def survivors(self, world: World, given: Given) -> int | None:
        """How many processes of a run that is over, or that is being stopped, are left; None: not known."""
        pane, memory = given.pane, given.memory
        if pane is not None and pane.unreaped and not given.ends_anyway and memory.state != ScreenState.DEAD:
            return None  # nothing is decided before its status is known, which takes a moment
        run, pid = memory.seen_run, 0
        if memory.stopping:
            run, pid = memory.stopping.run, memory.stopping.pid
        elif pane is not None:
            run, pid = pane.ref.run, pane.ref.pid
        if not run:
            return 0
        self.run = self.run or run
        if self.swept == run and not given.due:
            return 0
        if pid == 0 and self.run == run:
            pid = self.pid
        try:
            left = world.processes.count(pid, run)
        except Unavailable:
            return None
        if left == 0 and (pane is None or pane.dead):
            self.swept = run
        return left

    # --- its reports --------------------------------------------------------------------------------

    def take_report(self, heard: Heard, now: Moment) -> None:
        """What its structured sources say, all together."""
        if heard != self.heard:
            self.heard, self.spoke = heard, now.steady

    def with_reports(
        self,
        found: AgentSeen,
        now: Moment,
        *,
        limit: Limit | None = None,
        conversation: str = "",
        mailbox: bool = False,
        posted: tuple[tuple[str, Posted], ...] = (),
    ) -> AgentSeen:
        """The look, with what the structured sources say.

        An old "working" does not outweigh a prompt that is idle, or at which a turn ended in an error. One
        that is dated in the future was said before the clock was set back: it outweighs nothing.
        """
        heard, working = self.heard, self.heard.working
        at_prompt = self.reading is not None and self.reading.state in AT_PROMPT
        age = now.since_wall(heard.at)
        if working and (age < -HEARSAY_S or (at_prompt and age > HEARSAY_S)):
            working = None
        return found._replace(
            working=working,
            answered=heard.own_words,
            heard_at=heard.at,
            heard_from=heard.source,
            model=heard.model,
            asked=heard.asked if working else "",
            limit=limit,
            prompts=heard.prompts,
            transcript=self.spoke,
            auth_failed=found.auth_failed or heard.auth,
            conversation=conversation,
            mailbox=mailbox,
            posted=posted,
        )


def unseen_run(memory: AgentMemory) -> str:
    """The run on record, if it is neither the one we saw last nor one whose end was counted."""
    run = memory.run
    return "" if run is None or run.id in {memory.seen_run, memory.over} else run.id


def eager(memory: AgentMemory) -> bool:
    """Does a rule wait for another look at this screen?"""
    return (
        bool(memory.outbox)
        or bool(memory.limit_hint)
        or memory.limit is not None
        or not memory.ready
        or memory.state in {ScreenState.WEDGED, ScreenState.ASKING, ScreenState.AUTH, None}
    )


def at_work(agent: Proc, child: Proc) -> bool:
    """A tool that waits for an answer uses no processor; a server that came with the agent is no tool."""
    return child.age < CHILD_YOUNG_S and agent.age - child.age > HELPER_S


def _facts(seen: AgentSeen) -> tuple[object, ...]:
    """What rules look at."""
    return _judged(seen), seen.pane and _judged_pane(seen.pane)


def _ours(memory: AgentMemory) -> tuple[str, ...]:
    """What we typed: on the screen, or in the composer."""
    return (*memory.said, *(m.text or m.tail for m in memory.outbox if m.status is not MessageState.QUEUED))


def _programs(fleet: Fleet, backend: Backend, tree: Sequence[Proc]) -> ProcView:
    """Is the agent's own program there? If not: that of another backend, or nothing but shells?"""
    names = {name for p in tree for name in (p.name, p.exe)}
    if not backend.process_name or backend.process_name in names:
        return ProcView(expected=True, other="", shell_only=False)
    others = {b.process_name for b in fleet.backends} - {"", backend.process_name}
    shells = all((p.exe or p.name) in SHELLS for p in tree)
    return ProcView(expected=False, other=min(others & names, default=""), shell_only=shells)
