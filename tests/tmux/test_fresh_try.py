"""A bare `up` is a fresh try, and leaves what a person or a task has ended."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.tmux.project import scripted, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

TOOL = """
[backend.tool]
inherits = "demo"
bin = "{root}/tool"
prompt_delivery = "arg"

[[agent]]
name = "a"
kind = "persistent"
backend = "tool"
"""
SERVICE = """
[[service]]
name = "s"
command = "exec {root}/tool"
"""
TASK = """
[[agent]]
name = "job"
kind = "task"
backend = "counting"

[backend.counting]
bin = "echo ran >> ran.txt; exit $(cat code.txt)"
prompt_delivery = "exec"
"""


def tool(p, text):
    path = p.root / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def problems(p):
    return " ".join(p.json("status")["problems"])


def test_a_bare_up_forgets_a_verdict_and_tells_the_next_failure_by_its_own_reason(make):
    p = make()
    p.write(TOOL.replace("{root}", str(p.root)))
    said = p.json("up", code=1)
    assert "not an executable" in said["agents"][0]["detail"]
    until(lambda: p.row("a")["state"] == "FATAL")

    tool(p, "echo 'error: unknown option --colour' >&2; exit 2")
    said = p.json("up", code=1)
    assert not said["agents"][0]["ready"]
    assert "not an executable" not in said["agents"][0]["detail"]
    until(lambda: "unknown option --colour" in p.row("a")["reason"])
    assert p.row("a")["state"] == "FATAL"
    assert "not an executable" not in problems(p)

    tool(p, "echo ready; exec sleep 1000")
    said = p.json("up")
    assert [(r["result"], r["ready"]) for r in said["agents"]] == [("started", True)]
    assert said["agents"][0]["detail"] != "FATAL"
    until(lambda: p.row("a")["state"] == "RUNNING")
    p.agents("status", "--check")
    before = p.pid("a")
    os.kill(before, signal.SIGKILL)
    until(lambda: p.pid("a") not in {0, before})


def test_reset_takes_the_verdict_on_a_service_back(make):
    p = make()
    p.write(SERVICE.replace("{root}", str(p.root)))
    p.agents("up", code=1)
    until(lambda: p.row("s")["state"] == "FATAL")
    tool(p, "exec sleep 1000")
    assert p.json("reset", "s") == {"ok": True, "reset": ["s"], "refused": {}}
    until(lambda: p.row("s")["state"] == "RUNNING")
    assert not problems(p)
    assert [r["agent"] for r in p.events("agent.reset")] == ["s"]


def test_a_bare_up_leaves_the_paused_paused_and_a_name_lets_it_go_on(make):
    p = make()
    p.write("".join(scripted(p, name, "steps = [{ say = 'hello' }]") for name in ("one", "two")))
    p.agents("up")
    p.agents("pause", "one")
    os.kill(p.pid("one"), signal.SIGKILL)
    until(lambda: p.pid("one") == 0)
    rows = {r["name"]: r for r in p.json("up")["agents"]}
    assert rows["one"]["result"] == "paused"
    assert "up one" in rows["one"]["detail"]
    assert rows["two"]["result"] == "was running"
    until(lambda: p.row("one")["detail"] == "PAUSED")
    assert p.pid("one") == 0
    assert {r["name"]: r["would"] for r in p.json("up", "--dry-run")["plan"]}["one"] == "leave: it is paused"
    assert p.json("up", "one")["agents"][0]["ready"]
    until(lambda: p.row("one")["state"] == "RUNNING")


def test_a_finished_task_stays_finished_until_it_is_named(make):
    p = make(TASK)
    code, ran = p.root / "code.txt", p.root / "ran.txt"

    def runs() -> int:
        return len(ran.read_text().splitlines()) if ran.exists() else 0

    code.write_text("3")
    p.agents("up", code=None)
    until(lambda: p.row("job")["state"] == "DEAD" or runs() == 1)
    code.write_text("0")
    p.agents("up")  # it failed: a fresh try
    until(lambda: runs() == 2)
    for _ in range(2):
        said = p.json("up")
        assert (said["ok"], said["agents"][0]["result"]) == (True, "finished")
        assert "up job" in said["agents"][0]["detail"]
    until(lambda: p.row("job")["detail"] == "EXITED")
    p.agents("down")
    assert p.json("up")["agents"][0]["result"] == "finished"
    assert runs() == 2
    assert p.json("up", "job")["agents"][0]["result"] == "started"
    until(lambda: runs() == 3)


def test_a_bare_up_leaves_a_limited_one_until_its_window_ends_and_says_when(make):
    p = make()
    ends = datetime.now(UTC) + timedelta(hours=2)
    banner = f"You've hit your session limit · resets {ends:%Y-%m-%dT%H:%M:00Z}"
    p.write(scripted(p, "one", f'[[on]]\nkickoff = "."\nsteps = [{{ limit = "{banner}", for = 9999 }}]'))
    p.agents("up", code=None)
    until(lambda: p.row("one")["until"])
    row = p.json("up")["agents"][0]
    assert row["ready"]
    assert row["detail"].startswith("LIMITED until ")
    os.kill(p.pid("one"), signal.SIGKILL)
    until(lambda: p.pid("one") == 0)
    row = p.json("up")["agents"][0]
    assert row["result"] == "limited"
    assert abs(row["until"] - ends.timestamp()) < 120
    assert "until " in row["detail"]
    assert p.pid("one") == 0
    assert p.json("up", "one", "--no-wait")["agents"][0]["result"] == "started"
