"""The view itself. It looks once a second from a thread, draws what changed, and acts only through verbs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from fleet import engine
from fleet.core.words import EventType
from fleet.extras.captions import caption
from fleet.extras.top import cells as show
from fleet.extras.top.cells import Cell
from fleet.extras.top.widgets import CSS, Ask, Page, Roster, Sure, fitted, painted, screen_text

W = TypeVar("W", bound=Widget)
Record = Mapping[str, Any]
Used = Mapping[str, tuple[int, float | None]]  # by agent: tokens and US dollars

LOOK_S = 1.0
USED_S = 15.0  # reading transcripts is not free
EVENTS_KEPT = 200
PROBLEMS_MAX = 4
ROOM_FOR_EVENTS = 18  # lines
NOISE = ("effect.", "notify.", "tokens.", EventType.MESSAGE_QUEUED)

KEYS = (
    ("enter", "attach", "attach", "its terminal; C-b d comes back here"),
    ("s", "send", "send", "type a message into it"),
    ("p", "pause", "pause", "leave it alone, or stop leaving it alone"),
    ("z", "freeze", "freeze", "stop its processes in place, or let them run on"),
    ("r", "restart", "restart", "stop it and start it again"),
    ("x", "stop", "stop", "stop it; it stays down"),
    ("u", "up", "up", "start it"),
    ("e", "explain", "explain", "why it is in its state, and what comes next"),
    ("l", "logs", "logs", "what its session printed"),
    ("slash", "filter", "filter", "only rows with these letters in name, state, model or reason"),
    ("question_mark", "help", "help", "this page"),
    ("q", "quit", "quit", "leave; the fleet goes on"),
)
NAMES = {"enter": "⏎", "slash": "/", "question_mark": "?"}


class LiveFleet(Protocol):
    """What the view needs of a fleet: facts to show, and verbs to act with. `verbs/top.py` has the real one.

    All of it may be slow and is called from a thread; `attach` has the terminal for itself.
    """

    def facts(self) -> Mapping[str, Any]:
        """The document that `status --json` prints."""

    def phases(self) -> Sequence[str]:
        """The ids of the loop's phases."""

    def events(self) -> Sequence[Record]:
        """Events since the last call; at first the newest ones there are."""

    def screen(self, session: str) -> str:
        """What the session's terminal shows now, colours included; empty when it is not there."""

    def used(self) -> Used:
        """Tokens and money so far."""

    def run(self, *words: str, text: str = "") -> tuple[int, str]:
        """Run a verb; its exit code and what it said."""

    def attach(self, name: str) -> int:
        """Hand the terminal over until the person detaches."""


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything one look found."""

    facts: Mapping[str, Any]
    phases: Sequence[str]
    events: Sequence[Record]
    session: str
    screen: str


class Top(App[int]):
    """The view of one fleet."""

    ENABLE_COMMAND_PALETTE = False
    CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, action, word, show=False) for key, action, word, _ in KEYS),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, fleet: LiveFleet, clock: Callable[[], float], *, tour: bool = False) -> None:
        super().__init__()
        self.fleet = fleet
        self.tour = tour
        self.clock = clock
        self.needle = ""
        self.events: deque[Record] = deque(maxlen=EVENTS_KEPT)
        self.captions: deque[list[Cell]] = deque(maxlen=EVENTS_KEPT)
        self.used: Used = {}
        self.last: Glance | None = None
        self.roster = Roster()
        self._looking = False
        self._shown: dict[str, object] = {}

    # --- the screen ---------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """From what matters most to what matters least."""
        yield Static(id="head")
        yield Static(id="phases")
        yield Static(id="problems")
        yield Static(id="columns")
        yield self.roster
        yield Input(id="filter", placeholder="name, state, model, reason")
        with Vertical(id="pane"):
            yield Static(id="screen")
        with Vertical(id="stream"):
            yield Static(id="events")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Begin to look."""
        self._at("#filter", Input).display = False
        self._at("#stream", Vertical).border_title = "what is happening" if self.tour else "events"
        self.roster.focus()
        self._draw_keys()
        self.set_interval(LOOK_S, self.look)
        self.set_interval(USED_S, self.count)
        self.look()
        self.count()

    def on_resize(self) -> None:
        """The same facts in another shape; where there is little room, the events go first."""
        self._at("#stream", Vertical).display = self.size.height >= ROOM_FOR_EVENTS
        self._shown.clear()
        if self.last is not None:
            self._draw(self.last)
        self._draw_keys()

    def on_roster_selected(self) -> None:
        """Show the other screen at once."""
        self.look()

    # --- looking ------------------------------------------------------------------------------------

    def look(self) -> None:
        """One look at a time, however long it takes."""
        if not self._looking:
            self._looking = True
            self._look()

    @work(thread=True, group="look")
    def _look(self) -> None:
        try:
            facts = self.fleet.facts()
            session = self._session(facts)
            found = Glance(
                facts,
                self.fleet.phases(),
                self.fleet.events(),
                session,
                self.fleet.screen(session) if session else "",
            )
        except Exception as fault:
            said = f"{type(fault).__name__}: {fault}"
            self._back(lambda: self._tell(said, bad=True))
        else:
            self._back(lambda: self._take(found))
        finally:
            self._looking = False

    def _back(self, step: Callable[[], object]) -> None:
        """From a thread to the screen, unless the person has left meanwhile."""
        if self.is_running:
            self.call_from_thread(step)

    @work(thread=True, group="count")
    def count(self) -> None:
        """Tokens and money, less often."""
        used = self.fleet.used()
        self._back(lambda: setattr(self, "used", used))

    def _session(self, facts: Mapping[str, Any]) -> str:
        rows = {r["name"]: r for r in (*facts["agents"], *facts["services"])}
        chosen = rows.get(self.roster.selected)
        if chosen is None:
            first = show.ordered(rows.values(), self.needle)
            chosen = first[0] if first else None
        return str(chosen["session"]) if chosen and chosen["pid"] else ""

    def _take(self, look: Glance) -> None:
        self.last = look
        for record in look.events:
            if not str(record.get("type", "")).startswith(NOISE):
                self.events.append(record)
            if said := caption(record):
                style = show.event_style(str(record.get("type", "")))
                self.captions.append(
                    [Cell(f"{_clock(float(record.get('ts') or 0))} ", "soft"), Cell(said, style)]
                )
        self._draw(look)

    # --- drawing ------------------------------------------------------------------------------------

    def _draw(self, look: Glance) -> None:
        now, facts, width = self.clock(), look.facts, self.size.width
        self._put("#head", show.headline(facts, time.strftime("%H:%M:%S", time.localtime(now))))
        loop = facts["loop"]
        gates = show.gates_of(self.events, loop["id"]) if loop else []
        self._put("#phases", show.progress(look.phases, loop, gates))
        self._draw_problems([show.words(p) for p in facts["problems"]])
        members = [*facts["agents"], *facts["services"]]
        rows = show.ordered(members, self.needle)
        columns = show.fitting(width - 1, members, self.used)
        titles = [fitted(c.title.upper(), size, right=c.right) for size, c in columns]
        self._put("#columns", [Cell(" " + (" " * show.GAP).join(titles), "soft")])
        self.roster.show([(r["name"], show.cells(r, now, self.used)) for r in rows], columns)
        self._draw_pane(look, members)
        self._draw_stream()

    def _draw_problems(self, problems: Sequence[str]) -> None:
        lines = [f"! {text}" for text in problems[:PROBLEMS_MAX]]
        if len(problems) > PROBLEMS_MAX:
            lines[-1] = f"! and {len(problems) - PROBLEMS_MAX + 1} more: {engine.AGENTS} status"
        self._put("#problems", [Cell("\n".join(lines), "bad")] if lines else [])

    def _draw_pane(self, look: Glance, rows: Sequence[Mapping[str, Any]]) -> None:
        pane = self._at("#pane", Vertical)
        name = self.roster.selected
        chosen = next((r for r in rows if r["name"] == name), None)
        title = " · ".join(filter(None, [show.words(name), show.words(chosen["model"]) if chosen else ""]))
        if self._shown.get("title") != title:
            self._shown["title"] = title
            pane.border_title = Text(title)
        height = max(pane.size.height, 1)
        current = chosen is not None and look.session == chosen["session"]
        state = (look.screen if current else "", height)
        if self._shown.get("#screen") != state:
            self._shown["#screen"] = state
            empty = Text("nothing runs here" if chosen and not chosen["pid"] else "", style="dim")
            self._at("#screen", Static).update(screen_text(state[0], height) if state[0] else empty)

    def _draw_stream(self) -> None:
        height = max(self._at("#stream", Vertical).size.height, 1)
        if self.tour:
            lines = list(self.captions)[-height:]
        else:
            lines = [show.happened(r, _clock(float(r.get("ts") or 0))) for r in list(self.events)[-height:]]
        said = [cell for line in lines for cell in (*line, Cell("\n"))]
        self._put("#events", said[:-1])

    def _draw_keys(self) -> None:
        """As many as fit; how to learn of the others, and how to leave, always fit."""
        signs = [(NAMES.get(key, key), word) for key, _, word, _ in KEYS]
        room = self.size.width - sum(_breadth(pair) for pair in signs[-2:])
        fit = []
        for pair in signs[:-2]:
            room -= _breadth(pair)
            fit += [pair] if room >= 0 else []
        both = [(Cell(f" {sign}", "title"), Cell(f" {word} ", "soft")) for sign, word in (*fit, *signs[-2:])]
        self._put("#keys", [cell for pair in both for cell in pair])

    def _at(self, where: str, kind: type[W]) -> W:
        """A widget of the view itself, also while a dialog is open over it."""
        return self.screen_stack[0].query_one(where, kind)

    def _put(self, where: str, said: Sequence[Cell]) -> None:
        """Draw a line of cells if it is another one than before; nothing to say takes no room."""
        if self._shown.get(where) == tuple(said):
            return
        self._shown[where] = tuple(said)
        widget = self._at(where, Static)
        widget.display = bool(said)
        widget.update(painted(said))

    # --- acting -------------------------------------------------------------------------------------

    def action_attach(self) -> None:
        """The agent's own terminal, until the person detaches."""
        name = self.roster.selected
        if not name:
            return
        try:
            with self.suspend():
                code = self.fleet.attach(name)
        except SuspendNotSupported:
            self._tell(f"this terminal cannot be handed over: run agents.py attach {name}", bad=True)
            return
        if code:
            self._tell(f"{name} has no terminal to show now", bad=True)
        self.look()

    @work
    async def action_send(self) -> None:
        """A message, typed by the watchdog when the agent can take it."""
        name = self.roster.selected
        text = await self.push_screen_wait(Ask(f"to {show.words(name)}")) if name else ""
        if text:
            self._do("send", name, "-", text=text)

    def action_pause(self) -> None:
        """Pause, or take it back."""
        self._do("unpause" if self._detail() in {"PAUSED", "FROZEN"} else "pause", self.roster.selected)

    def action_freeze(self) -> None:
        """Freeze, or let it run on."""
        if self._detail() == "FROZEN":
            self._do("unpause", self.roster.selected)
        else:
            self._do("pause", "--freeze", self.roster.selected)

    @work
    async def action_restart(self) -> None:
        """Once sure."""
        if await self._sure("Restart {}?"):
            self._do("restart", "--no-wait", self.roster.selected)

    @work
    async def action_stop(self) -> None:
        """Once sure."""
        if await self._sure("Stop {}? It stays down until the next `up`."):
            self._do("down", self.roster.selected)

    def action_up(self) -> None:
        """Start it."""
        self._do("up", "--no-wait", self.roster.selected)

    def action_explain(self) -> None:
        """Why."""
        self._do("explain", self.roster.selected, page="explain")

    def action_logs(self) -> None:
        """What it printed."""
        self._do("logs", "-n", "500", self.roster.selected, page="logs")

    def action_help(self) -> None:
        """The keys."""
        lines = [f"{NAMES.get(key, key):>6}   {word:<9} {text}" for key, _, word, text in KEYS]
        moves = "   ↑ ↓ j k choose · pgup pgdn home end · the mouse works too"
        self.push_screen(Page("keys", "\n".join([*lines, "", moves])))

    def action_filter(self) -> None:
        """Type what to look for."""
        field = self._at("#filter", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        if event.input.id == "filter":
            self.needle = event.value
            if self.last is not None:
                self._draw(self.last)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the list; an empty filter goes away."""
        if event.input.id == "filter":
            event.input.display = bool(event.value)
            self.roster.focus()

    def on_key(self, event: Any) -> None:
        """Escape leaves the filter."""
        field = self._at("#filter", Input)
        if event.key == "escape" and field.display:
            field.value = ""
            field.display = False
            self.roster.focus()

    async def _sure(self, question: str) -> bool:
        name = self.roster.selected
        if not name:
            return False
        return await self.push_screen_wait(Sure(question.format(show.words(name))))

    def _detail(self) -> str:
        facts = self.last.facts if self.last else {"agents": (), "services": ()}
        rows = (*facts["agents"], *facts["services"])
        return next((str(r["detail"]) for r in rows if r["name"] == self.roster.selected), "")

    @work(thread=True, group="act")
    def _do(self, *words: str, text: str = "", page: str = "") -> None:
        """Run a verb and show what it said."""
        if not self.roster.selected:
            return
        code, said = self.fleet.run(*words, text=text)
        if page and not code:
            self._back(lambda: self.push_screen(Page(f"{page}: {show.words(words[-1])}", said)))
        else:
            self._back(lambda: self._tell(said or "done", bad=bool(code)))
        self._back(self.look)

    def _tell(self, text: str, *, bad: bool = False) -> None:
        lines = [show.words(line) for line in text.strip().splitlines()[-4:]]
        self.notify("\n".join(lines), severity="error" if bad else "information", markup=False)


def _breadth(key: tuple[str, str]) -> int:
    return len(key[0]) + len(key[1]) + 3


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
