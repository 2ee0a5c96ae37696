"""Simulated agents: small state machines that draw screens, take what is typed and misbehave by seed.

A mood is what the agent truly does; the screen is only what it shows of it. The oracles judge by moods.
"""

from __future__ import annotations

import signal as signals
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from random import Random
from zoneinfo import ZoneInfo

from tests.sim.clock import SimClock, Timer
from tests.sim.processes import ProcessTable, SimProc
from tests.sim.tmux import SimSession


class Mood(StrEnum):
    """What an agent truly does."""

    BOOT = "boot"
    DIALOG = "dialog"  # a question at start with one allowed key
    WORK = "work"
    SILENT = "silent"  # the screen is still, a child is at work
    HUNG = "hung"  # shows work, does nothing
    IDLE = "idle"
    DONE = "done"  # idle with nothing left to do: nobody will wake it but us
    WAIT = "wait"  # idle behind a WAITING-UNTIL line
    ASK = "ask"  # a question that only a person may answer
    LIMIT = "limit"
    RETRY = "retry"
    WEDGE = "wedge"
    ERROR = "error"
    AUTH = "auth"
    CONTEXT = "context"
    STRANGE = "strange"  # a screen nobody has a pattern for
    SHELL = "shell"
    IMPOSTER = "imposter"  # another backend's program runs in the pane


AT_PROMPT = frozenset({Mood.IDLE, Mood.DONE, Mood.WAIT, Mood.ERROR, Mood.LIMIT, Mood.WEDGE, Mood.CONTEXT})
BUSY = frozenset({Mood.WORK, Mood.SILENT, Mood.RETRY})

# What may follow a stretch of work, and how often before the seed has its say.
OUTCOMES: dict[str, float] = {
    "idle": 8.0,
    "done": 3.0,
    "wait": 2.0,
    "silent": 1.5,
    "ask": 0.7,
    "limit": 1.5,
    "retry": 1.0,
    "wedge": 1.0,
    "error": 0.7,
    "context": 0.4,
    "strange": 0.4,
    "hung": 0.3,
    "exit0": 0.7,
    "exit1": 0.7,
    "signal": 0.7,
    "shell": 0.6,
    "imposter": 0.4,
    "auth": 0.15,
}
CALM: dict[str, float] = {"idle": 1.0, "wait": 0.3}


@dataclass(frozen=True)
class Persona:
    """How one kind of CLI behaves."""

    comm: str
    queues: bool = True
    submit: str = "Enter"
    spinner: bool = True  # a working screen changes every second
    asks_at_boot: float = 0.2
    menus: float = 0.0  # chance that a menu opens below the banner of a limit
    composer: bool = True  # its profile can make out a composer, dialogs, quotations; otherwise it has none
    hooks: bool = False  # it reports by itself what it does
    transcript: bool = False  # it keeps a file of what was said in its conversation
    rollout: bool = False  # the same in another form, under an id of its own choice
    server: bool = False  # it answers questions, takes messages, and chooses its id

    @property
    def chooses_id(self) -> bool:
        """Does the CLI itself choose the id of a conversation?"""
        return self.rollout or self.server

    @property
    def reports(self) -> bool:
        """Is there another source than its screen?"""
        return self.hooks or self.transcript or self.rollout or self.server


PERSONAS = {
    "clod": Persona("clod"),
    "hook": Persona("hook", hooks=True, menus=0.5),
    "scribe": Persona("scribe", transcript=True),
    "codec": Persona("codec", rollout=True),
    "envoy": Persona("envoy", server=True, asks_at_boot=0.0),
    "opal": Persona("opal", queues=False, submit="C-m", asks_at_boot=0.0),
    "plain": Persona("plain", spinner=False, asks_at_boot=0.0, composer=False),
}
# What a CLI with hooks reports on its way into a mood; nothing for those it does not know it is in.
HOOKS = {
    Mood.WORK: "UserPromptSubmit",
    Mood.IDLE: "Stop",
    Mood.DONE: "Stop",
    Mood.WAIT: "Stop",
    Mood.ASK: "PermissionRequest",
    Mood.LIMIT: "StopFailure",
    Mood.AUTH: "StopFailure",
    Mood.ERROR: "StopFailure",
    Mood.CONTEXT: "StopFailure",
    Mood.WEDGE: "StopFailure",
}
# What three regexes cannot tell from idle does not befall an agent that has only those.
UNREADABLE = frozenset({"ask", "strange", "auth", "context", "error", "shell", "imposter", "silent"})


@dataclass
class Temper:
    """How the agents of one seed misbehave."""

    weights: dict[str, float] = field(default_factory=lambda: dict(OUTCOMES))
    work: float = 600.0  # mean length of a turn
    stubborn: float = 0.1  # share of processes that ignore SIGTERM
    daemons: float = 0.3  # chance that a turn leaves a child that shrugs off a hang-up
    boot_death: float = 0.02
    not_found: float = 0.0  # chance that exec finds nobody: a retry cannot mend that
    quotes: float = 0.3  # chance that output quotes somebody's banner
    clears: float = 0.5  # chance that a turn begins on an empty screen; otherwise old banners stay on it


@dataclass
class Account:
    """What the provider knows: until when this account is refused."""

    until: float = 0.0  # wall
    printed: float = 0.0  # wall: what its banners say
    known: float = 0.0  # universe time at which a banner was first shown


class SimAgent:
    """One run of one agent: the program in its pane."""

    def __init__(
        self,
        name: str,
        persona: Persona,
        session: SimSession,
        *,
        clock: SimClock,
        rng: Random,
        table: ProcessTable,
        temper: Temper,
        account: Account,
        zone: str,
        moods: Counter[str],
        kickoff: bool,
        conversation: str = "",
        resumed: bool = False,
        phase: str = "",
        on_turn: Callable[[SimAgent], None] | None = None,
        on_heard: Callable[[SimAgent, str], None] | None = None,
        on_hook: Callable[[SimAgent, str, str], None] | None = None,
    ) -> None:
        self.name = name
        self.persona = persona
        self.session = session
        self.clock = clock
        self.rng = rng
        self.table = table
        self.temper = temper
        self.account = account
        self.zone = zone
        self.kickoff = kickoff
        self.moods = moods  # how often each outcome came about, in the whole machine
        self.conversation = conversation
        self.resumed = resumed
        self.phase = phase  # of the loop, as its kickoff names it
        self._on_turn = on_turn  # what its work leads to
        self._on_heard = on_heard
        self._on_hook = on_hook if persona.reports else None
        self._prompt = ""
        self.banner = 0.0  # wall: the reset that the banner on the screen names; 0: none named
        self.refused = 0.0  # universe time at which the banner was first shown, or came back from a probe
        self.draft_since = 0.0
        self.menu = False  # of a limit; one key closes it
        self.mood = Mood.BOOT
        self.since = self.born = clock.t  # universe time at which the mood, and the life, began
        self.lines: list[str] = ["@ welcome"]
        self.composer = ""
        self.draft_by_human = False
        self.touched = clock.wall()  # wall time of the last output
        self.pasted = -1.0  # universe time at which pasted text last arrived
        self.queue: list[str] = []
        self.children = 0  # helpers it ever left running
        self.received: list[str] = []  # every line that was submitted, in order
        self.noticed = 0  # undisturbed ticks of the watchdog since this mood began
        self.was_ready = False
        self.until = 0.0  # wall: end of a wait or a retry
        self.text_in_shell: list[str] = []
        self._timer: Timer | None = None
        self._late: Callable[[], None] | None = None
        self._shown: tuple[object, str] | None = None
        proc = session.proc
        proc.agent = name
        proc.handler = self._on_signal
        stubborn = rng.random() < temper.stubborn
        proc.ignores = frozenset({signals.SIGTERM}) if stubborn else frozenset()
        self._then(rng.uniform(0.02, 0.5), self._exec)

    @property
    def proc(self) -> SimProc:
        """The process of the pane."""
        return self.session.proc

    @property
    def alive(self) -> bool:
        """Does it still run?"""
        return self.proc.alive

    # -- time

    def _then(self, delay: float, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.clock.after(delay, lambda: self._fire(action))

    def _fire(self, action: Callable[[], None]) -> None:
        if not self.proc.alive:
            return
        if self.proc.stopped:
            self._late = action  # a frozen process does it when it is thawed
        else:
            action()

    def _on_signal(self, signum: int) -> bool:
        if signum == signals.SIGCONT:
            late, self._late = self._late, None
            if late is not None:
                late()
            return True
        if signum == signals.SIGTERM:  # a TUI tidies up before it goes
            self.clock.after(self.rng.uniform(0.01, 2.0), lambda: self.die(code=143))
            return True
        return False

    def enter(self, mood: Mood, *lines: str) -> None:
        """Another mood, and what is printed on the way into it."""
        self.mood, self.since, self.noticed, self.menu = mood, self.clock.t, 0, False
        self.was_ready = self.was_ready or mood is not Mood.DIALOG
        self.say(*lines)
        if self._on_hook is not None and (event := HOOKS.get(mood)):
            self._on_hook(self, event, self._prompt if mood is Mood.WORK else "\n".join(lines))
        self.table.set_load(self.proc, {Mood.WORK: 0.2, Mood.BOOT: 0.5}.get(mood, 0.0))

    def say(self, *lines: str) -> None:
        """Output: it is on the screen and tmux notices it."""
        self.lines.extend(lines)
        del self.lines[:-12]
        self.touched = self.clock.wall()
        self._shown = None

    def die(self, code: int | None = None, signum: int | None = None) -> None:
        """The process ends."""
        if self.proc.alive:
            self.table.end(self.proc, code, signum)

    # -- life

    def _exec(self) -> None:
        if self.rng.random() < self.temper.not_found:
            self.say(f"sh: 1: {self.persona.comm}: not found")
            self.die(code=127)
            return
        self.proc.name = self.proc.exe = self.persona.comm
        if self.rng.random() < self.temper.boot_death:
            self._then(self.rng.uniform(0.0, 3.0), lambda: self.die(code=1))
        elif self.rng.random() < self.persona.asks_at_boot:
            self._then(self.rng.uniform(0.5, 4.0), self._ask_trust)
        else:
            self._then(self.rng.uniform(0.5, 6.0), self._ready)

    def _ask_trust(self) -> None:
        self.enter(Mood.DIALOG)

    def _ready(self) -> None:
        if self.kickoff:
            self.begin("kickoff")
        else:
            self.enter(Mood.IDLE, "@ ready")

    def begin(self, what: str) -> None:
        """A turn begins, unless the provider refuses."""
        if self.clock.wall() < self.account.until:
            self.limit()
            return
        if not self.persona.composer and self.rng.random() < self.temper.clears:
            self.lines.clear()
        self._prompt = what
        self.enter(Mood.WORK, f"» {what[:60]}", "@ reading the code")
        if not self.persona.composer and self.rng.random() < self.temper.quotes:
            self.say('@ the log says "You have hit your usage limit. resets 3am"')
        if self.persona.composer and self.rng.random() < self.temper.quotes:
            self.say(
                "$ tail agent.log", "  | ! You have hit your usage limit. resets 3am", "@ that was in the log"
            )
        if self.rng.random() < self.temper.daemons:
            child = self.table.spawn("helper", self.proc)
            self.children += 1
            child.ignores = frozenset({signals.SIGHUP})
            if self.rng.random() < 0.5:
                child.sid = child.pid
        self._then(self.rng.expovariate(1 / self.temper.work) + 5.0, self._turn_ended)

    def _turn_ended(self) -> None:
        if self._on_turn is not None:
            self._on_turn(self)
            if not self.proc.alive:
                return
        if self.queue:
            self.begin(self.queue.pop(0))
            return
        never = frozenset() if self.persona.composer else UNREADABLE
        names = [n for n in self.temper.weights if n not in never]
        choice = self.rng.choices(names, [self.temper.weights[n] for n in names])[0]
        self.moods[choice] += 1
        getattr(self, f"_to_{choice}")()

    def _words(self) -> str:
        """No two turns end alike."""
        return "".join(self.rng.choice("abcdefghijklmnop") for _ in range(8))

    def _to_idle(self) -> None:
        self.enter(Mood.IDLE, f"@ finished {self._words()}")
        self._then(self.rng.uniform(20, 280), lambda: self.begin("more work"))

    def _to_done(self) -> None:
        self.enter(Mood.DONE, f"@ nothing left but {self._words()}")

    def _to_wait(self) -> None:
        self.until = self.clock.wall() + self.rng.uniform(60, 7200)
        stamp = datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        garbled = self.rng.random() < 0.1
        self.enter(Mood.WAIT, "@ waiting", f"WAITING-UNTIL: {'soon, I hope' if garbled else stamp}")
        if garbled:
            self.until = 0.0
        elif self.rng.random() < 0.7:
            self._then(self.until - self.clock.wall() + self.rng.uniform(0, 60), self._wake_up)

    def _wake_up(self) -> None:
        self.begin("the wait is over")

    def _to_silent(self) -> None:
        self.enter(Mood.SILENT, "@ running the long build")
        child = self.table.spawn("cc1", self.proc)
        self.table.set_load(child, self.rng.choice((0.9, 0.0)))  # it computes, or waits for somebody
        child.on_exit = lambda _code, _signum: self._then(0.1, self._turn_ended)  # also if somebody ends it
        self._then(self.rng.uniform(300, 2400), lambda: self.table.end(child, code=0))

    def _to_ask(self) -> None:
        self.enter(Mood.ASK)

    def _to_limit(self) -> None:
        hours = self.rng.choice((0.1, 0.3, 1.0, 2.0, 5.0))
        reset = self.clock.wall() + 60 + self.rng.uniform(0.2, 1.0) * hours * 3600
        self.account.printed = reset - reset % 60 + 60
        late = self.rng.uniform(60, 900) if self.rng.random() < 0.2 else 0.0
        self.account.until = self.account.printed + late
        self.account.known = self.clock.t
        self.limit()

    def limit(self, *, probed: bool = False) -> None:
        """The banner, in one of its spellings. Who tries it beside us moves no cadence of ours."""
        if probed or self.mood is not Mood.LIMIT:
            self.refused = self.clock.t
        printed = self.account.printed
        if printed <= self.clock.wall():  # not lifted at the printed time: a new one is named
            printed = self.account.until - self.account.until % 60 + 60
            self.account.printed = printed
        local = datetime.fromtimestamp(printed, ZoneInfo(self.zone))
        spellings = (
            f"resets {local:%I:%M%p}".lower().replace(" 0", " "),
            f"resets {local:%H:%M} ({self.zone})",
            f"resets {datetime.fromtimestamp(printed, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "",
        )
        if printed - self.clock.wall() > 80_000:  # a bare time of day would be tomorrow's
            spellings = spellings[2:]
        if self.mood is Mood.LIMIT:  # printed once more, it says what it said
            spellings = tuple(s for s in spellings if bool(s) == bool(self.banner))
        spelling = self.rng.choice(spellings)
        self.enter(Mood.LIMIT, f"! You have hit your usage limit. {spelling}".rstrip())
        self.banner = printed if spelling else 0.0
        self.menu = bool(self.persona.menus) and self.rng.random() < self.persona.menus

    def _to_retry(self) -> None:
        self.until = self.clock.wall() + self.rng.uniform(20, 400)
        self.enter(Mood.RETRY, "! the API is overloaded")
        self._then(self.until - self.clock.wall(), lambda: self.begin("again"))

    def _to_wedge(self) -> None:
        self.enter(Mood.WEDGE, "! FATAL: the conversation cannot go on")

    def _to_error(self) -> None:
        self.enter(Mood.ERROR, "! API Error: 500 internal error")

    def _to_context(self) -> None:
        self.enter(Mood.CONTEXT, "! Context is full")

    def _to_strange(self) -> None:
        self.enter(Mood.STRANGE)
        self._then(self.rng.uniform(60, 7200), lambda: self.begin("back from the odd screen"))

    def _to_hung(self) -> None:
        self.enter(Mood.HUNG)

    def _to_exit0(self) -> None:
        self.say("bye")
        self.die(code=0)

    def _to_exit1(self) -> None:
        self.say("panic: something broke")
        self.die(code=1)

    def _to_signal(self) -> None:
        self.die(signum=self.rng.choice((signals.SIGSEGV, signals.SIGKILL)))

    def _to_auth(self) -> None:
        self.enter(Mood.AUTH, "! Please log in: authentication failed")

    def _to_shell(self) -> None:
        self.proc.name = self.proc.exe = "bash"
        self.enter(Mood.SHELL, "user@host:~$ ")

    def _to_imposter(self) -> None:
        other = "opal" if self.persona.comm != "opal" else "clod"
        self.proc.name = self.proc.exe = other
        self.enter(Mood.IMPOSTER, f"{other} is here now")

    # -- typing

    def paste(self, text: str) -> None:
        """Pasted text reaches the program a little later."""
        if self.mood is Mood.SHELL:
            self.text_in_shell.append(text)
            return
        if self.menu or self.mood in (Mood.BOOT, Mood.DIALOG, Mood.ASK, Mood.HUNG, Mood.AUTH):
            return  # swallowed
        slowest = 0.8 if self.persona.composer else 0.08  # without a composer nobody could see it arrive
        self.clock.after(self.rng.uniform(0.005, slowest), lambda: self._arrives(text))

    def _arrives(self, text: str) -> None:
        if self.proc.alive and not self.proc.stopped:
            self.composer += text
            self.pasted = self.clock.t
            self.touched = self.clock.wall()
            self._shown = None

    def key(self, name: str) -> None:
        """One key. The submit key just behind a paste is taken for a newline."""
        if self.proc.stopped or self.mood in (Mood.BOOT, Mood.HUNG):
            return
        if self.mood is Mood.SHELL:
            self.text_in_shell.append(name)
        elif self.mood is Mood.DIALOG:
            if name == "1":
                self._then(0.3, self._ready)
            elif name == "Enter":
                self.die(code=1)  # the default answer is "No, exit"
        elif self.menu:
            self.menu, self._shown = False, None  # whichever: it waits
        elif self.mood in (Mood.ASK, Mood.AUTH):
            return
        elif name == self.persona.submit and self.composer:
            if self.clock.t - self.pasted < 0.1:
                self.composer += "\n"
            else:
                self.submit()

    def submit(self) -> None:
        """What stands in the composer becomes a message."""
        text, self.composer = self.composer, ""
        ours, self.draft_by_human = not self.draft_by_human, False
        self._take(text, ours=ours)

    def posted(self, text: str) -> None:
        """A message that its server took."""
        if self.mood in (Mood.ASK, Mood.HUNG, Mood.STRANGE, Mood.DIALOG):
            self.received.append(" ".join(text.split()))
            self.queue.append(text)
        else:
            self._take(text, ours=True)

    def _take(self, text: str, *, ours: bool) -> None:
        self.received.append(" ".join(text.split()))
        if ours and self._on_heard is not None:
            self._on_heard(self, self.received[-1])
        self.say(f"» {text.strip()[:80]}")
        if self.mood in BUSY:
            self.queue.append(text)
        elif self.mood is Mood.LIMIT and self.clock.wall() < self.account.until:
            self.limit(probed=ours)
        elif self.mood is Mood.WEDGE:
            self.say("! FATAL: the conversation cannot go on")
        elif self.mood in AT_PROMPT:
            self.begin(text)

    def human_types(self, text: str) -> None:
        """A person at the keyboard, half way through a sentence."""
        free = self.mood in AT_PROMPT and not self.menu and not self.composer
        if self.alive and self.persona.composer and free:
            self.composer, self.draft_by_human, self.draft_since = text, True, self.clock.t
            self.session.typed_at = self.touched = self.clock.wall()
            self._shown = None

    def human_finishes(self) -> None:
        """The person submits or thinks better of it."""
        if self.alive and self.draft_by_human:
            self.session.typed_at = self.clock.wall()
            if self.rng.random() < 0.5:
                self.composer, self.draft_by_human = "", False
                self._shown = None
            else:
                self.submit()

    # -- what is seen

    def activity(self) -> float:
        """Wall time of the last output."""
        spinning = self.mood is Mood.RETRY or (self.mood is Mood.WORK and self.persona.spinner)
        return self.clock.wall() if spinning and not self.proc.stopped else self.touched

    def cursor(self) -> tuple[int, int]:
        """It stands behind the composer's text."""
        return (2 + len(self.composer) % 190, 40)

    def screen(self) -> str:
        """What capture-pane would print."""
        tick = int(self.clock.t - self.since) if self.persona.spinner else 0
        moves = self.mood in (Mood.WORK, Mood.RETRY, Mood.HUNG)
        key = (self.mood, tick if moves else 0, self.composer, self.menu)
        if self._shown is not None and self._shown[0] == key:
            return self._shown[1]
        text = draw(self, tick)
        self._shown = (key, text)
        return text


def draw(agent: SimAgent, tick: int) -> str:
    """The screen for a mood: content, a line of state, the composer."""
    if agent.mood is Mood.BOOT:
        return "loading...\n"
    if agent.mood is Mood.STRANGE:
        return "".join(f"~~ {i * 7 % 11} ~~\n" for i in range(9))
    if agent.mood is Mood.SHELL:
        return "\n".join([*agent.lines[-4:], "user@host:~$ "])
    if agent.mood is Mood.DIALOG:
        return "Do you trust this folder?\n  1. Yes\n> 2. No, exit\n  choose with the arrow keys\n"
    if agent.mood is Mood.ASK:
        return "\n".join(
            [*agent.lines, "", "Allow this command?", "  1. Yes", "> 2. No", "  choose with the arrow keys"]
        )
    if agent.menu:
        choices = ["> 1. Stop and wait for limit to reset", "  2. Upgrade", "  choose with the arrow keys"]
        return "\n".join([*agent.lines, "", "What do you want to do?", *choices])
    state = {
        Mood.WORK: f"* working ({tick}s, esc to interrupt)",
        Mood.HUNG: "* working (61s, esc to interrupt)",
        Mood.RETRY: f"* retrying in {max(0, int(agent.until - agent.clock.wall()))} s",
    }.get(agent.mood, "")
    bar = "-" * 60
    return "\n".join([*agent.lines, "", state, bar, f"> {agent.composer}".rstrip(), bar, "  ? for help"])
