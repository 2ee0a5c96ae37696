"""The table of verbs and states, walked on real tmux: every column of every cell, seen from outside.

Fleets are shared. In each one every situation has an agent for every verb that is walked there: a named verb
meets its agent as the situation left it, and the other agents tell whether it kept to its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.host import procfs
from tests.deadlines import patience
from tests.programs import need
from tests.tmux.project import ENGINE, Project, scripted, until
from tests.tmux.test_git import run as git
from tests.tmux.test_survive_disk import read_only
from tools.verbs_and_states import (
    AROUND_TABLE,
    TABLE,
    Around,
    Conversation,
    Fate,
    Pane,
    Situation,
    Tallies,
    Told,
    Verb,
    Window,
    Wished,
)

pytestmark = pytest.mark.tmux

TOOL = """#!/bin/sh
echo ready
exec sleep 100000
"""
BRIEF = """#!/bin/sh
echo ready
until [ -e "{root}/done-$AO_AGENT" ]; do sleep 0.1; done
rm "{root}/done-$AO_AGENT"
"""
BACKEND = """
[backend.{name}]
bin = "{root}/{name}"
prompt_delivery = "arg"
supports_resume = true
session_id_flag = "--session-id '{{id}}'"
"""
TOOLS = {"tool": TOOL, "fragile": TOOL, "brief": BRIEF}
AGENT = '[[agent]]\nname = "{name}"\nkind = "{kind}"\nbackend = "{backend}"\nprompt = "Begin."\n{more}\n'
SHORT = {
    Verb.UP: "up",
    Verb.UP_NAME: "upname",
    Verb.RESTART_NAME: "restart",
    Verb.DOWN_NAME: "downname",
    Verb.DOWN: "down",
}
SLOW = 5.0  # times: a machine on which ten seconds of back-off may be over before the next verb has begun
LOOPS = (Situation.LOOP_HELD, Situation.LOOP_HELD_DEAD, Situation.LOOP_COMPLETE)
OF_ONE = tuple(s for s in Situation if s not in LOOPS)


# --- what a verb says, and what is to be seen ---------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """One verb, run."""

    code: int
    out: str
    said: str  # both voices

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out) if self.out.strip() else {}


@dataclass(frozen=True)
class Sight:
    """The whole fleet at one moment, from outside."""

    sessions: Mapping[str, int]  # session to the process in it, 0 for a dead one
    rows: Mapping[str, dict[str, Any]]
    resets: tuple[str, ...]  # agents of whom something was forgotten, so far


def verb(p: Project, *words: str, env: Mapping[str, str] | None = None) -> Answer:
    argv = [sys.executable, str(ENGINE / "agents.py"), *words, "--json", "--config", str(p.config)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=patience(120), env=p.env(env), cwd=p.root
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert "fault of this program" not in said, said
    return Answer(done.returncode, done.stdout, said)


def words_of(what: Verb, name: str) -> tuple[str, ...]:
    return (what.split()[0],) if what in {Verb.UP, Verb.DOWN} else (what.split()[0], name)


def sight(p: Project) -> Sight:
    rows = p.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_dead} #{pane_pid}").splitlines()
    cells = [row.split() for row in rows]
    sessions = {c[0]: int(c[2]) if c[1] == "0" else 0 for c in cells}
    facts = verb(p, "status").document
    known = {r["name"]: r for r in (*facts["agents"], *facts["services"])}
    return Sight(sessions, known, tuple(r["agent"] for r in p.events("agent.reset")))


def gone(pid: int) -> bool:
    row = procfs.row(pid)
    return row is None or row.zombie


def wish(row: Mapping[str, Any]) -> str:
    if row["desired"] == "up" and row["detail"] in {"PAUSED", "FROZEN"}:
        return {"PAUSED": Wished.PAUSED, "FROZEN": Wished.FROZEN}[row["detail"]]
    return str(row["desired"])


def told(p: Project, name: str, answer: Answer) -> Told:
    """The closed word of the answer."""
    if answer.code == 2 or not answer.out.strip():
        return Told.REFUSED
    document = answer.document
    if "stopped" in document:
        return Told.STOPPED if f"{p.prefix}{name}" in document["stopped"] else Told.NOTHING
    row = next((r for r in document["agents"] if r["name"] == name), None)
    if row is not None:
        return Told(row["result"])
    return Told.NAMED if f"agents.py down {name}" in answer.said else Told.REFUSED


def conversation(name: str, answer: Answer) -> str:
    rows = answer.document.get("agents", ()) if answer.code != 2 and answer.out.strip() else ()
    return next((str(r["conversation"]) for r in rows if r["name"] == name), "")


def is_as_said(fate: Fate, session: str, before: Sight, after: Sight) -> bool:
    """The pane column."""
    was, now = before.sessions.get(session, 0), after.sessions.get(session, 0)
    match fate.pane:
        case Pane.STARTED:
            return not was and bool(now)
        case Pane.REPLACED:
            return bool(was) and bool(now) and was != now and gone(was)
        case Pane.KEPT:
            return bool(was) and was == now
        case Pane.NONE | Pane.LATER:
            return not was and not now
        case Pane.ENDED:
            return session in before.sessions and session not in after.sessions and (not was or gone(was))


def differences(p: Project, name: str, fate: Fate, before: Sight, answer: Answer) -> list[str]:
    """What is not as the table says; the watchdog may need a look to show it."""
    session = f"{p.prefix}{name}"

    def look() -> list[str]:
        after, wrong = sight(p), []
        row = after.rows.get(name, {"desired": "", "detail": "", "until": None})
        forgotten = after.resets.count(name) > before.resets.count(name)
        if not is_as_said(fate, session, before, after):
            now = after.sessions.get(session)
            wrong.append(f"pane {fate.pane}: {before.sessions.get(session)} became {now}")
        if name in after.rows and wish(row) != fate.wish:
            wrong.append(f"wish {fate.wish}: {row['desired']} {row['detail']}")
        if forgotten != (fate.tallies is Tallies.FORGOTTEN):
            wrong.append(f"tallies {fate.tallies}: {forgotten}")
        if fate.tallies is Tallies.FORGOTTEN and row["detail"] in {"BACKOFF", "FLAPPING", "FATAL"}:
            wrong.append(f"tallies {fate.tallies}: {row['detail']}")
        if fate.wish is not Wished.DOWN and bool(row["until"]) != (fate.window is Window.KEPT):
            wrong.append(f"window {fate.window}: {row['until']}")
        return wrong

    found: list[list[str]] = [[]]

    def settled() -> bool:
        found[0] = look()
        return not found[0]

    with suppress(AssertionError):
        until(settled, 10)
    wrong = found[0]
    if (said := told(p, name, answer)) is not fate.told:
        wrong.append(f"told {fate.told}: {said}")
    talk = conversation(name, answer)
    expected = (
        str(fate.conversation) if fate.conversation in {Conversation.NEW, Conversation.CONTINUED} else ""
    )
    if talk != expected:
        wrong.append(f"conversation {fate.conversation}: {talk!r}")
    return [f"{name}: {text}\n{answer.said[-600:]}" for text in wrong]


# --- a fleet of agents in every situation -------------------------------------------------------------


def named(situation: Situation, what: Verb) -> str:
    return f"{situation.name.lower().replace('_', '-')}-{SHORT[what]}"


class Stage:
    """One fleet in which each situation has an agent for each of these verbs."""

    def __init__(self, p: Project, verbs: Iterable[Verb], situations: Iterable[Situation]) -> None:
        self.p = p
        self.verbs = tuple(verbs)
        self.situations = tuple(situations)
        self.ends = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
        for name, text in TOOLS.items():
            self.make_tool(name, text)

    def make_tool(self, name: str, text: str) -> None:
        path = self.p.root / name
        path.write_text(text.format(root=self.p.root))
        path.chmod(0o755)

    def names(self, *situations: Situation) -> list[str]:
        return [named(s, v) for s in situations if s in self.situations for v in self.verbs]

    def declare(self, without: Situation | None = None) -> None:
        text = "".join(BACKEND.format(name=n, root=self.p.root) for n in TOOLS)
        for situation in self.situations:
            if situation is not without:
                text += "".join(self._agent(situation, v) for v in self.verbs)
        self.p.write(text)

    def _agent(self, situation: Situation, what: Verb) -> str:
        name = named(situation, what)
        if situation in {Situation.LIMITED_ALIVE, Situation.LIMITED_DEAD}:
            banner = f"You've hit your session limit · resets {self.ends:%Y-%m-%dT%H:%M:%SZ}"
            return scripted(
                self.p, name, f'[[on]]\nkickoff = "."\nsteps = [{{ limit = "{banner}", for = 99999 }}]'
            )
        kind = "task" if situation is Situation.FINISHED else "persistent"
        backend = {Situation.FATAL: "fragile", Situation.FINISHED: "brief"}.get(situation, "tool")
        more = 'watch = "none"' if situation is Situation.UNWATCHED else ""
        return AGENT.format(name=name, kind=kind, backend=backend, more=more)

    def set(self) -> None:
        """Bring everybody up, then each into its situation; what does not last comes last."""
        p = self.p
        self.declare()
        never = {*self.names(Situation.ABSENT), *self.names(Situation.FOREIGN)}
        names = [n for n in self.names(*self.situations) if n not in never]
        p.agents("up", "watchdog")
        if names:
            p.agents("up", *names, code=None)
        self.flap(self.names(Situation.FLAPPING))
        for name in self.names(Situation.LIMITED_ALIVE, Situation.LIMITED_DEAD):
            until(lambda name=name: p.row(name)["detail"] == "LIMITED")
        for name in self.names(Situation.LIMITED_DEAD, Situation.UNWATCHED):
            self.kill(name)
        if paused := self.names(Situation.PAUSED):
            p.agents("pause", *paused)
            for name in paused:
                self.kill(name)
        if frozen := self.names(Situation.FROZEN):
            p.agents("pause", "--freeze", *frozen)
        for name in self.names(Situation.FOREIGN):
            p.tmux("new-session", "-d", "-s", f"{p.prefix}{name}", "exec sleep 100000")
        if fatal := self.names(Situation.FATAL):
            (p.root / "fragile").unlink()
            for name in fatal:
                self.kill(name)
            until(lambda: all(p.row(n)["state"] == "FATAL" for n in fatal))
            self.make_tool("fragile", TOOL)
        for name in self.names(Situation.FINISHED):
            (p.root / f"done-{name}").touch()
            until(lambda name=name: p.row(name)["detail"] == "EXITED")
        if Situation.STRAY in self.situations:
            self.declare(without=Situation.STRAY)
            until(lambda: len(p.json("status")["orphans"]) == len(self.verbs))

    def kill(self, name: str) -> None:
        pid = self.p.pid(name)
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.p.pid(name) != pid)

    def flap(self, names: list[str]) -> None:
        """Each run of these is killed as soon as it is ready, until the watchdog has had enough."""
        p, killed = self.p, set()
        while names:
            rows = {r["name"]: r for r in p.json("status", code=None)["agents"]}
            names = [n for n in names if rows[n]["detail"] != "FLAPPING"]
            for name in names:
                ready = len(p.events("agent.ready", name)) == len(p.events("agent.started", name))
                if ready and (pid := p.pid(name)) and pid not in killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def back_off(self, name: str) -> None:
        """The first death is free; ten seconds of waiting follow the second one, forty the fourth."""
        p = self.p
        for _ in range(1 if patience(1.0) < SLOW else 3):
            begun = len(p.events("agent.ready", name))
            self.kill(name)
            until(lambda begun=begun: len(p.events("agent.ready", name)) > begun and p.pid(name), 60)
        self.kill(name)
        until(lambda: p.row(name)["detail"] == "BACKOFF")


def walk_names(stage: Stage, what: Verb) -> list[str]:
    """A named verb, agent by agent; the agents of the others are as before."""
    p, wrong = stage.p, []
    for situation in stage.situations:
        name, fate = named(situation, what), TABLE[situation][what]
        if situation is Situation.BACKOFF:
            stage.back_off(name)
        before = sight(p)
        answer = verb(p, *words_of(what, name))
        wrong += differences(p, name, fate, before, answer) + code_of(name, fate.code, answer)
        wrong += unsaid(p, situation, what, name, before, answer)
        own = {f"{p.prefix}{name}"}
        others = {s: pid for s, pid in before.sessions.items() if s not in own}
        now = {s: pid for s, pid in sight(p).sessions.items() if s not in own}
        wrong += [f"{name}: {what} touched {others.items() ^ now.items()}"] if others != now else []
    return wrong


def walk_bare(stage: Stage, what: Verb) -> list[str]:
    """A bare verb, for all of them at once."""
    p, wrong = stage.p, []
    if Situation.BACKOFF in stage.situations:
        stage.back_off(named(Situation.BACKOFF, what))
    before = sight(p)
    answer = verb(p, *words_of(what, ""))
    fates = {situation: TABLE[situation][what] for situation in stage.situations}
    for situation, fate in fates.items():
        wrong += differences(p, named(situation, what), fate, before, answer)
        wrong += unsaid(p, situation, what, named(situation, what), before, answer)
    return wrong + code_of(what, max(f.code for f in fates.values()), answer)


MENTIONS: Mapping[Situation | Around, Mapping[Verb, str]] = {
    Situation.LIMITED_ALIVE: {Verb.UP: "until ", Verb.UP_NAME: "until "},
    Situation.LIMITED_DEAD: {Verb.UP: "and starts then"},
    Situation.PAUSED: {Verb.UP: "lets it go on"},
    Situation.FINISHED: {Verb.UP: "runs it again"},
    Situation.FOREIGN: dict.fromkeys(Verb, "{pid} (sleep)"),
    Situation.LOOP_HELD: {Verb.RESTART_NAME: "phase set"},
    Situation.LOOP_HELD_DEAD: dict.fromkeys((Verb.UP, Verb.UP_NAME, Verb.RESTART_NAME), "phase set"),
    Situation.LOOP_COMPLETE: dict.fromkeys((Verb.UP, Verb.UP_NAME, Verb.RESTART_NAME), "is complete"),
    Around.OVERRIDE: {Verb.UP: "has no effect", Verb.UP_NAME: "has no effect", Verb.RESTART_NAME: "other"},
    Around.NO_WATCHDOG: dict.fromkeys((Verb.UP_NAME, Verb.RESTART_NAME), "no watchdog runs"),
    Around.HUNG_WATCHDOG: {
        Verb.UP: "`up` replaces it",
        Verb.UP_NAME: "has not ticked for",
        Verb.RESTART_NAME: "has not ticked for",
    },
    Around.OLD_WATCHDOG: dict.fromkeys(
        (Verb.UP, Verb.UP_NAME, Verb.RESTART_NAME), "the watchdog runs version 0.0.0"
    ),
    Around.FULL_DISK: dict.fromkeys(Verb, "ead-only"),
    Around.BROKEN_FILE: dict.fromkeys(Verb, "agents.toml")
    | dict.fromkeys((Verb.DOWN_NAME, Verb.DOWN), "last good config"),
    Around.NO_FILE: dict.fromkeys(Verb, "agents.toml")
    | dict.fromkeys((Verb.DOWN_NAME, Verb.DOWN), "last good config"),
}


def unsaid(
    p: Project, row: Situation | Around, what: Verb, name: str, before: Sight, answer: Answer
) -> list[str]:
    """What a person must be told, and was not."""
    expected = MENTIONS.get(row, {}).get(what, "")
    expected = expected.replace("{pid}", str(before.sessions.get(f"{p.prefix}{name}")))
    return [] if expected in answer.said else [f"{name}: no word of {expected!r}\n{answer.said[-600:]}"]


def code_of(name: str, code: int, answer: Answer) -> list[str]:
    return [] if answer.code == code else [f"{name}: exit {answer.code}, not {code}\n{answer.said[-600:]}"]


def still_known(stage: Stage, what: Verb) -> list[str]:
    """What a verb left for later is there: the wish of a stray, the window, the conversation."""
    p, wrong = stage.p, []
    stage.declare()
    row = p.row(named(Situation.STRAY, what))
    if row["desired"] != TABLE[Situation.STRAY][what].wish:
        wrong.append(f"{row['name']}: {row['desired']}")
    plan = {r["name"]: r["would"] for r in p.json("up", "--dry-run")["plan"]}
    for situation, fate in ((s, TABLE[s][what]) for s in stage.situations):
        name = named(situation, what)
        if (
            fate.window is Window.KEPT
            and fate.pane in {Pane.ENDED, Pane.LATER}
            and "limited" not in plan[name]
        ):
            wrong.append(f"{name}: its window is not on record: {plan[name]}")
        if fate.conversation is Conversation.KEPT:
            answer = verb(p, "up", name, "--no-wait")
            if conversation(name, answer) != Conversation.CONTINUED:
                wrong.append(f"{name}: its conversation is not on record\n{answer.said[-600:]}")
    return wrong


@pytest.fixture
def stage(make):
    def build(*verbs: Verb, situations: Iterable[Situation] = OF_ONE) -> Stage:
        made = Stage(make(), verbs, situations)
        made.set()
        return made

    return build


@pytest.mark.long
def test_a_restart_and_a_bare_up_do_what_the_table_says(stage):
    fleet = stage(Verb.RESTART_NAME, Verb.UP)
    wrong = walk_names(fleet, Verb.RESTART_NAME)
    for name in fleet.names(Situation.FOREIGN):  # a test of its own has it: here all others are fine
        fleet.p.tmux("kill-session", "-t", f"={fleet.p.prefix}{name}:")
    fleet.situations = tuple(s for s in fleet.situations if s is not Situation.FOREIGN)
    fleet.declare(without=Situation.STRAY)
    wrong += walk_bare(fleet, Verb.UP)
    wrong += still_known(fleet, Verb.UP)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_a_named_up_and_both_downs_do_what_the_table_says(stage):
    fleet = stage(Verb.UP_NAME, Verb.DOWN_NAME, Verb.DOWN)
    wrong = walk_names(fleet, Verb.UP_NAME)
    wrong += walk_names(fleet, Verb.DOWN_NAME)
    wrong += walk_bare(fleet, Verb.DOWN)
    wrong += still_known(fleet, Verb.DOWN)
    wrong += still_known(fleet, Verb.DOWN_NAME)
    assert not wrong, "\n".join(wrong)


def test_what_is_foreign_is_as_the_table_says(stage):
    fleet = stage(Verb.UP_NAME, Verb.UP, Verb.DOWN_NAME, Verb.DOWN, situations=[Situation.FOREIGN])
    wrong = walk_names(fleet, Verb.UP_NAME) + walk_bare(fleet, Verb.UP)
    wrong += walk_names(fleet, Verb.DOWN_NAME) + walk_bare(fleet, Verb.DOWN)
    assert not wrong, "\n".join(wrong)


# --- the loop ------------------------------------------------------------------------------------------

LOOP = """
[loop]
kickoff_template = "kickoff.md"
roles_dir = "roles"
[loop.handoff]
repo = "."
state_subdir = "docs"
claim_pattern = '^claim\\('
"""


def looped(p: Project, *phases: str) -> None:
    """A fleet of loop agents, one for each verb, in the first of these phases."""
    text = BACKEND.format(name="tool", root=p.root) + LOOP
    text += "".join(
        f'[[loop.phases]]\nid = "{i}"\nplan = "plans/{i}.md"\nstatus = "STATUS-{i}.md"\n' for i in phases
    )
    for what in Verb:
        text += AGENT.format(name=SHORT[what], kind="loop", backend="tool", more='role = "builder"').replace(
            'prompt = "Begin."\n', ""
        )
    p.write(text)


@pytest.fixture
def loop(make):
    p = make()
    Stage(p, (), ())
    for name in ("kickoff.md", "roles/builder.md", *(f"plans/p{i}.md" for i in range(3)), ".gitignore"):
        (p.root / name).parent.mkdir(exist_ok=True)
        (p.root / name).write_text("*\n" if name == ".gitignore" else "Go on.\n")
    git(p.root, "init", "-q", "-b", "main")
    git(p.root, "commit", "-q", "--allow-empty", "-m", "start")
    looped(p, "p1", "p2")
    p.agents("up")
    return p


def walk_loop(p: Project, situation: Situation) -> list[str]:
    wrong = []
    for what in (Verb.UP_NAME, Verb.RESTART_NAME, Verb.UP, Verb.DOWN_NAME, Verb.DOWN):
        name, fate, before = SHORT[what], TABLE[situation][what], sight(p)
        answer = verb(p, *words_of(what, name))
        wrong += differences(p, name, fate, before, answer) + code_of(name, fate.code, answer)
        wrong += unsaid(p, situation, what, name, before, answer)
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("situation", LOOPS)
def test_verbs_beside_a_loop_that_stands_still_do_what_the_table_says(loop, situation):
    p = loop
    if situation is Situation.LOOP_COMPLETE:
        p.agents("phase", "next")
        p.agents("phase", "next")
        until(lambda: all(not p.pid(n) and p.row(n)["detail"] == "DONE" for n in SHORT.values()))
    else:
        looped(p, "p0", "p1", "p2")
        until(lambda: p.json("status")["loop"]["held"])
    if situation is Situation.LOOP_HELD_DEAD:
        for name in SHORT.values():
            os.kill(p.pid(name), signal.SIGKILL)
        until(lambda: all(p.row(n)["detail"] == "HELD" for n in SHORT.values()))
    wrong = walk_loop(p, situation)
    assert not wrong, "\n".join(wrong)


# --- what is around an agent that runs ------------------------------------------------------------------


def hang(p: Project) -> None:
    os.kill(p.json("status")["watchdog"]["pid"], signal.SIGSTOP)
    until(lambda: p.json("status")["watchdog"]["state"] == "stale")


@contextmanager
def old_watchdog(p: Project) -> Iterator[None]:
    """One of another version, from an engine of its own."""
    engine = p.root / "old-engine"
    shutil.copytree(ENGINE / "fleet", engine / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ENGINE / "agents.py", engine)
    head = engine / "fleet" / "__init__.py"
    head.write_text(re.sub(r"(?m)^__version__ = .*", '__version__ = "0.0.0"', head.read_text()))
    p.agents("down", "watchdog")
    argv = [sys.executable, str(engine / "agents.py"), "watchdog", "--config", str(p.config)]
    with (
        open(p.root / "old.log", "ab") as log,
        subprocess.Popen(argv, env=p.env(), stdout=log, stderr=log) as dog,
    ):
        try:
            until(lambda: p.json("status")["watchdog"]["version"] == "0.0.0")
            yield
        finally:
            dog.kill()


@contextmanager
def surrounded(p: Project, around: Around) -> Iterator[None]:
    """The fleet in these surroundings."""
    match around:
        case Around.OLD_WATCHDOG:
            with old_watchdog(p):
                yield
        case Around.FULL_DISK:
            with read_only(p):
                yield
        case Around.BROKEN_FILE:
            p.config.write_text("[[agent\n")
            yield
        case Around.NO_FILE:
            p.config.unlink()
            yield
        case _:
            yield


def again(p: Project, around: Around) -> None:
    """What a verb has mended is as bad as before."""
    match around:
        case Around.NO_WATCHDOG:
            p.agents("down", "watchdog")
        case Around.HUNG_WATCHDOG if p.json("status")["watchdog"]["state"] == "running":
            hang(p)
        case Around.NO_STATE:
            until(lambda: p.json("status")["watchdog"]["state"] == "running")
            shutil.rmtree(p.log_dir, ignore_errors=True)  # the watchdog may write into it meanwhile
            until(lambda: p.events("state.restored"))
        case _:
            pass


@pytest.mark.long
@pytest.mark.parametrize("around", Around)
def test_verbs_do_what_the_table_says_whatever_is_around_an_agent(make, around):
    if around is Around.FULL_DISK:
        need("mount", "umount")
        if os.geteuid() != 0:
            pytest.skip("only root may make a disk read-only")
    p = make()
    Stage(p, (), ())
    text = BACKEND.format(name="tool", root=p.root) + "model_flag = '--model {model}'\n"
    text += "".join(
        AGENT.format(name=n, kind="persistent", backend="tool", more='env_pass = ["KEY"]\nmodel = "declared"')
        for n in SHORT.values()
    )
    p.write(text)
    p.agents("up", env={"KEY": "as-at-first"})
    env = {
        Around.ENVIRONMENT: {"KEY": "as-asked"},
        Around.OVERRIDE: {"KEY": "as-at-first", **{f"AGENT_MODEL_{n}": "other" for n in SHORT.values()}},
    }.get(around, {})
    wrong = []
    with surrounded(p, around):
        for what in (Verb.UP_NAME, Verb.RESTART_NAME, Verb.UP, Verb.DOWN_NAME, Verb.DOWN):
            name, fate = SHORT[what], AROUND_TABLE[around][what]
            again(p, around)
            before = sight(p)
            answer = verb(p, *words_of(what, name), env=env)
            wrong += differences(p, name, fate, before, answer) + code_of(name, fate.code, answer)
            wrong += unsaid(p, around, what, name, before, answer)
            if what is Verb.RESTART_NAME:
                wrong += after_a_heal(p, name, around)
    assert not wrong, "\n".join(wrong)
    assert around is Around.FULL_DISK or not p._carried()


def after_a_heal(p: Project, name: str, around: Around) -> list[str]:
    """A heal has the environment of the start by a person, and the model of the file."""
    if around not in {Around.ENVIRONMENT, Around.OVERRIDE}:
        return []
    key = "KEY=as-asked" if around is Around.ENVIRONMENT else "KEY=as-at-first"
    model = "other" if around is Around.OVERRIDE else "declared"
    wrong = [] if is_seen(p, name, key, model) else [f"{name}: not {key} and model {model} after the restart"]
    pid = p.pid(name)
    os.kill(pid, signal.SIGKILL)
    until(lambda: p.pid(name) not in {0, pid})
    until(lambda: p.events("agent.healed", name))
    return wrong + ([] if is_seen(p, name, key, "declared") else [f"{name}: not {key} after the heal"])


def is_seen(p: Project, name: str, key: str, model: str) -> bool:
    """In the process itself, once the shell that starts it is gone."""
    with suppress(AssertionError):
        return bool(
            until(
                lambda: (
                    (pid := p.pid(name))
                    and key in Path(f"/proc/{pid}/environ").read_text().split("\0")
                    and p.row(name)["model"] == model
                ),
                10,
            )
        )
    return False
