"""A whole fleet through agents.py: it comes up, is healed, obeys, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from tests.tmux.project import ENGINE, Project, until

pytestmark = pytest.mark.tmux

TWO = """
[[agent]]
name = "a"
kind = "persistent"
backend = "demo"

[[agent]]
name = "b"
kind = "persistent"
backend = "demo"
enabled = false

[[service]]
name = "clock"
command = "while :; do date; sleep 1; done"
"""


@pytest.fixture
def make(tmp_path):
    made: list[Project] = []

    def build(text: str, name: str = "project", **more) -> Project:
        project = Project(tmp_path / name, text, **more)
        made.append(project)
        return project

    yield build
    for project in made:
        project.tear_down()


def scripted(project: Project, name: str, script: str, more: str = "") -> str:
    path = project.script(name, script)
    return (
        f'[[agent]]\nname = "{name}"\nkind = "persistent"\nbackend = "scripted"\n'
        f'prompt = "Begin."\nenv = {{ AO_SCRIPT = "{path}" }}\n{more}\n'
    )


def test_up_starts_what_is_enabled_and_down_leaves_nothing(make):
    """R136, R079, R098, R139, T34."""
    p = make(TWO)
    said = p.json("up")
    assert {r["name"]: r["ready"] for r in said["agents"]} == {"a": True, "clock": True}
    facts = p.json("status")
    assert facts["watchdog"]["state"] == "running"
    assert {r["name"]: r["state"] for r in facts["agents"]} == {"a": "RUNNING", "b": "STOPPED"}
    p.agents("down")
    assert p.tmux("list-sessions") == ""
    assert not p._carried()
    assert p.json("status")["watchdog"]["state"] == "stopped"


def test_up_is_use_or_create(make):
    """R137: a running session is left alone, never started twice."""
    p = make(TWO)
    p.agents("up")
    before = {n: p.row(n)["pid"] for n in ("a", "clock")}
    again = p.json("up")
    assert {r["result"] for r in again["agents"]} == {"was running"}
    assert {n: p.row(n)["pid"] for n in ("a", "clock")} == before


def test_up_by_name_starts_just_that_one_even_if_disabled(make):
    """R087, R138, T15."""
    p = make(TWO)
    p.agents("up", "b")
    assert p.row("b")["state"] == "RUNNING"
    assert p.row("a")["state"] == "STOPPED"
    assert p.json("status")["watchdog"]["state"] == "stopped"


def test_an_unknown_name_starts_nothing(make):
    p = make(TWO)
    said = p.agents("up", "a", "buildr", code=2)
    assert "buildr" in said
    assert not p.tmux("list-sessions")


def test_eight_ups_at_once_give_one_session_each(make):
    """T9: the server is the mutex; nobody is started twice."""
    p = make(TWO.replace("enabled = false", ""))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: p.agents("up", "--no-wait", code=None), range(8)))
    sessions = [s for s in p.tmux("list-sessions", "-F", "#{session_name}").split() if s.startswith(p.prefix)]
    assert sorted(sessions) == sorted(f"{p.prefix}{n}" for n in ("a", "b", "clock", "watchdog"))
    panes = p.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid}").split("\n")
    assert len([x for x in panes if x.startswith(p.prefix)]) == 4
    carried = {}
    for pid in p.tmux("list-panes", "-a", "-F", "#{pane_pid}").split():
        carried.setdefault(pid, 0)
    assert len(p._carried()) == 4


def test_a_killed_agent_is_healed_and_its_exit_is_on_record(make):
    """R089."""
    p = make(TWO)
    p.agents("up")
    old = p.row("a")["pid"]
    os.kill(old, signal.SIGKILL)
    until(lambda: p.row("a")["pid"] not in {old, None})
    assert "signal 9" in p.events("agent.died", "a")[0]["reason"]
    until(lambda: p.row("a")["restarts"] == 1)  # the pid is of now, the count of the watchdog's last view


def test_a_killed_session_and_a_killed_server_are_healed(make):
    """I33: all that is wanted comes back once; the watchdog outlives its server."""
    p = make(TWO)
    p.agents("up")
    p.tmux("kill-session", "-t", f"={p.prefix}a:")
    until(lambda: p.events("agent.healed", "a"))
    until(lambda: p.row("a")["state"] == "RUNNING")
    dog = p.json("status")["watchdog"]["pid"]
    p.tmux("kill-server")
    until(lambda: {p.row(n)["state"] for n in ("a", "clock")} == {"RUNNING"})
    assert p.json("status")["watchdog"]["pid"] == dog
    assert p.events("server.lost")


def test_down_of_one_is_remembered(make):
    """T32, I25: the watchdog does not fight the operator."""
    p = make(TWO)
    p.agents("up")
    p.agents("down", "a")
    ticks = p.json("status")["watchdog"]["last_tick"]
    until(lambda: (p.json("status")["watchdog"]["last_tick"] or 0) > ticks + 2)
    assert p.row("a")["state"] == "STOPPED"
    p.agents("up", "a")
    assert p.row("a")["state"] == "RUNNING"


def test_status_creates_nothing(make):
    """R141, T20."""
    p = make(TWO)
    assert p.json("status")["agents"][0]["state"] == "STOPPED"
    assert not p.log_dir.exists()
    assert not os.path.exists(f"/tmp/tmux-{os.getuid()}/{p.socket}")


def test_a_broken_pipe_is_no_traceback(make):
    """T19."""
    p = make(TWO)
    shell = f"'{sys.executable}' '{ENGINE}/agents.py' status --config '{p.config}' | head -1"
    words = ["bash", "-o", "pipefail", "-c", shell]
    done = subprocess.run(words, capture_output=True, text=True, env=p.env(), check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_the_callers_tmux_changes_nothing(make):
    p = make(TWO)
    p.agents("up", env={"TMUX": "/tmp/nowhere,1,0", "TMUX_PANE": "%9"})
    assert p.row("a")["state"] == "RUNNING"


def test_an_override_is_for_one_start_and_is_said(make):
    """R133, T13: and the watchdog never sees it."""
    p = make(TWO)
    done = subprocess.run(
        [sys.executable, str(ENGINE / "agents.py"), "up", "--config", str(p.config)],
        capture_output=True,
        text=True,
        env=p.env({"AGENT_MODEL_a": "other-model"}),
        check=False,
    )
    assert "other-model" in done.stderr
    assert p.row("a")["model"] == "other-model"
    assert "model" in p.row("a")["drift"]


def taken(p, name):
    """What it was told after its kickoff, at rest or, queued, at work."""
    return [m["text"] for m in p.received(name) if m["kind"] in {"message", "queued"}]


def test_messages_arrive_exactly_and_once(make):
    """I11: byte for byte, with the receipts to match."""
    p = make("")
    p.write(scripted(p, "one", "steps = [{ say = 'hello' }]"))
    p.agents("up")
    texts = ["plain words", "semi;colon;", "' and \" and $(x) `y` #{z} #(w)", "-n leading dash", "ünï ✓ 漢字"]
    for text in texts:
        assert p.json("send", "one", text)["ok"]
    assert taken(p, "one") == texts
    long = "\n".join(f"line {n} of a long message" for n in range(200))
    done = subprocess.run(
        [sys.executable, str(ENGINE / "agents.py"), "send", "one", "-", "--config", str(p.config)],
        input=long,
        text=True,
        capture_output=True,
        env=p.env(),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert taken(p, "one")[-1] == long


def test_a_message_works_without_a_watchdog_and_fails_honestly(make):
    p = make("")
    p.write(scripted(p, "one", "steps = [{ say = 'hello' }]"))
    p.agents("up", "one")
    assert p.json("send", "one", "alone")["ok"]
    p.agents("down", "one")
    said = p.json("send", "one", "nobody there", code=1)
    assert not said["ok"]
    assert "it is down" in said["receipts"]["one"]["text"]


def test_two_projects_side_by_side_never_meet(make):
    """R158: and one's down is not the other's."""
    one, two = make(TWO, "one"), make(TWO, "two")
    one.agents("up")
    two.agents("up")
    before = two.row("a")["pid"]
    one.agents("down")
    assert two.row("a")["pid"] == before
    assert two.json("status")["watchdog"]["state"] == "running"


def test_an_agent_that_can_never_start_is_fatal_and_the_fix_is_named(make):
    backend = '[backend.none]\nbin = "no-such-program-anywhere"\n'
    p = make(backend + '[[agent]]\nname = "x"\nkind = "persistent"\nbackend = "none"\n')
    said = p.agents("up", code=1)
    assert "no-such-program-anywhere" in said
    until(lambda: p.row("x")["state"] == "FATAL")


def test_a_crash_loop_is_slowed_down(make):
    """I21: the first death at once, then later and later."""
    p = make("")
    p.write(scripted(p, "one", "steps = [{ say = 'x' }, { sleep = 0.5 }, { exit = 3 }]"))
    p.agents("up", code=None)
    until(lambda: len(p.events("agent.died", "one")) >= 2)
    row = until(lambda: (r := p.row("one"))["detail"] == "BACKOFF" and r)
    assert row["state"] == "DEAD"
    p.agents("reset", "one")
    until(lambda: len(p.events("agent.started", "one")) >= 3)


def test_a_limited_agent_is_left_alone_until_its_window_is_over(make):
    """R151 to R153, I5."""
    p = make("")
    banner = "You have hit your usage limit · resets {reset}"
    p.write(scripted(p, "one", f'steps = [{{ limit = "{banner}", for = 4 }}]'))
    p.agents("up")
    armed = until(lambda: p.events("agent.limited", "one"))[0]
    until(lambda: p.events("agent.resumed", "one"))
    assert len(p.events("agent.started", "one")) == 1
    probes = [m for m in p.received("one") if m["kind"] == "message"]
    assert len(probes) == 1
    reset = datetime.fromisoformat(armed["reason"].rpartition("resets ")[2])
    assert probes[0]["at"] >= reset.timestamp()


def test_a_wedged_agent_is_restarted(make):
    """R090."""
    p = make("")
    p.write(scripted(p, "one", '[[on]]\nmessage = "break"\nsteps = [{ fatal = true }]'))
    p.agents("up")
    pid = p.row("one")["pid"]
    p.agents("send", "one", "break")
    until(lambda: p.events("agent.wedged", "one"))
    until(lambda: p.row("one")["pid"] not in {pid, None})


def test_an_idle_agent_is_rebooted_only_when_told_to_watch_for_stalls(make):
    """R093, R094."""
    p = make("")
    backend = "[backend.scripted]\nstall_idle = 1.5\n"
    calm = scripted(p, "calm", "steps = [{ say = 'x' }]", 'watch = "heal"')
    p.write(backend + calm + scripted(p, "one", "steps = [{ say = 'x' }]", 'watch = "heal+stall"'))
    p.agents("up")
    until(lambda: p.events("agent.stalled", "one"))
    assert not p.events("agent.stalled", "calm")


def test_a_waiting_agent_is_not_rebooted_before_its_time(make):
    """R095."""
    p = make("")
    backend = "[backend.scripted]\nstall_idle = 1.0\n"
    p.write(backend + scripted(p, "one", "steps = [{ waiting = 12, wake = false }]", 'watch = "heal+stall"'))
    p.agents("up")
    said = until(lambda: p.events("agent.waiting", "one"))
    told = until(lambda: [m for m in p.received("one") if "time you were waiting" in m["text"]])
    assert told[0]["at"] - said[0]["ts"] > 5
    assert not [e for e in p.events("agent.stalled", "one") if e["ts"] < told[0]["at"]]


def test_another_program_in_the_pane_is_noticed_by_what_really_runs(make):
    """R091, T41: not by a name on the screen."""
    p = make("")
    p.write(scripted(p, "one", '[[on]]\nmessage = "shell"\nsteps = [{ shell = true }]'))
    p.agents("up")
    pid = p.row("one")["pid"]
    p.agents("send", "one", "shell", code=None)
    until(lambda: p.events("agent.mismatched", "one"))
    until(lambda: p.row("one")["pid"] not in {pid, None})


def test_a_garbled_config_keeps_the_last_good_one(make):
    """T44, I36."""
    p = make(TWO)
    p.agents("up")
    good = p.config.read_text()
    p.config.write_text(good[: len(good) // 2] + "\n[[[")
    until(lambda: p.events("config.rejected"))
    pid = p.tmux("list-panes", "-t", f"={p.prefix}a:", "-F", "#{pane_pid}").strip()
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    p.config.write_text(good)
    until(lambda: p.events("config.recovered"))


def test_a_second_watchdog_exits_and_names_the_first(make):
    """T35, I27."""
    p = make(TWO)
    p.agents("up")
    pid = p.json("status")["watchdog"]["pid"]
    said = p.agents("watchdog", code=1)
    assert str(pid) in said


def test_a_killed_watchdog_comes_back_by_itself_and_one_that_was_taken_down_does_not(make):
    """I28: `pkill python` by an agent is no reason for a night without supervision."""
    p = make(TWO)
    p.agents("up")
    pid = p.json("status")["watchdog"]["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: p.json("status")["watchdog"]["pid"] not in {None, pid}, 60)
    until(lambda: p.json("status")["watchdog"]["state"] == "running")
    os.kill(p.row("a")["pid"], signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    assert len(p.events("watchdog.started")) == 2
    p.agents("down", "watchdog")
    assert f"{p.prefix}watchdog" not in p.tmux("list-sessions", "-F", "#{session_name}").split()


def test_a_killed_watchdog_is_brought_back_by_ensure(make):
    """REL-14, I28."""
    p = make(TWO)
    p.agents("up")
    p.kill_watchdog()
    until(lambda: p.json("status")["watchdog"]["state"] == "stopped")
    assert any("watchdog" in x for x in p.json("status")["problems"])
    assert p.agents("status", "--check", code=1)
    p.agents("ensure")
    until(lambda: p.json("status")["watchdog"]["state"] == "running")


@pytest.mark.long
def test_a_renamed_session_is_still_that_agents_for_everybody(make):
    """The name moved, the run did not: nobody calls it dead, doubles it or leaves it behind."""
    p = make(TWO)
    p.agents("up")
    pid = p.row("a")["pid"]
    p.tmux("rename-session", "-t", f"={p.prefix}a:", f"{p.prefix}other")
    assert (p.row("a")["state"], p.row("a")["pid"]) == ("RUNNING", pid)
    assert "not delivered" not in p.agents("send", "a", "hello")
    p.agents("up")
    names = p.tmux("list-sessions", "-F", "#{session_name}").split()
    assert f"{p.prefix}a" not in names
    p.agents("down", "a")
    until(lambda: p.row("a")["state"] == "STOPPED")
    assert f"{p.prefix}other" not in p.tmux("list-sessions", "-F", "#{session_name}").split()


def test_every_action_can_be_explained_and_decided_again(make):
    p = make(TWO)
    p.agents("up")
    os.kill(p.row("a")["pid"], signal.SIGKILL)
    until(lambda: p.events("agent.healed", "a"))
    facts = p.json("explain", "a")
    assert facts["rule"]
    assert facts["evidence"]
    bundle = min((p.log_dir / "state" / "bundles").glob("*-a.json"))
    assert p.json("replay", str(bundle))["same"]
