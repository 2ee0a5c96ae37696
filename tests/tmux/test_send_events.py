"""`send` types what its usage line says into whom it says; `events` says what it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.tmux.project import ENGINE, scripted, until

pytestmark = pytest.mark.tmux


def texts(p, name):
    return [m["text"] for m in p.received(name) if m["kind"] in {"message", "queued"}]


def test_send_takes_pairs_and_refuses_what_may_be_meant_otherwise(make):
    p = make()
    p.write("".join(scripted(p, name, "steps = [{ say = 'hello' }]") for name in ("a", "b")))
    p.agents("up")
    for words in (
        ("a", "b", "x"),  # a forgotten text, or two addressees
        ("a", "b"),
        ("a", "go", "on", "now"),  # an unquoted text
        ("a", "go", "on"),
        ("a", "x", "b"),
        ("a", "x", "a", "y"),
        ("--all", "go", "on"),
    ):
        said = p.agents("send", *words, "--timeout", "20", code=2)
        assert said.startswith("error: "), words
        assert "agents.py send" in said or "named twice" in said, words
    assert (texts(p, "a"), texts(p, "b")) == ([], [])
    said = p.json("send", "a", "x  one", "b", "y; two")
    assert said["ok"]
    assert {name: row["ok"] for name, row in said["receipts"].items()} == {"a": True, "b": True}
    until(lambda: texts(p, "a") and texts(p, "b"))
    assert (texts(p, "a"), texts(p, "b")) == (["x  one"], ["y; two"])
    words = [sys.executable, str(ENGINE / "agents.py"), "send", "a", "-", "b", "z", "--config", str(p.config)]
    piped = subprocess.run(words, input="b", text=True, capture_output=True, env=p.env(), check=False)
    assert piped.returncode == 0, piped.stdout + piped.stderr
    assert (texts(p, "a")[1:], texts(p, "b")[1:]) == (["b"], ["z"])
    p.agents("down", "b")
    said = p.json("send", "a", "still there", "b", "gone", code=1)
    assert {name: row["ok"] for name, row in said["receipts"].items()} == {"a": True, "b": False}


def test_events_since_shows_all_and_a_cut_is_said(make):
    p = make("")
    p.log_dir.mkdir()
    same = {"tick": 0, "type": "agent.ready", "agent": "a"}
    lines = [{"ts": 1.7e9 + n, "seq": n, "reason": str(n), **same} for n in range(141)]
    (p.log_dir / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def ask(*words: str) -> tuple[int, str]:
        command = [sys.executable, str(ENGINE / "agents.py"), "events", *words, "--config", str(p.config)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=p.env())
        return len(done.stdout.splitlines()), done.stderr

    for more in ((), ("--json",)):
        shown, said = ask("--since", "2000-01-01", *more)
        assert (shown, said) == (141, "")
        shown, said = ask(*more)
        assert shown == 50
        assert said.startswith("91 earlier")
        shown, said = ask("--since", "2000-01-01", "-n", "40", *more)
        assert shown == 40
        assert said.startswith("101 earlier")
        assert ask("-n", "1" * 30, *more) == (141, "")
