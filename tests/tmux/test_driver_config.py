"""What an edit of the running fleet's file does, and what it never does."""

from __future__ import annotations

import os
import signal

import pytest

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


def test_a_removed_agent_runs_on_as_an_orphan_until_a_bare_down(make):
    """T24."""
    p = make(DEMO.format("a", "") + DEMO.format("b", ""))
    p.agents("up")
    orphan = p.pid("b")
    edited(p, lambda: p.write(DEMO.format("a", "")))
    until(lambda: any(f"{p.prefix}b" in x and "down" in x for x in p.json("status")["problems"]))
    assert p.pid("b") == orphan
    p.agents("down", "b", code=2)
    assert f"stopped {p.prefix}b" in p.agents("down")
    assert not p._carried()


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


def test_a_prefix_changed_under_a_running_fleet_is_refused_until_it_is_down(make):
    """T45: else two fleets run in one log_dir, and neither `down` knows the other's sessions."""
    p = make(A)
    p.agents("up", "a")
    pid, good = p.pid("a"), p.config.read_text()
    p.config.write_text(good.replace(p.prefix, "aotestother-"))
    for verb in ("up", "down"):
        said = p.agents(verb, code=1)
        assert "session_prefix was changed" in said
        assert f"{p.prefix}a" in said
    assert p.pid("a") == pid
    p.config.write_text(good)
    p.agents("down")
    p.config.write_text(good.replace(p.prefix, f"{p.prefix}new-"))
    p.agents("up", "--dry-run")
