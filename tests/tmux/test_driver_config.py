"""What an edit of the running fleet's file does, and what it never does."""

from __future__ import annotations

import os
import signal

import pytest

from tests.tmux.inside import verb
from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n{}\n'
A, B = DEMO.format("a", 'model = "one"'), DEMO.format("b", "enabled = false")
C, D = DEMO.format("c", 'watch = "none"'), DEMO.format("d", "")
ABC = A + B + C


def loaded(p: Project) -> int:
    return len(p.events("config.loaded")) + len(p.events("config.recovered"))


def edited(p: Project, save) -> None:
    """Save, and wait until it is in force."""
    before = loaded(p)
    save()
    until(lambda: loaded(p) > before)


def by_rename(p: Project, text: str) -> None:
    new = p.config.with_suffix(".new")
    new.write_text(p.head + text)
    new.replace(p.config)


def in_pieces(p: Project, text: str) -> None:
    """Truncate, then write a little at a time."""
    with open(p.config, "w", encoding="utf-8") as file:
        for letter in p.head + text:
            file.write(letter)
            file.flush()


def by_swap(p: Project, text: str) -> None:
    """Move the old one away, write a new one, remove the old one."""
    old = p.config.with_suffix(".swp")
    p.config.rename(old)
    p.write(text)
    old.unlink()


def test_an_edit_restarts_nobody_starts_nobody_and_stops_nobody(make):
    """T24, T32, T46, R028, R079, R088: whichever way the editor saves."""
    p = make(ABC)
    p.agents("up")
    pids = {n: p.pid(n) for n in ("a", "c")}
    edited(p, lambda: by_rename(p, ABC.replace('"one"', '"two"')))
    edited(p, lambda: in_pieces(p, ABC.replace('"one"', '"three"')))
    until(lambda: p.row("a")["drift"] == ["model"])
    assert p.row("a")["model"] == "one"  # what it runs, not what the file says
    edited(p, lambda: by_swap(p, ABC + D))
    edited(p, lambda: p.write(A + B + D))
    os.kill(pids["c"], signal.SIGKILL)  # nobody watches it, and now nobody even declares it
    facts = until(lambda: (f := p.json("status")) and any(f"{p.prefix}c" in x for x in f["problems"]) and f)
    assert {r["name"]: r["state"] for r in facts["agents"]} == {
        "a": "RUNNING",
        "b": "STOPPED",
        "d": "STOPPED",
    }
    assert p.pid("a") == pids["a"]
    assert [e["agent"] for e in p.events("agent.started")] == ["a", "c"]
    source = p.config.read_bytes()
    p.agents("up", "d")
    assert p.pid("d")
    p.agents("down")
    assert p.tmux("list-sessions") == ""
    assert p.config.read_bytes() == source


def test_an_agent_that_was_removed_or_renamed_is_named_and_taken_down_by_its_old_name(make):
    """T24: with a watchdog and without one; `up` names it too, and a bare `down` takes all."""
    p = make(DEMO.format("a", "") + DEMO.format("b", "") + DEMO.format("c", ""))
    p.agents("up", "a", "b", "c")
    left = {n: p.pid(n) for n in ("b", "c")}
    p.write(DEMO.format("a", "") + DEMO.format("new", "enabled = false"))
    facts = p.json("status")
    assert {o["name"]: o["pid"] for o in facts["orphans"]} == left
    for name in left:
        assert any(x.startswith(f"{name}:") and f"`agents.py down {name}`" in x for x in facts["problems"])
    said = p.agents("up", "watchdog", "a", code=None)
    until(lambda: p.json("status")["watchdog"]["state"] == "running")
    done = p.json("status")
    assert {o["name"] for o in done["orphans"]} == {"b", "c"}, said
    assert {n: p.pid(n) for n in left} == left
    assert p.json("down", "b")["stopped"] == [f"{p.prefix}b"]
    assert not p.pid("b")
    assert p.pid("c") == left["c"]
    assert [o["name"] for o in p.json("status")["orphans"]] == ["c"]
    p.agents("down", "nobody", code=2)
    assert f"stopped {p.prefix}c" in p.agents("down")
    assert not p._carried()


def test_up_names_an_orphan_once_with_the_command_that_stops_it(make):
    p = make(DEMO.format("a", "") + DEMO.format("b", ""))
    p.agents("up", "a", "b")
    p.write(DEMO.format("a", ""))
    _, err = verb(p.config, "up", "--no-wait")
    assert err.count("agents.py down b") == 1


def test_an_agent_that_is_not_watched_is_left_as_it_died(make):
    """R088, and `status` says so."""
    p = make(DEMO.format("a", 'watch = "none"') + DEMO.format("b", ""))
    p.agents("up")
    os.kill(p.pid("a"), signal.SIGKILL)
    os.kill(p.pid("b"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "b"))
    until(lambda: p.row("a")["detail"] == "EXITED")
    assert len(p.events("agent.started", "a")) == 1
    assert not p.pid("a")
