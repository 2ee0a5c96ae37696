"""A fleet whose file is broken, missing, moved or edited to live elsewhere locks no operator out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deadlines import patience
from tests.tmux.project import ENGINE, Project, scripted, until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'


def verb(
    p: Project, *words: str, config: str | None = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A verb with stdout and stderr apart. `config` None: the file of the current directory."""
    named = [] if config is None else ["--config", config or str(p.config)]
    done = subprocess.run(
        [sys.executable, str(ENGINE / "agents.py"), *words, *named],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(120),
        env=p.env(),
        cwd=cwd or p.root,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    assert "fault of this program" not in done.stderr
    return done


def broken(p: Project) -> str:
    """A kind that does not exist, in the file's last line."""
    text = p.config.read_text() + '[[agent]]\nname = "x"\nbackend = "demo"\nkind = "lopp"\n'
    p.config.write_text(text)
    return f"agents.toml:{text.count(chr(10))}"


def garbage(p: Project) -> str:
    p.config.write_bytes(b"\xff\xfe[[agent]\n")
    return "agents.toml:1"


def missing(p: Project) -> str:
    p.config.unlink()
    return "no such file"


def moved(p: Project) -> str:
    p.config.rename(p.root / "elsewhere.toml")
    return "no such file"


def a_directory(p: Project) -> str:
    p.config.unlink()
    p.config.mkdir()
    return "is a directory"


def mended(p: Project, text: str) -> None:
    if p.config.is_dir():
        p.config.rmdir()
    p.config.write_text(text)


FAULTS: dict[str, Callable[[Project], str]] = {
    "broken": broken,
    "garbage": garbage,
    "missing": missing,
    "moved": moved,
    "directory": a_directory,
}
CAUSES = {
    "broken": "broken",
    "garbage": "broken",
    "missing": "missing",
    "moved": "missing",
    "directory": "unreadable",
}
LOOKS = (
    ("status",),
    ("logs", "one"),
    ("events",),
    ("explain", "one"),
    ("attach", "one", "--print"),
    ("send", "one", "hello"),
    ("pause", "one"),
    ("unpause", "one"),
    ("reset", "one"),
    ("wait", "--agent", "one", "--state", "RUNNING"),
)


@pytest.fixture
def two(make) -> Project:
    p = make()
    p.write(scripted(p, "one") + DEMO.format("b"))
    p.agents("up")
    return p


def test_every_verb_that_looks_or_stops_goes_on_from_the_last_good_config_and_says_so(two):
    """And verbs that start by the file still refuse it, with its errors."""
    p = two
    good, pids = p.config.read_text(), {n: p.pid(n) for n in ("one", "b")}
    said = broken(p)
    for words in LOOKS:
        done = verb(p, *words)
        assert done.returncode == 0, (words, done.stderr)
        told = [line for line in done.stderr.splitlines() if said in line]
        assert len(told) == 1, (words, done.stderr)
        assert "last good" in told[0]
    for words in (("up",), ("restart", "one"), ("validate",)):
        done = verb(p, *words)
        assert done.returncode == 2, (words, done.stderr)
        assert said in done.stderr
    for name, fault in FAULTS.items():
        mended(p, good)
        said = fault(p)
        facts = json.loads(verb(p, "status", "--json").stdout)
        assert facts["config"]["source"] == "last_good", name
        assert facts["config"]["cause"] == CAUSES[name], name
        assert facts["watchdog"]["state"] == "running", name
        assert {r["name"]: r["pid"] for r in facts["agents"]} == pids, name
        wrong = [x for x in facts["problems"] if said in x]
        assert len(wrong) == 1, facts["problems"]
        assert "the watchdog uses the last good config" in wrong[0]
        document = json.loads(verb(p, "explain", "b", "--json").stdout)
        assert document["config"]["cause"] == CAUSES[name]
        assert verb(p, "up").returncode == 2
    mended(p, good)
    done = verb(p, "status", "--json")
    assert json.loads(done.stdout)["config"] == {"source": "file", "cause": "", "problems": []}
    assert "last good" not in done.stderr


@pytest.mark.parametrize(
    ("fault", "watched"),
    [("broken", True), ("missing", True), ("broken", False), ("missing", False), ("directory", False)],
)
def test_down_takes_the_fleet_down_whatever_became_of_the_file(make, fault, watched):
    p = make(DEMO.format("a") + '[[service]]\nname = "s"\ncommand = "sleep 1000"\n')
    p.agents("up", *(() if watched else ("a", "s")))
    good = p.config.read_text()
    said = FAULTS[fault](p)
    done = verb(p, "down", "--json", config=None)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    document = json.loads(done.stdout)
    assert document["ok"]
    assert document["config"]["source"] == "last_good"
    assert {f"{p.prefix}a", f"{p.prefix}s"} <= set(document["stopped"])
    assert p.tmux("list-sessions") == ""
    assert not p._carried()
    mended(p, good)
    assert {p.row(n)["desired"] for n in ("a", "s")} == {"down"}


def test_a_watchdog_that_is_killed_beside_a_broken_file_comes_back_and_heals(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    first = p.json("status")["watchdog"]["pid"]
    broken(p)
    os.kill(first, signal.SIGKILL)
    until(lambda: len(p.events("watchdog.started")) == 2, 60)
    os.kill(p.pid("a"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"), 60)
    assert "the watchdog uses the last good config" in verb(p, "status").stdout
    assert verb(p, "down").returncode == 0


def test_the_last_good_config_is_the_one_the_watchdog_took_in_last(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    p.write(DEMO.format("a") + DEMO.format("late"))
    until(lambda: p.events("config.loaded"))
    missing(p)
    until(lambda: [r["name"] for r in p.json("status")["agents"]] == ["a", "late"])
    assert verb(p, "down").returncode == 0


def test_a_file_that_was_never_brought_up_has_no_last_good_one(make):
    p = make(DEMO.format("a"))
    said = broken(p)
    for words in (("status",), ("down",), ("logs", "a")):
        done = verb(p, *words)
        assert done.returncode == 2, words
        assert said in done.stderr
    assert not p.log_dir.exists()


@pytest.mark.parametrize("key", ["log_dir", "session_prefix", "tmux_socket"])
def test_a_fleet_that_runs_stays_where_it_is_until_down_and_up(make, key):
    """An edit of where it lives is not followed live: verbs follow the fleet and say when it counts."""
    p = make(DEMO.format("a"))
    p.agents("up")
    pid, dog, good = p.pid("a"), p.json("status")["watchdog"]["pid"], p.config.read_text()
    new = {
        "log_dir": good.replace('".ao-state"', '".ao-other"'),
        "session_prefix": good.replace(p.prefix, "aotestother-"),
        "tmux_socket": good.replace("[defaults]\n", f'[defaults]\ntmux_socket = "{p.socket}-other"\n'),
    }[key]
    p.config.write_text(new)
    done = verb(p, "status", "--json")
    facts = json.loads(done.stdout)
    assert f"{key} changed: takes effect after `down` and `up`" in done.stderr
    assert facts["watchdog"]["state"] == "running"
    assert facts["watchdog"]["pid"] == dog
    assert facts["agents"][0]["pid"] == pid
    assert facts["config"]["cause"] == "changed"
    for words in (("up",), ("restart", "a")):
        done = verb(p, *words)
        assert done.returncode == 1
        assert f"{key} changed" in done.stderr
    os.kill(dog, signal.SIGKILL)  # the next one stays there, too
    until(lambda: len(p.events("watchdog.started")) == 2, 60)
    os.kill(p.pid("a"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"), 60)
    done = verb(p, "down")
    assert done.returncode == 0, done.stderr
    assert p.tmux("list-sessions") == ""
    assert not p._carried()
    assert not (p.root / ".ao-other").exists()
    done = verb(p, "up", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "changed" not in done.stderr


def test_a_project_that_was_moved_under_its_fleet_is_taken_down_from_its_new_place(make):
    p = make(DEMO.format("a"))
    p.agents("up")
    there = p.root.with_name("moved")
    p.root.rename(there)
    try:
        done = verb(p, "down", config=str(there / "agents.toml"), cwd=there)
        assert done.returncode == 0, done.stderr
        assert f"stopped {p.prefix}a" in done.stdout
        assert str(p.config) in done.stderr
        assert p.tmux("list-sessions") == ""
        assert not p._carried()
    finally:
        shutil.rmtree(p.root, ignore_errors=True)
        there.rename(p.root)


def test_a_renamed_file_still_knows_its_fleet(make):
    p = make(DEMO.format("a"))
    p.agents("up", "a")
    new = p.config.rename(p.root / "fleet.toml")
    done = verb(p, "status", "--json", config=str(new))
    assert [r["state"] for r in json.loads(done.stdout)["agents"]] == ["RUNNING"]
    assert verb(p, "down", config=str(new)).returncode == 0
    assert p.tmux("list-sessions") == ""


def test_a_copy_of_a_project_is_not_taken_for_it(make, tmp_path):
    p = make(DEMO.format("a"))
    p.agents("up", "a")
    copy = tmp_path / "copy"
    shutil.copytree(p.root, copy, ignore=lambda _d, names: [n for n in names if n == "watch.sock"])
    pid = p.pid("a")
    done = verb(p, "up", "--no-wait", config=str(copy / "agents.toml"), cwd=copy)
    assert done.returncode == 1
    assert str(p.config) in done.stderr
    assert verb(p, "down", config=str(copy / "agents.toml"), cwd=copy).returncode == 0
    assert p.pid("a") == pid
