"""Verbs on a real fleet, beside sessions of strangers and with a hundred agents."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from fleet.host import procfs
from fleet.host.pane_logs import SOFT_CAP
from tests.tmux.inside import verb
from tests.tmux.project import Project, scripted, until

pytestmark = pytest.mark.tmux

DEMO = '[[agent]]\nname = "{}"\nkind = "persistent"\nbackend = "demo"\n'


def strangers(p: Project) -> dict[str, str]:
    rows = p.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid}").splitlines()
    return dict(row.split() for row in rows if "decoy" in row or row.startswith(f"{p.prefix}aa "))


def test_sessions_whose_names_begin_or_go_on_like_ours_are_never_touched(make):
    """I2, T21, T23: neither by verbs nor by a watchdog that heals, nor by a bare down."""
    p = make(DEMO.format("a") + DEMO.format("ab"))
    p.agents("up")
    short = p.prefix.rstrip("-")
    for name in (f"{p.prefix}aa", f"{p.prefix}decoy", f"{short}decoy", f"{p.prefix}a-decoy", "decoy"):
        p.tmux("new-session", "-d", "-s", name, "sleep 1000")
    p.tmux("rename-window", "-t", "=decoy:", f"{p.prefix}a")  # a bare name would find this window first
    before = strangers(p)
    assert len(before) == 5
    for _ in range(2):
        p.agents("restart", "a", "--no-wait")
        p.agents("pause", "a")
        p.agents("unpause", "a")
    os.kill(p.pid("a"), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    p.agents("down", "a")
    assert p.pid("ab")
    assert strangers(p) == before
    p.agents("down")
    assert strangers(p) == before
    assert not p._carried()


def test_down_leaves_no_process_of_any_of_the_eight_kinds(make):
    """P1, I29: by name, all of them, also after the agent itself was killed."""
    p = make()
    p.write(
        scripted(p, "one", "start = [{ spawn = true }]") + scripted(p, "two", "start = [{ spawn = true }]")
    )
    p.agents("up", "one", "two")
    notes = {n: p.log_dir / "scripted" / f"{p.prefix}{n}" / "children" for n in ("one", "two")}
    until(lambda: all(f.exists() and len(f.read_text().splitlines()) == 8 for f in notes.values()))
    children = {n: [int(line.split()[1]) for line in f.read_text().splitlines()] for n, f in notes.items()}
    said = p.json("down", "one")
    assert said == {"ok": True, "stopped": [f"{p.prefix}one"], "watchdog": False, "survivors": [], "left": []}
    assert not [pid for pid in children["one"] if procfs.row(pid) and not procfs.row(pid).zombie]
    assert all(procfs.row(pid) for pid in children["two"])
    os.kill(p.pid("two"), signal.SIGKILL)
    assert p.json("down")["ok"]
    assert not p._carried()


def test_a_hundred_agents_come_up_and_go_down_together(make):
    """I51: bounded by the patience of this call, and nobody is left."""
    p = make("".join(DEMO.format(f"a{n}") for n in range(100)), fast=False)
    said = p.json("up", "--timeout", "90")
    assert sum(r["ready"] for r in said["agents"]) == 100
    out = p.agents("down", timeout=60)
    assert out.count("stopped ") == 101
    assert p.tmux("list-sessions") == ""
    assert not p._carried()


def test_restart_attach_logs_and_dry_run(make):
    p = make()
    p.write(
        scripted(p, "one", "steps = [{ say = 'I have begun.' }]") + DEMO.format("b") + "enabled = false\n"
    )
    plan = p.json("up", "--dry-run")["plan"]
    assert [(r["name"], r["would"]) for r in plan] == [("one", "start")]
    assert not p.log_dir.exists()
    p.agents("up")
    old = p.pid("one")
    assert [r["would"] for r in p.json("up", "--dry-run")["plan"]] == ["leave: it runs"]
    assert "I have begun." in until(lambda: (t := p.agents("logs", "one")) and "I have begun." in t and t)
    assert f"={p.prefix}one:" in p.agents("attach", "one", "--print")
    said = p.json("restart", "one")
    assert said["ok"]
    assert p.pid("one") not in {0, old}
    assert p.row("one")["restarts"] == 0  # a person's restart is not counted against it
    p.agents("restart", "nobody", code=2)
    p.agents("down", "watchdog")
    assert p.json("status")["watchdog"]["state"] == "stopped"
    assert p.pid("one")


@pytest.mark.parametrize("name", ["a.b", "a:b", "-a", "a b", "a'b", "#(x)", "watchdog", "é", "a" * 80])
def test_a_name_that_tmux_would_read_otherwise_is_refused_before_anything_starts(make, name):
    """I3, T22, T14."""
    p = make(DEMO.format(name))
    said = p.agents("up", code=2)
    assert "agents.toml:" in said
    assert not p.log_dir.exists()


def test_a_session_log_that_outgrew_its_bounds_is_rotated_and_goes_on(make):
    """T30: by a rename and a new writer; nothing is copied."""
    p = make('[[service]]\nname = "clock"\ncommand = "while :; do date +tick-%s; sleep 0.2; done"\n')
    p.agents("up")
    log = p.log_dir / "logs" / f"{p.prefix}clock.log"
    with open(log, "ab") as file:
        file.truncate(SOFT_CAP + 1)
    inode = log.stat().st_ino
    until(lambda: log.with_name(f"{log.name}.1").exists() and log.stat().st_size < SOFT_CAP)
    assert log.with_name(f"{log.name}.1").stat().st_ino == inode
    until(lambda: "tick-" in log.read_text())
    assert oct(log.with_name(f"{log.name}.1").stat().st_mode & 0o777) == "0o600"


@pytest.mark.long
def test_an_agent_whose_clone_cannot_be_made_keeps_nobody_else_from_starting(make):
    """T07: it is named, and it is wanted all the same: once there is something to clone, it comes."""
    p = make(DEMO.format("a") + 'dir = "mine"\nclone = "nothing-there"\n' + DEMO.format("b"))
    said = p.agents("up", code=1)
    assert "nothing-there" in said
    assert p.pid("b")
    assert p.row("a")["desired"] == "up"
    (p.root / "nothing-there").mkdir()
    (p.root / "nothing-there" / "file").write_text("x")
    until((p.root / "mine" / "file").exists, 60)
    until(lambda: p.row("a")["state"] == "RUNNING")


def test_down_ends_a_fleet_whose_state_somebody_removed(make):
    """R131, T34: the sessions carry our stamp, and that is enough."""
    p = make(DEMO.format("a"))
    p.agents("up", "a")
    shutil.rmtree(p.log_dir)
    assert f"stopped {p.prefix}a" in p.agents("down")
    assert p.tmux("list-sessions") == ""
    shutil.rmtree(p.log_dir)
    assert "nothing was running" in p.agents("down")
    assert not p.log_dir.exists()


OLD_TMUX = '#!/bin/sh\n[ "$1" = -V ] && exec echo "tmux 3.1c"\necho "unknown command" >&2\nexit 1\n'


@pytest.mark.long
def test_a_tmux_that_is_too_old_or_missing_is_named_whatever_is_asked(make, tmp_path):
    """T20: and nothing is believed to have died."""
    p = make(DEMO.format("a"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tmux").write_text(OLD_TMUX)
    (tmp_path / "bin" / "tmux").chmod(0o700)
    old = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    (tmp_path / "none").mkdir()
    none = {"PATH": f"{tmp_path}/none"}
    for env, word in ((old, "too old"), (none, "not installed")):
        assert word in p.agents("up", code=1, env=env)
        assert word in p.agents("status", env=env)
        assert p.json("status", env=env)["agents"][0]["state"] == "UNKNOWN"
        assert "fail  tmux" in p.agents("doctor", code=1, env=env)


def test_an_override_that_comes_too_late_says_so_and_a_restart_takes_it(make):
    """R133, T13: for one invocation, whichever verb starts the agent."""
    p = make(DEMO.format("a-b") + 'model = "of the file"\n' + DEMO.format("c") + "enabled = false\n")
    own = {"AGENT_MODEL_a_b": "mine", "AGENT_MODEL_c": "x", "AGENT_MODEL_nobody": "x"}
    p.agents("up", "a-b")
    said = p.agents("up", "a-b", env=own, code=None)
    for name in ("a_b has no effect: a-b was running", "c has no effect", "nobody has no effect"):
        assert f"AGENT_MODEL_{name}" in said
    p.agents("restart", "a-b", env=own)
    assert '"mine"' in (p.log_dir / "state" / "runs" / f"{p.prefix}a-b.json").read_text()
    p.agents("restart", "a-b")
    assert '"of the file"' in (p.log_dir / "state" / "runs" / f"{p.prefix}a-b.json").read_text()


def test_the_watchdog_is_started_and_restarted_by_its_name(make):
    """T14: as it is stopped by it."""
    p = make(DEMO.format("a"))
    p.agents("up", "watchdog")
    first = p.json("status")["watchdog"]
    assert first["state"] == "running"
    assert not p.pid("a")
    p.agents("restart", "watchdog")
    assert p.json("status")["watchdog"]["pid"] not in {None, first["pid"]}


def test_a_task_that_fails_is_told_with_its_code(make):
    """T29."""
    p = make(
        '[backend.x]\nprompt_delivery = "exec"\nbin = "exit 3"\n' + DEMO.format("t").replace("demo", "x")
    )
    p.write(p.config.read_text().removeprefix(p.head).replace('"persistent"', '"task"'))
    assert "exited with 3" in p.agents("up", code=1)
    until(lambda: "exited with 3" in p.row("t")["reason"])


def test_a_strangers_session_of_our_name_is_left_alone_and_told(make):
    """T23: by whatever verb would start there."""
    p = make(DEMO.format("a") + DEMO.format("b"))
    p.agents("up", "b")
    p.tmux("new-session", "-d", "-s", f"{p.prefix}a", "sleep 1000")
    pid = p.pid("a")
    for words in (("up", "a"), ("up", "a", "--no-wait"), ("restart", "a"), ("restart", "a", "--no-wait")):
        said = p.agents(*words, code=1)
        assert "a session of this name is not ours" in said
        assert "not started" in said
    p.agents("down")
    assert p.pid("a") == pid


def test_a_kickoff_too_long_for_a_command_line_is_announced(make):
    """T26."""
    p = make(DEMO.format("a").replace("demo", "scripted") + 'prompt_file = "long.md"\n')
    (p.root / "long.md").write_text("x" * 130_000)
    assert "a: its kickoff has 130 kB" in verb(p.config, "up", "a", "--no-wait")[1]


def test_an_up_that_cannot_tell_the_phase_says_so_and_is_not_fine(make):
    """T52: a position nobody can read starts no loop agent, and the others all the same."""
    loop = '[loop]\nkickoff_template = "k.md"\nphases = [{ id = "p", plan = "p.md", status = "S.md" }]\n'
    worker = '[[agent]]\nname = "w"\nkind = "loop"\nrole = "r"\nbackend = "demo"\n'
    p = make(worker + DEMO.format("a") + loop)
    (p.root / "prompts").mkdir()
    for name in ("k.md", "p.md", "prompts/r.md"):
        (p.root / name).write_text("go")
    state = p.log_dir / "state"
    state.mkdir(parents=True)
    (state / "phase-idx").write_text("garbage\n")
    said = p.agents("up", "w", "a", code=1)
    assert "phase-idx holds 'garbage'" in said
    assert "fault of this program" not in said
    assert p.pid("a")
    p.agents("phase", "set", "p")
    p.agents("up", "w")
    assert p.pid("w")
