"""Moments on the command line: --since, --until and the end of a pause, as people write them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.tmux.project import ENGINE, Project, until

pytestmark = pytest.mark.tmux

SLEEPER = """
[backend.sleeper]
prompt_delivery = "exec"
bin = "while :; do echo x >>counted; sleep 0.05; done"

[[agent]]
name = "a"
kind = "persistent"
backend = "sleeper"
watch = "heal"
"""


@pytest.fixture
def quiet(tmp_path):
    """A project with a record and no fleet."""
    p = Project(tmp_path / "project", SLEEPER)
    p.log_dir.mkdir()
    return p


def record(p: Project, moments: list[str]) -> None:
    """An event at each of these moments, called by it."""
    same = {"tick": 0, "type": "agent.ready", "agent": "a"}
    rows = [
        {"ts": datetime.fromisoformat(m).timestamp(), "seq": n, "reason": m, **same}
        for n, m in enumerate(moments)
    ]
    (p.log_dir / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def shown(p: Project, *words: str, zone: str) -> list[str]:
    said = p.agents("events", "--json", *words, env={"TZ": zone})
    return [json.loads(line)["reason"] for line in said.splitlines()]


def test_events_of_a_span_in_the_zone_of_the_host_or_the_one_named(quiet):
    """The nights of 2026 in which the clocks of Berlin changed, an event every half hour."""
    autumn = [
        f"2026-10-25T0{h}:{m:02}:00+0{o}:00"
        for o, hs in ((2, (1, 2)), (1, (2, 3)))
        for h in hs
        for m in (0, 30)
    ]
    record(quiet, autumn)
    berlin = "Europe/Berlin"
    since = shown(quiet, "--since", "2026-10-25 02:30", zone=berlin)
    assert since == autumn[3:]  # it was 02:30 twice: both are shown
    assert shown(quiet, "--until", "2026-10-25 02:30", zone=berlin) == autumn[:6]
    assert shown(quiet, "--since", "25 oct 2026 2:30 CET", zone="Asia/Kolkata") == autumn[5:]
    assert (
        shown(quiet, "--since", "2026-10-25T00:30Z", "--until", "2026-10-25T01:00Z", zone=berlin)
        == autumn[3:5]
    )
    spring = ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]
    record(quiet, spring)
    assert shown(quiet, "--since", "29 mar 2026 2:30", zone=berlin) == spring[2:]  # it never was 02:30


def test_events_since_yesterday_in_the_words_of_a_person(quiet):
    zone = ZoneInfo("Asia/Kolkata")
    now = time.time()
    today = datetime.fromtimestamp(now, zone).date()
    moments = [datetime.fromtimestamp(now - hours * 3600, zone) for hours in range(60, 0, -1)]
    record(quiet, [each.isoformat() for each in moments])
    wanted = [
        m.isoformat()
        for m in moments
        if (today - m.date()).days == 0 or ((today - m.date()).days == 1 and m.hour >= 22)
    ]
    assert shown(quiet, "--since", "yesterday 22:00", zone="Asia/Kolkata") == wanted


@pytest.mark.parametrize(
    "words",
    [
        ["events", "--since", "soonish"],
        ["events", "--since", "01/02/2026"],
        ["events", "--until", "10"],
        ["events", "--since", "1h", "--until", "2h"],
        ["events", "--until", "8am", "-f"],
        ["tokens", "--since", "next friday"],
        ["tokens", "--until", "8am Mars/Olympus"],
        ["pause", "--until", "yesterday"],
        ["pause", "--until", "2020-01-01"],
        ["unpause", "--until", "8am"],
    ],
)
def test_a_word_that_names_no_moment_or_two_is_a_usage_error(quiet, words):
    said = quiet.agents(*words, code=2)
    assert said.startswith("error: ")
    assert words[1] in said


@pytest.mark.long
def test_without_the_library_ages_and_iso_times_still_work(quiet, tmp_path):
    """A Python without any library, which cannot fetch one either."""
    record(quiet, ["2026-10-25T01:00:00+00:00"])
    wheels = tmp_path / "no-wheels"
    wheels.mkdir()
    env = {"AO_VENV": str(tmp_path / "venv"), "AO_WHEELS": str(wheels), "PYTHONNOUSERSITE": "1"}
    command = [sys.executable, "-S", str(ENGINE / "agents.py"), "events", "--config", str(quiet.config)]

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words],
            capture_output=True,
            text=True,
            env={**quiet.env(env), "PATH": os.environ["PATH"]},
        )

    assert ask("--since", "2026-10-25").stdout.count("agent.ready") == 1
    assert ask("--since", "90d", "--until", "2026-10-25T00:30Z").stdout == ""
    done = ask("--since", "yesterday 22:00")
    assert done.returncode == 1
    assert "needs python-dateutil" in done.stderr
    assert "needs no library" in done.stderr
    assert "Traceback" not in done.stderr


def test_tokens_of_the_phases_that_ran_in_a_span(quiet):
    day = 86_400.0
    start = datetime.fromisoformat("2026-11-01T00:00:00+00:00").timestamp()
    rows = [
        {"v": 1, "run": f"r{n}", "phase": f"p{n}", "start": start + n * day, "end": start + (n + 1) * day,
         "duration_s": day, "limited_s": 0.0, "agents": {}, "models": {}, "days": {}}
        for n in range(5)
    ]  # fmt: skip
    (quiet.log_dir / "token-log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def phases(*words: str) -> list[str]:
        return [row["phase"] for row in quiet.json("tokens", *words)["records"]]

    assert phases() == ["p0", "p1", "p2", "p3", "p4"]
    assert phases("--since", "3 nov 2026 12:00 UTC") == ["p2", "p3", "p4"]
    assert phases("--until", "2026-11-02T12:00Z") == ["p0", "p1"]
    assert phases("--since", "2026-11-03T12:00Z", "--until", "2026-11-03T13:00Z") == ["p2"]
    assert phases("--until", "2020-01-01") == []


@pytest.fixture
def running(tmp_path):
    p = Project(tmp_path / "project", SLEEPER)
    p.agents("up")
    yield p
    p.tear_down()


def test_a_pause_ends_by_itself_at_its_time_also_over_a_new_watchdog(running):
    p = running
    said = p.json("pause", "a", "--until", "1h")
    assert said["until"] == pytest.approx(time.time() + 3600, abs=60)
    until(lambda: p.row("a")["detail"] == "PAUSED")
    assert p.row("a")["until"] == said["until"]
    assert "PAUSED until " in p.agents("status")
    assert "until" in p.agents("explain", "a")
    said = p.agents("pause", "a", "--until", "6s")  # made anew: the new end holds
    assert said.startswith("paused until ")
    p.kill_watchdog()
    p.tmux("kill-session", "-t", f"={p.prefix}watchdog")
    os.kill(p.pid("a"), 9)
    p.agents("up", "watchdog")
    until(lambda: p.events("agent.unpaused", "a"))
    until(lambda: p.pid("a"))  # nobody healed it while it was paused
    ended = p.events("agent.unpaused", "a")[0]
    asked = p.events("agent.paused", "a")[-1]
    assert ended["ts"] >= asked["facts"]["until"]
    assert p.events("agent.started", "a")[1]["ts"] >= asked["facts"]["until"]
    row = p.row("a")
    assert (row["state"], row["until"]) == ("RUNNING", None)


def test_what_is_frozen_until_then_runs_on_by_itself(running):
    p = running
    said = p.json("pause", "a", "--freeze", "--until", "5s", code=None)
    if not said["ok"]:
        pytest.skip(f"control groups are not ours to make here: {said['not_frozen']}")
    counted = p.root / "counted"
    before = counted.stat().st_size
    assert p.row("a")["detail"] == "FROZEN"
    assert counted.stat().st_size == before
    until(lambda: counted.stat().st_size > before)
    assert time.time() >= said["until"]
    until(lambda: p.row("a")["detail"] != "FROZEN")
    assert p.events("agent.unpaused", "a")


def test_a_bare_up_says_until_when_it_leaves_one(running):
    p = running
    p.agents("pause", "a", "--until", "2h")
    assert "until" in p.agents("up")
    assert p.row("a")["detail"] == "PAUSED"
