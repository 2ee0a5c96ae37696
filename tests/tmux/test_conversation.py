"""A heal and a restart keep the conversation; a new phase and an edited prompt are told in full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.tmux.project import ENGINE, scripted, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

STUB = """#!/bin/sh
# As claude does it: a conversation is on file from its first turn on, and an unknown one cannot be resumed.
echo "$@" >> {root}/calls.txt
case "$*" in
  *--resume*) [ -e "{root}/home/projects/{slug}/$(cat {root}/.ao-state/state/a.id).jsonl" ] ||
    {{ echo 'No conversation found with session ID: x' >&2; exit 1; }} ;;
esac
echo ready
exec sleep 1000
"""
LIKE_CLAUDE = """
[backend.stub]
bin = "{root}/stub"
prompt_delivery = "arg"
supports_resume = true
session_id_flag = "--session-id '{{id}}'"
resume_refused_re = 'No conversation found'
signals = ["transcript"]
transcript = "claude"

[[agent]]
name = "a"
kind = "persistent"
backend = "stub"
prompt = "Begin."
env = {{ CLAUDE_CONFIG_DIR = "{root}/home" }}
"""


def conversation(p, name):
    return (p.log_dir / "state" / f"{name}.id").read_text().strip()


def resumed(p, name):
    return [r["facts"]["resumed"] for r in p.events("agent.started", name)]


def kill(p, name):
    before = p.pid(name)
    os.kill(before, signal.SIGKILL)
    until(lambda: p.pid(name) not in {0, before})


def test_heal_and_restart_keep_the_conversation_by_default(make):
    p = make()

    def write(prompt="Begin."):
        one = scripted(p, "one").replace("Begin.", prompt)
        p.write(one + scripted(p, "off", more="resume = false"))

    write()
    said = {r["name"]: r["conversation"] for r in p.json("up")["agents"]}
    assert said == {"one": "new", "off": "new"}
    first = {name: conversation(p, name) for name in ("one", "off")}
    for name in first:
        kill(p, name)
    until(lambda: [len(resumed(p, name)) for name in first] == [2, 2])
    assert conversation(p, "one") == first["one"]
    assert conversation(p, "off") != first["off"]
    rows = {r["name"]: r["conversation"] for r in p.json("restart", "one", "off")["agents"]}
    assert rows == {"one": "continued", "off": "new"}
    assert conversation(p, "one") == first["one"]
    kickoff = p.log_dir / "state" / f"kickoff-{p.prefix}one.txt"
    assert "Begin." not in kickoff.read_text()

    write("Begin with the parser.")
    p.agents("restart", "one")
    assert conversation(p, "one") == first["one"]
    assert kickoff.read_text().strip() == "Begin with the parser."
    p.agents("restart", "one")
    assert "parser" not in kickoff.read_text()

    assert p.json("restart", "one", "--fresh")["agents"][0]["conversation"] == "new"
    assert conversation(p, "one") != first["one"]
    assert kickoff.read_text().strip() == "Begin with the parser."


def test_up_and_restart_say_once_what_becomes_of_the_conversation(make):
    p = make()
    p.write(scripted(p, "one") + '[[agent]]\nname = "plain"\nkind = "persistent"\nbackend = "demo"\n')
    for verb, said in (
        (("up",), "new conversation: one"),
        (("restart", "one", "plain"), "conversation continued: one"),
        (("restart", "one", "--fresh"), "new conversation: one"),
    ):
        text = _both(p, *verb)
        assert text.count("conversation") == 1, text
        assert said in text


def _both(p, *words):
    done = subprocess.run(
        [sys.executable, str(ENGINE / "agents.py"), *words, "--config", str(p.config)],
        capture_output=True,
        text=True,
        check=True,
        env=p.env(),
    )
    return done.stdout + done.stderr


def test_a_conversation_that_never_had_a_turn_is_not_resumed_and_one_that_is_refused_is_no_death(make):
    p = make()
    slug = "".join(c if c.isalnum() else "-" for c in os.path.realpath(p.root))
    stub = p.root / "stub"
    stub.write_text(STUB.format(root=p.root, slug=slug))
    stub.chmod(0o755)
    p.write(LIKE_CLAUDE.format(root=p.root))
    p.agents("up")
    first = conversation(p, "a")
    p.agents("restart", "a")  # no turn yet: the CLI does not know that id
    second = conversation(p, "a")
    assert second != first
    turns = p.root / "home" / "projects" / slug
    turns.mkdir(parents=True)
    (turns / f"{second}.jsonl").write_text("{}\n")
    p.agents("restart", "a")
    assert conversation(p, "a") == second
    calls = (p.root / "calls.txt").read_text().splitlines()
    assert ["--resume" in call for call in calls] == [False, False, True]
    assert not p.events("agent.died", "a")


LOOP = """
[[agent]]
name = "builder"
kind = "loop"
role = "builder"
backend = "scripted"

[loop]
kickoff_template = "kickoff.md"
roles_dir = "."

[[loop.phases]]
id = "p1"
plan = "kickoff.md"
status = "STATUS-p1.md"

[[loop.phases]]
id = "p2"
plan = "kickoff.md"
status = "STATUS-p2.md"
"""


def test_a_new_phase_is_told_in_full_and_a_heal_carries_on(make):
    p = make(LOOP)
    (p.root / "kickoff.md").write_text("You are in {phase_id}.\n")
    (p.root / "builder.md").write_text("Build.\n")
    subprocess.run(["git", "init", "-q", str(p.root)], check=True)
    p.agents("up")
    kickoff = p.log_dir / "state" / f"kickoff-{p.prefix}builder.txt"
    assert "You are in p1." in kickoff.read_text()
    first = conversation(p, "builder")
    kill(p, "builder")
    until(lambda: resumed(p, "builder") == [False, True])
    assert conversation(p, "builder") == first
    (p.root / "STATUS-p1.md").write_text("## DONE\nAll hold.\n")
    until(lambda: "You are in p2." in kickoff.read_text())
    until(lambda: len(resumed(p, "builder")) == 3)
    assert resumed(p, "builder") == [False, True, True]
    assert conversation(p, "builder") == first


def test_a_wedged_conversation_is_left_and_a_new_one_begun(make):
    p = make()
    p.write(scripted(p, "one", '[[on]]\nmessage = "break"\nsteps = [{ fatal = true }]'))
    p.agents("up")
    first = conversation(p, "one")
    p.agents("send", "one", "break", code=None)
    until(lambda: p.events("agent.wedged", "one"))
    until(lambda: len(resumed(p, "one")) == 2)
    assert resumed(p, "one") == [False, False]
    assert conversation(p, "one") != first
