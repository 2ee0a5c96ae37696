"""The live view over a simulated fleet: every key, every size, two hundred agents, no colour, hostile text.

Snapshots lie in tests/fixtures/top and are read by eye; AO_SNAPSHOTS=write draws them anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import time
from pathlib import Path

import pytest
from rich.console import Console

from fleet.extras.top.app import KEYS, Top
from fleet.extras.top.widgets import Ask, Page, Sure

SNAPSHOTS = Path(__file__).parents[1] / "fixtures" / "top"
NOW = 1_784_100_000.0


def row(name, detail="WORKING", state="RUNNING", **more):
    shown = {
        "name": name, "kind": "loop", "role": "", "backend": "claude", "model": "claude-opus-4-8",
        "watch": "heal", "enabled": True, "desired": "up", "session": f"p-{name}", "state": state,
        "detail": detail,
        "reason": "it works", "since": NOW - 75, "until": None, "pid": 7, "restarts": 0, "drift": [],
        "phase": "lex", "messages": 0,
    }  # fmt: skip
    return {**shown, **more}


def event(kind, agent="", reason="", at=0.0, **facts):
    return {"type": kind, "agent": agent, "reason": reason, "ts": NOW + at, "facts": facts}


class SimFleet:
    """A fleet that says what it is told to, and remembers what was asked of it."""

    def __init__(self, *rows, loop=None, problems=(), ids=(), screen="", events=(), used=None):
        self.rows = list(rows)
        self.loop, self.problems, self.ids = loop, list(problems), list(ids)
        self.shown, self.fresh, self.tokens = screen, list(events), used or {}
        self.calls: list[tuple] = []
        self.answer = (0, "it is done")
        self.fault: Exception | None = None

    def facts(self):
        self.calls.append(("facts",))
        if self.fault is not None:
            raise self.fault
        return {
            "project": {"prefix": "calc-"}, "watchdog": {"state": "running"}, "loop": self.loop,
            "agents": self.rows, "services": [], "problems": self.problems,
        }  # fmt: skip

    def phases(self):
        return self.ids

    def events(self):
        found, self.fresh = self.fresh, []
        return found

    def screen(self, session):
        self.calls.append(("screen", session))
        return self.shown

    def used(self):
        return self.tokens

    def run(self, *words, text=""):
        self.calls.append(("run", *words, *([text] if text else [])))
        return self.answer

    def attach(self, name):
        self.calls.append(("attach", name))
        return 0

    def verbs(self):
        return [call[1:] for call in self.calls if call[0] == "run"]


def drive(fleet, script, size=(100, 30), **more):
    """Run the view headless and let `script(app, pilot)` use it."""

    async def whole():
        app = Top(fleet, lambda: NOW, **more)
        async with app.run_test(size=size, notifications=True) as pilot:
            await seen(app, pilot)
            return await script(app, pilot)

    return asyncio.run(whole())


async def seen(app, pilot):
    """Until one more look has been drawn, and everything it started has ended."""
    app.last = None
    app.look()
    for _ in range(3000):
        if app.last is not None and not app._looking:
            break
        await pilot.pause(0.01)
    else:
        raise AssertionError("it does not look any more")
    for worker in [w for w in app.workers if w.group in {"act", "look", "count"}]:
        await worker.wait()  # one that holds a dialog open is not waited for
    await pilot.pause()


def dump(app, *, styles=False):
    """The screen as text."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="truecolor",
        record=True, legacy_windows=False,
    )  # fmt: skip
    console.print(app.screen._compositor.render_update(full=True))
    return console.export_text(clear=True, styles=styles)


async def dumped(app, pilot):
    return dump(app)


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


STORY = SimFleet(
    row("builder", reason="tool: Bash(make test)", messages=1),
    row("adversary", "IDLE", reason="idle for 12 s of 300", since=NOW - 12),
    row("keeper", "ASKING", reason="it asks (trust): attach and answer it", since=NOW - 4000, phase=""),
    row("capped", "LIMITED", until=NOW + 3700, reason="limited: resets 3pm", since=NOW - 90000, restarts=3),
    row("sleeper", "DOWN", "STOPPED", pid=None, desired="down", reason="", phase="", model="o"),
    loop={"index": 1, "id": "parse", "total": 3, "complete": False, "held": "", "state": ""},
    ids=["lex", "parse", "eval"],
    problems=["keeper: waits for an answer: it asks (trust): attach and answer it"],
    screen="\x1b[1m● Bash\x1b[0m(make test)\n  \x1b[32m12 passed\x1b[0m\n\n\x1b[2m────\x1b[0m\n❯ \n\n\n",
    events=[
        event("gate.started", reason="gate 1 (run)", phase="parse"),
        event("gate.passed", reason="gate 1: passed", at=1, phase="parse"),
        event("gate.failed", reason="gate 2 of 2 (clean): 3 files", at=2, phase="parse"),
        event("agent.died", "capped", "killed by signal 9", 3),
        event("effect.begun", "capped", "not shown", 3),
        event("agent.healed", "capped", "it died", 4),
    ],
    used={"builder": (1_234_567, 3.5), "adversary": (987, None)},
)
HOSTILE = "[red]a[/red] [/] <b>&lt; \x1b]0;title\x07\x1b[2J\x9b31m\u202eabc\u200b [@click=app.quit]x"
SHOWN = "[red]a[/red] [/] <b>&lt; abc [@click=app.quit]x"


def hostile():
    return SimFleet(
        row(HOSTILE, reason=HOSTILE, model=HOSTILE, phase=HOSTILE, session="p-x"),
        row("[bold]b", "FATAL", "FATAL", reason=HOSTILE),
        loop={"index": 0, "id": HOSTILE, "total": 1, "complete": False, "held": HOSTILE, "state": ""},
        ids=[HOSTILE],
        problems=[HOSTILE],
        screen=f"{HOSTILE}\n\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \x1b[31mred\x1b[0m [blink]",
        events=[event(HOSTILE, HOSTILE, HOSTILE), event("agent.died", "[x]", HOSTILE, 1)],
    )


def many(number=200):
    return SimFleet(*(row(f"agent-{n:03d}", reason=f"step {n}") for n in range(number)))


PICTURES = {
    "wide": (lambda: STORY, (140, 40), {}),
    "narrow": (lambda: STORY, (80, 24), {}),
    "tiny": (lambda: STORY, (44, 14), {}),
    "tour": (lambda: STORY, (100, 30), {"tour": True}),
    "hostile": (hostile, (120, 30), {}),
    "many": (many, (80, 24), {}),
    "empty": (SimFleet, (80, 24), {}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_it_looks_as_it_did_when_somebody_looked(name):
    make, size, more = PICTURES[name]
    fleet = make()
    before = list(fleet.fresh)
    picture = "\n".join(line.rstrip() for line in drive(fleet, dumped, size, **more).splitlines()) + "\n"
    fleet.fresh = before
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("AO_SNAPSHOTS") == "write":
        path.write_text(picture, encoding="utf-8")
    assert picture == path.read_text(encoding="utf-8")


# --- keys -------------------------------------------------------------------------------------------

ACTS = {
    "p": (["p"], [("pause", "a")]),
    "z": (["z"], [("pause", "--freeze", "a")]),
    "r and yes": (["r", "y"], [("restart", "--no-wait", "a")]),
    "r and no": (["r", "n"], []),
    "x and yes": (["x", "y"], [("down", "a")]),
    "x and escape": (["x", "escape"], []),
    "u": (["u"], [("up", "--no-wait", "a")]),
    "s": (["s", "h", "i", "space", "[", "]", "enter"], [("send", "a", "-", "hi []")]),
    "s and escape": (["s", "h", "escape"], []),
    "e": (["e"], [("explain", "a")]),
    "l": (["l"], [("logs", "-n", "500", "a")]),
    "down and p": (["down", "p"], [("pause", "b")]),
    "end and p": (["end", "p", "up", "p"], [("unpause", "c"), ("pause", "b")]),
    "z on the frozen": (["j", "j", "z"], [("unpause", "c")]),
}


def test_every_key_runs_its_verb_on_the_chosen_one_and_dangerous_ones_ask_first():
    fleet = SimFleet(row("a"), row("b"), row("c", "FROZEN"))
    found = {}

    async def script(app, pilot):
        for name, (presses, _) in ACTS.items():
            fleet.calls.clear()
            for key in ("home", *presses):
                await pilot.press(key)
            await seen(app, pilot)
            found[name] = fleet.verbs()
            if isinstance(app.screen, Page):
                await pilot.press("escape")

    drive(fleet, script)
    assert found == {name: verbs for name, (_, verbs) in ACTS.items()}


def test_dialogs_pages_and_toasts_show_text_as_text():
    fleet = SimFleet(row("[bold]a"))
    fleet.answer = (0, f"first\n{HOSTILE}")

    async def script(app, pilot):
        shown = []
        for key, kind in (("r", Sure), ("s", Ask), ("e", Page)):
            await pilot.press(key)
            await seen(app, pilot)
            assert isinstance(app.screen, kind)
            shown.append(dump(app))
            await pilot.press("escape")
        fleet.answer = (1, HOSTILE)
        await pilot.press("p")
        await seen(app, pilot)
        shown.append(dump(app))
        return shown

    sure, ask, page, toast = drive(fleet, script, (100, 40))
    assert "Restart [bold]a?" in sure
    assert "to [bold]a" in ask
    assert "explain: [bold]a" in page
    assert SHOWN in " ".join(page.split())
    assert "[red]a[/red] [/] <b>&lt;" in toast
    assert all(text.replace("\n", "").isprintable() for text in (sure, ask, page, toast))


def test_the_filter_narrows_while_it_is_typed_and_escape_takes_it_back():
    fleet = SimFleet(row("apple"), row("pear"), row("plum", "IDLE"))

    async def script(app, pilot):
        shown = []
        for keys in (("slash", "p", "e", "a"), ("enter",), ("slash", "escape")):
            await pilot.press(*keys)
            await seen(app, pilot)
            shown.append([name for name in ("apple", "pear", "plum") if f" {name} " in dump(app)])
        await pilot.press("slash", *"idle", "enter", "p")
        await seen(app, pilot)
        return shown

    assert drive(fleet, script) == [["pear"], ["pear"], ["apple", "pear", "plum"]]
    assert fleet.verbs() == [("pause", "plum")]


def test_attach_hands_the_terminal_over_and_comes_back():
    fleet = SimFleet(row("a"))

    async def script(app, pilot):
        await pilot.press("enter")
        await seen(app, pilot)
        refused = dump(app)
        app.suspend = contextlib.nullcontext
        await pilot.press("enter")
        await seen(app, pilot)
        return refused

    assert "agents.py attach a" in drive(fleet, script)
    assert ("attach", "a") in fleet.calls


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_leaving_is_one_key_and_runs_no_verb(key):
    fleet = SimFleet(row("a"))

    async def script(app, pilot):
        await pilot.press(key)
        await pilot.pause()
        return app._exit

    assert drive(fleet, script)
    assert fleet.verbs() == []


def test_help_names_every_key():
    async def script(app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        return dump(app)

    shown = drive(SimFleet(row("a")), script)
    assert all(text[:30] in shown for _, _, _, text in KEYS)


# --- what it costs, and what it survives ------------------------------------------------------------


def test_two_hundred_agents_cost_what_changed():
    fleet = many()

    async def script(app, pilot):
        first = app.roster.drawn
        fleet.calls.clear()
        fleet.rows[3] = row("agent-003", "IDLE")
        await seen(app, pilot)
        one = app.roster.drawn - first
        fleet.rows[150] = row("agent-150", "IDLE")  # far below what is shown
        await seen(app, pilot)
        return first, one, app.roster.drawn - first - one, [call[0] for call in fleet.calls]

    first, one, hidden, calls = drive(fleet, script, (100, 60))
    assert first < 200, "only what is on the screen is drawn"
    assert one <= 2
    assert hidden <= 1
    looks = calls.count("facts")  # two, and more when a second of the clock fell in between
    assert looks >= 2
    assert sorted(calls) == ["facts"] * looks + ["screen"] * looks, "one for the facts and one for one screen"


def test_trouble_rises_to_the_top_and_the_choice_stays_with_its_agent():
    fleet = many(20)

    async def script(app, pilot):
        await pilot.press("down", "down")
        fleet.rows[19] = row("agent-019", "FATAL", "FATAL")
        fleet.rows[18] = row("agent-018", "WEDGED")
        await seen(app, pilot)
        await pilot.press("p")
        await seen(app, pilot)
        return [line.strip(" ▌").split()[0] for line in dump(app).splitlines() if " agent-0" in f" {line}"]

    names = drive(fleet, script, (80, 60))
    assert names[:3] == ["agent-019", "agent-018", "agent-000"]
    assert fleet.verbs() == [("pause", "agent-002")]


def test_an_agent_that_leaves_the_file_leaves_the_screen():
    fleet = many(3)

    async def script(app, pilot):
        await pilot.press("end")
        del fleet.rows[2]
        await seen(app, pilot)
        await pilot.press("p")
        await seen(app, pilot)
        return dump(app)

    assert "agent-002" not in drive(fleet, script)
    assert fleet.verbs() == [("pause", "agent-001")]


def test_every_size_can_be_drawn_and_a_resize_redraws():
    async def script(app, pilot):
        for width, height in ((30, 8), (80, 24), (250, 70), (44, 14), (1, 1), (80, 24)):
            await pilot.resize_terminal(width, height)
            await seen(app, pilot)
        return dump(app)

    fleet = hostile()
    assert SHOWN[:20] in drive(fleet, script)


def test_a_look_that_fails_is_said_and_the_next_one_works():
    fleet = SimFleet(row("a"))

    async def script(app, pilot):
        fleet.fault = OSError("the disk [red]is gone")
        app.look()
        for _ in range(500):
            if "OSError: the disk [red]is gone" in dump(app):
                break
            await pilot.pause(0.01)
        else:
            raise AssertionError(dump(app))
        fleet.fault = None
        await seen(app, pilot)
        return True

    assert drive(fleet, script)


def test_without_colour_signs_and_words_remain(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(app, pilot):
        strips = [app.roster.render_line(0), *app.screen._compositor.render_strips()]
        colours = {
            tuple(c.triplet)
            for strip in strips[1:]
            for segment in strip
            for c in (segment.style.color, segment.style.bgcolor)
            if c is not None and c.triplet is not None
        }
        return dump(app), colours, any(s.style and s.style.reverse for s in strips[0])

    shown, colours, cursor = drive(STORY, script)
    assert all(r == g == b for r, g, b in colours), "shades of grey at most"
    assert cursor, "the chosen line is told by reversing it"
    assert "! ASKING" in shown
    assert "● WORKING" in shown
