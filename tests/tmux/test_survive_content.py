"""Whatever an agent leaves where we read: it costs that one record, never a look."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.tmux.project import Project, scripted, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]


@pytest.fixture(scope="module")
def p(tmp_path_factory):
    """An agent whose CLI reports by hooks and by a transcript, and one that has nothing to do with it."""
    root = tmp_path_factory.mktemp("content")
    p = Project(root / "project", "")
    env = f'env = {{ AO_SCRIPT = "scripts/one.toml", CLAUDE_CONFIG_DIR = "{root}/claude" }}'
    one = re.sub("env = .*", env, scripted(p, "one"))
    p.write(
        '[backend.scripted]\nsignals = ["hooks", "registry", "transcript", "screen"]\n'
        + one
        + scripted(p, "two")
    )
    p.agents("up")
    try:
        yield p
    finally:
        p.tear_down()


def spool(p: Project) -> Path:
    return p.log_dir / "state" / "signals" / f"{p.prefix}one"


def report(p: Project, conversation: str) -> None:
    """As the hook of a CLI does it: one rename."""
    facts = {"hook_event_name": "SessionStart", "session_id": conversation}
    (spool(p) / ".new").write_text(json.dumps(facts))
    (spool(p) / ".new").rename(spool(p) / f"hook-{conversation}.json")


def transcript(p: Project, conversation: str) -> Path:
    slug = re.sub("[^A-Za-z0-9]", "-", os.path.realpath(p.root))
    folder = p.root.parent / "claude" / "projects" / slug
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{conversation}.jsonl"


def learned(p: Project) -> set[str]:
    return {r["reason"] for r in p.events("agent.resume_id_learned", "one")}


def looks(p: Project, times: int = 3) -> None:
    """The watchdog goes on looking."""
    beat = p.log_dir / "state" / "heartbeat"
    for _ in range(times):
        then = beat.stat().st_mtime_ns
        until(lambda t=then: beat.stat().st_mtime_ns > t, 15)


def line(conversation: str) -> bytes:
    said = {
        "type": "user",
        "timestamp": datetime.now(UTC).isoformat(),
        "sessionId": conversation,
        "message": {"content": "hello"},
    }
    return json.dumps(said).encode() + b"\n"


def test_what_is_no_file_in_the_place_of_a_transcript_stops_nothing(p, monkeypatch):
    """I35: a pipe waits for a writer, a socket cannot be opened, a directory cannot be read."""
    pipe, sock, folder = (transcript(p, name) for name in ("pipe", "sock", "folder"))
    os.mkfifo(pipe)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(sock.parent)  # the path of a socket has to be short
        server.bind(sock.name)
        for name in ("pipe", "sock", "folder"):
            report(p, name)
            until(lambda n=name: n in learned(p))
            looks(p)
            until(
                lambda n=name: any(f"{n}.jsonl" in r["reason"] for r in p.events("signal.unreadable", "one"))
            )
    assert not p.events("watchdog.step_failed")


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe\x00",
        b'{"type":"user","timestamp":"2026-01-01T00:00:00Z","message":"text, not an object"}',
        b'{"type":"assistant","isApiErrorMessage":true,"timestamp":"2030-01-01T00:00Z","quotaLimits":[1]}',
        b'{"n":' + b"9" * 5000 + b"}",
        b'{"x":"' + b"y" * (5 << 20) + b'"}',
    ],
    ids=["brackets", "deep", "bytes", "shape", "list", "digits", "long"],
)
def test_a_record_that_cannot_be_read_costs_itself(p, hostile):
    name = f"t{time.time_ns()}"
    transcript(p, name).write_bytes(b"")
    report(p, name)
    until(lambda: name in learned(p))
    with open(transcript(p, name), "ab") as file:
        file.write(hostile + b"\n" + line(f"{name}-after"))
    until(lambda: f"{name}-after" in learned(p))
    assert not p.events("watchdog.step_failed")


def test_a_long_line_is_told(p):
    name = "long"
    transcript(p, name).write_bytes(b"z" * (5 << 20) + b"\n")
    report(p, name)
    until(lambda: any("longer than 4 MiB" in r["reason"] for r in p.events("signal.unreadable")))


def test_a_directory_in_the_spool_keeps_no_report_back(p):
    (spool(p) / "a-folder.json").mkdir()
    os.mkfifo(spool(p) / "a-pipe.json")
    (spool(p) / "a-long.json").write_bytes(b"x" * (2 << 20))
    (spool(p) / "a-deep.json").write_bytes(b"[" * 100_000)
    for name in ("first", "second"):
        report(p, name)
        until(lambda n=name: n in learned(p))
    assert not p.events("watchdog.step_failed")


def test_pipes_in_the_place_of_our_own_files_stop_nothing(p):
    """A config, a record of a run, what is desired, a log: whatever an agent may get at."""
    config = p.config.read_text()
    p.config.unlink()
    os.mkfifo(p.config)
    looks(p)
    p.config.unlink()
    p.config.write_text(config)
    state = p.log_dir / "state"
    for path in (state / "runs" / f"{p.prefix}one.json", state / "desired.json", state / "view.json"):
        kept = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        looks(p)
        if path.exists():
            path.unlink()
            path.write_bytes(kept)
    looks(p)
    assert p.row("two")["state"] == "RUNNING"


@pytest.mark.long
def test_an_agent_that_floods_is_bounded_and_told_and_can_be_taken_down(tmp_path):
    """I34: `yes` as an agent fills neither the disk nor the server's memory, and holds nobody up."""
    p = Project(tmp_path / "project", "")
    try:
        flood = '[[service]]\nname = "yes"\ncommand = "exec yes all work and no play"\n'
        p.write(scripted(p, "calm") + flood)
        p.agents("up")
        logs = p.log_dir / "logs"
        sizes: list[int] = []

        def told() -> bool:
            sizes.append(max(f.stat().st_size for f in logs.iterdir()))
            return bool(p.events("agent.flooded", "yes"))

        until(told)
        until(lambda: any("floods its log" in x for x in p.json("status")["problems"]))
        looks(p)
        told()
        assert max(sizes) <= 8 << 20
        server = int(p.tmux("display-message", "-p", "#{pid}"))
        pages = int(Path(f"/proc/{server}/statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 256 << 20
        assert p.json("send", "calm", "are you there?")["ok"]
        p.agents("down")
        assert not p._carried()
    finally:
        p.tear_down()
