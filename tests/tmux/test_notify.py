"""Being told, against receivers on this machine: exactly once a change, whatever happens to the watchdog."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.tmux.project import Project, until

pytestmark = pytest.mark.tmux

ON = '["fatal", "asking", "limited", "resumed", "stale", "drift"]'
FLEET = """
[[agent]]
name = "{name}"
kind = "persistent"
backend = "{backend}"
prompt = "Begin."
env = {{ AO_SCRIPT = "{script}" }}
"""
BROKEN = '[backend.broken]\nbin = "/nowhere/[red]<b>tool"\nprompt_delivery = "arg"\n'
ASKS = 'start = [{ ask = "May I [bold]format the disk?", options = ["Yes", "No"] }]'
LIMITED = """
[[on]]
kickoff = "."
steps = [{ limit = "You've hit your session limit · resets {reset}", for = 2 }, { say = "On I go." }]
"""


@pytest.fixture
def receiver():
    """A service on loopback; `said` are the documents it got."""
    said: list[dict[str, str]] = []

    class Door(BaseHTTPRequestHandler):
        def do_POST(self):
            said.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    server.said = said
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path, "", defaults="")
    made.head = made.head.replace("[watchdog]\n", "[watchdog]\nnotify_after = 0.2\n")
    yield made
    made.tear_down()


def write(project: Project, targets: str) -> None:
    members = [
        FLEET.format(name="asker", backend="scripted", script=project.script("asker", ASKS)),
        FLEET.format(name="calm", backend="scripted", script=""),
        FLEET.format(name="broke", backend="broken", script=""),
        FLEET.format(name="capped", backend="scripted", script=project.script("capped", LIMITED)),
    ]
    project.write("".join(members) + BROKEN + targets)


def lines(project: Project) -> list[dict]:
    path = project.root / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(project: Project) -> Counter:
    return Counter((n["kind"], n["agent"]) for line in lines(project) for n in line["notices"])


def heard(receiver) -> int:
    """How many notices arrived by address: on a slow machine several of them come in one message."""
    several = (re.search(r"(\d+) things happened", message["title"]) for message in receiver.said)
    return sum(int(found[1]) if found else 1 for found in several)


@pytest.mark.long
def test_every_change_is_told_once_whatever_becomes_of_the_watchdog(project, receiver):
    hook = f"json://127.0.0.1:{receiver.server_address[1]}/a-path-that-is-a-secret"
    env = {"FLEET_HOOK": hook}
    write(
        project,
        f'[[notify]]\nto = "command"\ncommand = "cat >> told.jsonl"\non = {ON}\n'
        f'[[notify]]\nto = "url"\nurl_env = "FLEET_HOOK"\non = {ON}\n',
    )
    project.agents("up", "--no-wait", code=None, env=env)
    first = {
        ("fatal", "broke"): 1,
        ("asking", "asker"): 1,
        ("limited", "capped"): 1,
        ("resumed", "capped"): 1,
    }
    until(lambda: told(project) == first)

    project.kill_watchdog()  # its teller says so, and goes
    gone = {**first, ("stale", ""): 1}
    until(lambda: told(project) == gone)
    project.agents("ensure", env=env)
    back = {**first, ("stale", ""): 2}
    until(lambda: told(project) == back)
    project.agents("down", "watchdog")
    project.agents("up", "watchdog", env=env)  # an orderly restart is no news; a bare `up` is a fresh try

    project.agents("reset", "broke")  # and this is: the proof that it still tells
    again = {**back, ("fatal", "broke"): 2}
    until(lambda: told(project) == again)
    until(lambda: heard(receiver) == sum(again.values()))
    project.agents("down")
    assert told(project) == again

    fatal = next(d for d in receiver.said if "broke" in d["title"] + d["message"])
    assert "/nowhere/[red]<b>tool" in fatal["message"], "text is text"
    ids = [n["id"] for line in lines(project) for n in line["notices"]]
    assert len(set(ids)) == len(ids)
    for path in project.log_dir.rglob("*"):
        if path.is_file():
            assert b"a-path-that-is-a-secret" not in path.read_bytes(), path


def test_a_receiver_that_hangs_or_fails_does_not_delay_the_watchdog(project):
    write(
        project,
        '[[notify]]\nto = "command"\ncommand = "sleep 1000"\n'
        '[[notify]]\nto = "command"\ncommand = "exit 7"\nretries = 0\n'
        '[[notify]]\nto = "command"\ncommand = "cat >> told.jsonl"\n',
    )
    project.agents("up", "--no-wait", code=None)
    until(lambda: told(project) == {("fatal", "broke"): 1, ("asking", "asker"): 1})
    until(lambda: any("exit 7" in r["reason"] for r in project.events("notify.failed")))
    until(lambda: project.events("agent.ready", "calm"))
    os.kill(project.row("calm")["pid"], signal.SIGKILL)
    until(lambda: project.events("agent.healed", "calm"))
    project.agents("down")


def test_what_an_agent_still_runs_that_the_file_no_longer_says_is_told_once(project):
    target = '[[notify]]\nto = "command"\ncommand = "cat >> told.jsonl"\non = ["drift"]\n'
    project.write(FLEET.format(name="a", backend="demo", script="") + target)
    project.agents("up")
    project.write(FLEET.format(name="a", backend="demo", script="x") + target)
    until(lambda: told(project) == {("drift", "a"): 1})
    assert "env" in lines(project)[0]["text"]
    project.agents("down")


def test_the_test_verb_tries_each_and_says_which_works(project):
    write(
        project,
        '[[notify]]\nto = "command"\ncommand = "cat >> told.jsonl"\n'
        '[[notify]]\nto = "command"\ncommand = "echo wrong number; exit 4"\n',
    )
    facts = project.json("notify", "test", code=1)
    assert [t["ok"] for t in facts["targets"]] == [True, False]
    assert facts["targets"][1]["why"] == "exit 4: wrong number"
    assert lines(project)[0]["kind"] == "test"
    assert project.json("notify")["targets"][0]["waiting"] == 0
    project.write("")
    assert "has no [[notify]]" in project.agents("notify", "test", code=1)


HELD = """
[[agent]]
name = "builder"
kind = "loop"
role = "builder"
backend = "demo"

[loop]
kickoff_template = "kickoff.md"
roles_dir = "."

[[loop.phases]]
id = "p1"
plan = "kickoff.md"
status = "STATUS-p1.md"

[[loop.phases]]
id = "p2"
plan = "plans/secnod.md"
status = "STATUS-p2.md"
"""


def test_a_loop_that_is_held_is_told_without_being_asked_for_and_is_a_problem(project):
    for name in ("kickoff.md", "builder.md"):
        (project.root / name).write_text("Go.\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    project.write(HELD + '[[notify]]\nto = "command"\ncommand = "cat >> told.jsonl"\n')
    project.agents("up")
    (project.root / "STATUS-p1.md").write_text("## DONE\nAll hold.\n", encoding="utf-8")
    until(lambda: told(project) == {("held", ""): 1})
    assert "plans/secnod.md" in lines(project)[0]["text"]
    assert any("plans/secnod.md" in problem for problem in project.json("status")["problems"])
    (project.root / "plans").mkdir()
    (project.root / "plans" / "secnod.md").write_text("It is here now.\n", encoding="utf-8")
    until(lambda: project.events("phase.advanced"))
    project.agents("down")
    assert told(project) == {("held", ""): 1}
