"""Real git, real children: bursts, rewrites, remotes that fail or hang; nothing of the repository is run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from fleet.core.loop.decide_loop import LoopDecision, decide_loop
from fleet.core.loop.loop_case import GitView, LoopCase
from fleet.core.model import Gate, Handoff
from fleet.host import git
from fleet.host.children import Jobs, child_env
from fleet.host.clock import RealClock
from fleet.host.clone import CloneError, clone_command, found, make_clone
from fleet.host.disk import RealDisk
from fleet.ports import Host
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.world import World
from fleet.times.moment import Moment
from tests.tmux.project import until
from tests.unit.loops import change, fleet, phase

WHO = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


ODD = ("a b", "$(touch x) `y`", "ünïcødé 漢字", "tab\tand  spaces", "#{pane_id} %H \\n", "-- --dash")


def run(where, *words, stdin=None):
    env = {**child_env(os.environ), **WHO}
    done = subprocess.run(
        ["git", "-C", str(where), *words], capture_output=True, env=env, input=stdin, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def commit(where, subject, **files):
    for name, text in files.items():
        path = Path(where) / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run(where, "add", "-A")
    run(where, "commit", "-q", "--allow-empty", "-m", subject)
    return run(where, "rev-parse", "HEAD")


@pytest.fixture
def repos(tmp_path):
    """A bare origin, the builder's clone and the adversary's."""
    origin, builder, adversary = tmp_path / "origin.git", tmp_path / "builder", tmp_path / "adversary"
    run(tmp_path, "init", "-q", "--bare", "-b", "main", str(origin))
    run(tmp_path, "clone", "-q", str(origin), str(builder))
    commit(builder, "start", a_md="x")
    run(builder, "push", "-q", "origin", "HEAD:main")
    run(tmp_path, "clone", "-q", str(origin), str(adversary))
    return origin, builder, adversary


class Watcher:
    """A loop keeper without a fleet: what it would tell whom."""

    def __init__(self, root, builder, **handoff):
        spec = Handoff(
            repo=str(builder),
            claim_pings=("adversary",),
            review_pings=("builder",),
            state_subdir="docs",
            **handoff,
        )
        self.fleet = fleet("p1", "p2", handoff=spec)
        self.fleet = change(
            self.fleet,
            project_dir=str(root),
            log_dir=f"{root}/.ao",
            watchdog=change(self.fleet.watchdog, signal_interval=0.05),
        )
        (Path(root) / ".ao" / "state").mkdir(parents=True, exist_ok=True)
        self.told = {}
        self.jobs = None
        self.boot()

    def boot(self):
        """A new watchdog over the same disk."""
        self.close()
        disk = RealDisk()
        world = World(
            tmux=None, processes=None, clock=RealClock(), disk=disk, host=Host(), servers=None,
            locks=SimpleNamespace(state=contextlib.nullcontext), http=None, draw=lambda: "0" * 32,
        )  # fmt: skip
        self.jobs = Jobs(time.monotonic, disk, f"{self.fleet.log_dir}/state/jobs")
        self.house = House(world, self.fleet.log_dir)
        self.keeper = LoopKeeper(world, self.house, self.jobs)

    def look(self) -> LoopDecision:
        loop, memory = self.fleet.loop, self.keeper.recall()
        seen = self.keeper.look(self.fleet, loop, alive=())
        now = Moment(time.monotonic(), time.time())
        decision = decide_loop(LoopCase(self.fleet, loop, memory, seen, now))
        self.keeper.keep(decision)
        for effect in decision.effects:
            self.keeper.do(self.fleet, loop, effect)
        for agent, message in decision.messages:
            self.told.setdefault((agent, message.id), message)
        return decision

    def see(self, tip):
        """Look until that commit has been looked through."""
        until(lambda: (self.look(), self.keeper.memory.tip == tip)[1])

    def kinds(self):
        return sorted(p.about for p in self.told.values())

    def events(self):
        path = Path(self.fleet.log_dir) / "events.jsonl"
        import json

        return [json.loads(line)["type"] for line in path.read_text().splitlines()] if path.exists() else []

    def close(self):
        if self.jobs:
            self.jobs.close()


@pytest.fixture
def watch(tmp_path):
    made = []

    def build(repo, **handoff):
        made.append(Watcher(tmp_path, repo, **handoff))
        return made[-1]

    yield build
    for one in made:
        one.close()


# --- the bus ----------------------------------------------------------------------------------------


def test_claims_and_reviews_on_the_remote_wake_their_sides(repos, watch):
    """R119-R121: what the other clone pushed is seen here, once."""
    _, builder, adversary = repos
    w = watch(builder)
    w.look()
    run(adversary, "pull", "-q")
    commit(adversary, "review(p1): FAIL")
    tip = commit(adversary, "claim(p1): odd, but it counts")
    run(adversary, "push", "-q", "origin", "HEAD:main")
    w.see(tip)
    assert w.kinds() == ["claim", "review"]
    for _ in range(3):
        w.look()
    assert len(w.told) == 2


def test_commits_made_while_nobody_watched_are_told_once(repos, watch):
    """T60, I39."""
    _, builder, _ = repos
    w = watch(builder)
    w.look()
    w.close()
    commit(builder, "claim(p1): one")
    tip = commit(builder, "claim(p1): two")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.boot()
    w.see(tip)
    (ping,) = w.told.values()
    assert "2 new claims" in ping.text
    assert tip[:12] in ping.text
    w.boot()
    w.look()
    assert len(w.told) == 1


@pytest.mark.long
def test_a_burst_of_ten_thousand_commits_is_one_ping_with_their_number(repos, watch):
    """Bounded, in a child, nothing lost."""
    _, builder, _ = repos
    w = watch(builder)
    w.look()
    stream = []
    for number in range(10_000):
        subject = f"claim(p1): {number}" if number % 10 == 0 else f"fix: {number}"
        parent = "from refs/heads/main^0\n" if number == 0 else ""
        stream.append(
            f"commit refs/heads/main\ncommitter t <t@t> {1_700_000_000 + number} +0000\n"
            f"data {len(subject)}\n{subject}\n{parent}"
        )
    run(builder, "fast-import", "--quiet", stdin="".join(stream).encode())
    run(builder, "push", "-q", "origin", "main:main")
    w.see(run(builder, "rev-parse", "main"))
    (ping,) = w.told.values()
    assert "1000 new claims" in ping.text


def test_rewritten_history_tells_only_what_is_new(repos, watch):
    """T60: re-baselined and traced; nothing twice, nothing lost."""
    _, builder, _ = repos
    w = watch(builder)
    w.look()
    commit(builder, "claim(p1): one", a_md="1")
    old = commit(builder, "claim(p1): two", b_md="2")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.see(old)
    assert len(w.told) == 1
    run(
        builder,
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--date=2020-01-01T00:00:00Z",
        "-m",
        "claim(p1): two, said anew",
    )
    tip = commit(builder, "claim(p1): three", c_md="3")
    run(builder, "push", "-q", "--force", "origin", "HEAD:main")
    w.see(tip)
    assert len(w.told) == 2
    assert "2 new claims" in list(w.told.values())[-1].text
    assert "handoff.rebaselined" in w.events()


def test_a_rebase_alone_tells_nobody_anything(repos, watch):
    _, builder, _ = repos
    w = watch(builder)
    base = run(builder, "rev-parse", "HEAD")
    w.look()
    old = commit(builder, "claim(p1): one", z_md="1")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.see(old)
    run(builder, "checkout", "-q", "-b", "side", base)
    commit(builder, "fix: before it", y_md="1")
    run(builder, "cherry-pick", old)
    tip = run(builder, "rev-parse", "HEAD")
    run(builder, "push", "-q", "--force", "origin", "HEAD:main")
    w.see(tip)
    assert len(w.told) == 1


def test_a_base_that_is_gone_is_a_new_baseline(repos, watch):
    _, builder, _ = repos
    w = watch(builder)
    w.look()
    w.keeper.memory = change(w.keeper.memory, tip="d" * 40)
    tip = commit(builder, "claim(p1): x")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.see(tip)
    assert not w.told
    assert "handoff.rebaselined" in w.events()


def test_a_held_index_lock_stops_nothing(repos, watch):
    _, builder, adversary = repos
    w = watch(builder)
    w.look()
    (builder / ".git" / "index.lock").write_text("", encoding="utf-8")
    run(adversary, "pull", "-q")
    tip = commit(adversary, "review(p1): PASS")
    run(adversary, "push", "-q", "origin", "HEAD:main")
    w.see(tip)
    assert w.kinds() == ["review"]
    assert (builder / ".git" / "index.lock").exists()


def test_without_a_remote_the_local_branch_is_watched(tmp_path, watch):
    """T59."""
    lone = tmp_path / "lone"
    run(tmp_path, "init", "-q", "-b", "work", str(lone))
    w = watch(lone)
    w.look()
    tip = commit(lone, "claim(p1): in an empty repository")
    w.see(tip)
    assert w.kinds() == ["claim"]
    assert "handoff.fetch_failed" not in w.events()


def test_a_missing_remote_is_said_once_and_the_known_refs_are_used(repos, watch):
    """T59: the last known refs, logged once per change."""
    origin, builder, _ = repos
    w = watch(builder)
    w.look()
    origin.rename(origin.with_name("moved.git"))
    until(lambda: (w.look(), "handoff.fetch_failed" in w.events())[1])
    for _ in range(5):
        w.look()
        time.sleep(0.02)
    assert w.events().count("handoff.fetch_failed") == 1
    origin.with_name("moved.git").rename(origin)
    until(lambda: (w.look(), "handoff.fetch_recovered" in w.events())[1])


def test_a_fetch_that_hangs_delays_nobody_and_is_ended(repos, watch, monkeypatch):
    """Own timeout, outside the tick, its whole group."""
    _, builder, _ = repos
    run(builder, "remote", "set-url", "origin", "ssh://nobody@nowhere.invalid/x.git")
    monkeypatch.setenv("GIT_SSH_COMMAND", "sh -c 'sleep 1000; :' ")
    monkeypatch.setattr(git, "FETCH_TIMEOUT_S", 0.4)
    w = watch(builder)
    plan = w.look()
    assert "fetch" in w.jobs.keys()  # noqa: SIM118 (a port, not a dict)
    children = w.jobs.pids()
    tip = commit(builder, "claim(p1): while it hangs")
    run(builder, "update-ref", "refs/remotes/origin/main", tip)
    w.see(tip)
    assert w.kinds() == ["claim"]
    until(lambda: (w.look(), "handoff.fetch_failed" in w.events())[1])
    assert plan is not None
    until(lambda: not any(_alive(pid) for pid in children))


def test_a_branch_may_be_chosen(repos, watch):
    _, builder, _ = repos
    w = watch(builder, branch="dev")
    w.look()
    run(builder, "checkout", "-q", "-b", "dev")
    tip = commit(builder, "claim(p1): on dev")
    run(builder, "push", "-q", "origin", "dev")
    w.see(tip)
    commit(builder, "claim(p1): elsewhere")
    run(builder, "push", "-q", "origin", "HEAD:main")
    for _ in range(4):
        w.look()
        time.sleep(0.05)
    assert len(w.told) <= 1


def test_an_inbox_is_told_once_whichever_tree_shows_it_first(repos, watch):
    """T64: both trees, by content."""
    _, builder, adversary = repos
    w = watch(builder, inboxes=("ADVERSARY-INBOX.md", "BUILDER-INBOX.md"))
    until(
        lambda: (
            w.look(),
            all(i.remote is not None for i in w.keeper.memory.inboxes) and w.keeper.memory.inboxes,
        )[1]
    )
    run(adversary, "pull", "-q")
    tip = commit(adversary, "note", **{"docs__BUILDER-INBOX_md": "please look at x\n"})
    run(adversary, "push", "-q", "origin", "HEAD:main")
    w.see(tip)
    until(lambda: (w.look(), w.told)[1])
    run(builder, "pull", "-q")
    for _ in range(4):
        w.look()
        time.sleep(0.05)
    assert [(agent, m.about) for (agent, _), m in w.told.items()] == [("builder", "inbox")]
    (builder / "docs" / "ADVERSARY-INBOX.md").write_text("an answer", encoding="utf-8")
    until(lambda: (w.look(), len(w.told) == 2)[1])
    assert "an answer" not in "".join(p.text for p in w.told.values())


# --- what is read ------------------------------------------------------------------------------------


def test_refs_are_read_where_git_keeps_them(tmp_path, repos):
    _, builder, _ = repos
    refs = git.Refs(RealDisk())
    head = run(builder, "rev-parse", "HEAD")
    assert refs.view(str(builder), "").tip == head
    run(builder, "pack-refs", "--all")
    assert refs.view(str(builder), "").tip == head
    assert refs.view(str(builder), "").head == head
    moved = commit(builder, "more")
    assert refs.view(str(builder), "").head == moved
    assert refs.view(str(builder), "").tip == head
    run(builder, "checkout", "-q", "--detach", head)
    assert refs.view(str(builder), "").head == head
    run(builder, "worktree", "add", "-q", str(tmp_path / "tree"), moved)
    assert refs.view(str(tmp_path / "tree"), "").head == moved
    assert refs.view(str(tmp_path / "tree"), "").tip == head
    (tmp_path / "tree" / "sub").mkdir()
    assert refs.view(str(tmp_path / "tree" / "sub"), "").head == moved
    (tmp_path / "link").symlink_to(builder)
    assert refs.view(os.path.realpath(tmp_path / "link"), "").head == head
    assert refs.view(str(tmp_path / "nowhere"), "") is None
    assert refs.view(str(tmp_path), "") == GitView()
    assert refs.view(str(builder), "no-such-branch").tip == ""


def test_histories_agree_with_a_git_library(repos):
    """An independent reader sees the same commits."""
    library = pytest.importorskip("git")
    _, builder, _ = repos
    base = run(builder, "rev-parse", "HEAD")
    for number in range(5):
        commit(builder, f"fix: {number} \u00e9\u4e16 \x1b[31m")
    tip = run(builder, "rev-parse", "HEAD")
    out = subprocess.run(git.history_command(str(builder), base, tip), capture_output=True, check=True).stdout
    mine = [(c.hash, c.subject, c.at) for c in git.parse_history(base, tip, 0, out).commits]
    repo = library.Repo(builder)
    try:
        theirs = [(c.hexsha, c.summary, c.authored_date) for c in repo.iter_commits(f"{base}..{tip}")]
    finally:
        repo.close()
    assert mine == theirs


def test_no_call_runs_hooks_or_a_file_system_monitor(repos, watch, tmp_path):
    """SEC-9. The control shows that the bait would be taken."""
    _, builder, adversary = repos
    canary = tmp_path / "canary"
    bait = f"#!/bin/sh\necho $0 >> {canary}\n"
    hooks = builder / ".git" / "hooks"
    for name in ("reference-transaction", "post-checkout", "post-merge", "pre-auto-gc", "fsmonitor"):
        (hooks / name).write_text(bait, encoding="utf-8")
        (hooks / name).chmod(0o755)
    run(builder, "config", "core.fsmonitor", str(hooks / "fsmonitor"))
    run(builder, "config", "gpg.program", str(hooks / "fsmonitor"))
    run(builder, "config", "log.showSignature", "true")
    run(builder, "status")
    run(builder, "update-ref", "refs/heads/bait", "HEAD")
    assert canary.exists()
    canary.unlink()
    w = watch(builder, inboxes=("A.md", "B.md"))
    w.look()
    run(adversary, "pull", "-q")
    tip = commit(adversary, "claim(p1): x", A_md="hello")
    run(adversary, "push", "-q", "origin", "HEAD:main")
    w.see(tip)
    subprocess.run(git.status_command(str(builder)), check=True, env={**os.environ, **git.ENV})
    subprocess.run(git.since_command(str(builder), "", tip), check=True, env={**os.environ, **git.ENV})
    assert not canary.exists()


def test_a_clean_work_tree_may_hold_our_own_directory(repos):
    _, builder, _ = repos
    state = builder / ".ao-state"
    state.mkdir()
    (state / "x").write_text("", encoding="utf-8")

    def shown(exclude):
        return subprocess.run(
            git.status_command(str(builder), exclude), capture_output=True, check=True
        ).stdout

    assert shown("") != b""
    assert shown(str(state)) == b""
    assert shown("/elsewhere") != b""


# --- gates -------------------------------------------------------------------------------------------


def gated(w, *gates):
    w.fleet = change(w.fleet, loop=change(w.fleet.loop, phases=(phase("p1", gates=gates), phase("p2"))))
    for name in ("plans/p2.md", "kickoff.md", "roles/builder.md", "roles/adversary.md"):
        path = Path(w.fleet.project_dir) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    loop = change(
        w.fleet.loop,
        kickoff_template=f"{w.fleet.project_dir}/kickoff.md",
        roles_dir=f"{w.fleet.project_dir}/roles",
    )
    w.fleet = change(w.fleet, loop=loop)


def place_of(w):
    return PhaseBook(w.house.store, contextlib.nullcontext, w.fleet.loop.state_file).read().place


def test_gates_that_pass_fail_and_hang(repos, watch):
    """In order, outside the tick, once a commit; a hanging one is ended with its group and logged."""
    _, builder, _ = repos
    w = watch(builder)
    marker = builder / "ran"
    gated(w, Gate(run="echo fine"), Gate(run=f"echo x >> {marker}; sleep 1000 & sleep 1000", timeout=0.5))
    commit(builder, "status", **{"docs__STATUS-p1_md": "## DONE\nall of it\n", "_gitignore": "ran"})
    until(lambda: (w.look(), any(k == "gate" for k in w.kinds()))[1])
    for _ in range(5):
        w.look()
        time.sleep(0.02)
    assert place_of(w).id == "p1"
    assert marker.read_text() == "x\n", "once for this commit"
    (ping,) = w.told.values()
    assert "gate 2 of 2 (run)" in ping.text
    logs = sorted((Path(w.fleet.log_dir) / "logs" / "gates").iterdir())
    assert [log.read_text() for log in logs] == ["fine\n", ""]
    assert str(logs[1]) in ping.text
    assert logs[0].stat().st_mode & 0o777 == 0o600
    gated(w, Gate(run="echo fine"), Gate(run="true"))
    until(lambda: (w.look(), place_of(w).id == "p2")[1])


def test_gates_run_in_a_plain_directory_too(tmp_path, watch):
    """Without commits the text of the status file is what they are kept under."""
    plain = tmp_path / "plain"
    (plain / "docs").mkdir(parents=True)
    (plain / "docs" / "STATUS-p1.md").write_text("## DONE\nall of it\n", encoding="utf-8")
    w = watch(plain)
    gated(w, Gate(run="test -e passes"))
    until(lambda: (w.look(), w.kinds() == ["gate"])[1])
    (plain / "passes").write_text("", encoding="utf-8")
    (plain / "docs" / "STATUS-p1.md").write_text("## DONE\nall of it, really\n", encoding="utf-8")
    until(lambda: (w.look(), place_of(w).id == "p2")[1])


def test_a_clean_gate_passes_once_the_tree_is_clean(repos, watch):
    _, builder, _ = repos
    w = watch(builder)
    gated(w, Gate(clean=True))
    commit(builder, "status", **{"docs__STATUS-p1_md": "## DONE\nall of it\n"})
    (builder / "forgotten").write_text("x", encoding="utf-8")
    until(lambda: (w.look(), w.kinds() == ["gate"])[1])
    assert place_of(w).id == "p1"
    commit(builder, "fix: forgotten")
    until(lambda: (w.look(), place_of(w).id == "p2")[1])


def test_a_review_of_an_earlier_phase_does_not_pass_this_one(repos, watch):
    _, builder, _ = repos
    w = watch(builder)
    commit(builder, "review(p0): PASS")
    run(builder, "push", "-q", "origin", "HEAD:main")
    gated(w, Gate(review="PASS"))
    until(lambda: (w.look(), place_of(w))[1])
    commit(builder, "status", **{"docs__STATUS-p1_md": "## DONE\nall of it\n"})
    run(builder, "push", "-q", "origin", "HEAD:main")
    until(lambda: (w.look(), "gate" in w.kinds())[1])
    assert place_of(w).id == "p1"
    commit(builder, "claim(p1): x")
    commit(builder, "review(p1): PASS")
    run(builder, "push", "-q", "origin", "HEAD:main")
    until(lambda: (w.look(), place_of(w).id == "p2")[1])


def test_a_ratchet_remembers_what_was_accepted(repos, watch):
    _, builder, _ = repos
    w = watch(builder)
    gated(w, Gate(ratchet="echo 1; cat value", metric="coverage"))
    commit(builder, "status", **{"docs__STATUS-p1_md": "## DONE\nall of it\n", "value": "80\n"})
    until(lambda: (w.look(), place_of(w) and place_of(w).id == "p2")[1])
    assert place_of(w).ratchets == (("coverage", 80.0),)


# --- children ----------------------------------------------------------------------------------------


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_what_a_child_leaves_running_ends_with_it(tmp_path):
    jobs = Jobs(time.monotonic)
    pids = tmp_path / "pids"
    command = f"sleep 1000 & echo $! > {pids}; (trap '' TERM; sleep 1000) & echo $! >> {pids}; echo out"
    assert (
        jobs.start("x", ["/bin/sh", "-c", command], cwd=str(tmp_path), timeout=60, log=str(tmp_path / "log"))
        == ""
    )
    (ended,) = until(jobs.poll)
    assert (ended.code, ended.output) == (0, b"out\n")
    until(lambda: not any(_alive(int(p)) for p in pids.read_text().split()))
    jobs.close()


def test_a_child_that_ignores_the_request_to_end_is_forced(tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.host.children.KILL_AFTER_S", 0.1)
    jobs = Jobs(time.monotonic)
    jobs.start(
        "x", ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], cwd=str(tmp_path), timeout=0.1
    )
    (ended,) = until(jobs.poll)
    assert (ended.code, ended.why) == (None, "its time limit")
    jobs.close()


def test_a_cancelled_child_is_never_heard_of_and_its_name_is_free(tmp_path):
    jobs = Jobs(time.monotonic)
    jobs.start("x", ["sleep", "1000"], cwd=str(tmp_path), timeout=60)
    (first,) = jobs.pids()
    jobs.cancel("x")
    assert jobs.keys() == frozenset()
    jobs.start("x", ["true"], cwd=str(tmp_path), timeout=60)
    (ended,) = until(jobs.poll)
    assert ended.code == 0
    until(lambda: (jobs.poll(), not _alive(first))[1])
    jobs.close()


def test_too_much_output_ends_a_child(tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.host.children.OUTPUT_CAP", 10_000)
    jobs = Jobs(time.monotonic)
    jobs.start("x", ["yes"], cwd=str(tmp_path), timeout=60)
    (ended,) = until(jobs.poll)
    assert ended.why == "too much output"
    jobs.close()


def test_a_child_that_cannot_be_started_says_why(tmp_path):
    jobs = Jobs(time.monotonic)
    assert "No such file" in jobs.start("x", ["/no/such/program"], cwd=str(tmp_path), timeout=1)
    assert "No such file" in jobs.start("x", ["true"], cwd=str(tmp_path / "nowhere"), timeout=1)
    assert jobs.keys() == frozenset()


def test_children_of_a_killed_supervisor_are_ended_by_the_next_one(tmp_path):
    code = (
        "import sys, time; from fleet.host.children import Jobs; from fleet.host.disk import RealDisk\n"
        f"j = Jobs(time.monotonic, RealDisk(), {str(tmp_path / 'jobs')!r})\n"
        f"j.start('g', ['sleep', '1000'], cwd='/', timeout=999, log={str(tmp_path / 'log')!r})\n"
        "print(j.pids()[0], flush=True); time.sleep(1000)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert _alive(child)
    Jobs(time.monotonic, RealDisk(), str(tmp_path / "jobs")).close()
    until(lambda: not _alive(child))
    assert list((tmp_path / "jobs").iterdir()) == []


def test_what_steers_git_elsewhere_does_not_reach_a_child():
    env = {
        "GIT_DIR": "/x",
        "GIT_INDEX_FILE": "y",
        "AGENT_MODEL_a": "z",
        "TMUX": "t",
        "PATH": "/bin",
        "GIT_SSH": "s",
    }
    assert child_env(env) == {"PATH": "/bin", "GIT_SSH": "s"}


# --- clones ------------------------------------------------------------------------------------------


def test_a_clone_is_made_once_and_an_existing_directory_is_never_touched(repos, tmp_path):
    origin, _, _ = repos
    target = tmp_path / "deep" / "clone"
    make_clone(str(origin), str(target), str(tmp_path / "repos"))
    assert run(target, "log", "--format=%s") == "start"
    (target / "mine").write_text("x", encoding="utf-8")
    make_clone("/no/such/thing", str(target), str(tmp_path / "repos"))
    assert (target / "mine").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    make_clone(str(origin), str(empty), str(tmp_path / "repos"))
    assert list(empty.iterdir()) == []


def test_a_clone_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(CloneError, match="does not exist"):
        make_clone(str(tmp_path / "nothing"), str(tmp_path / "w" / "clone"), str(tmp_path / "repos"))
    assert list((tmp_path / "w").iterdir()) == []


def test_what_a_killed_clone_left_is_cleared_by_the_next(repos, tmp_path):
    origin, _, _ = repos
    half = tmp_path / "w" / ".clone.clone-dead"
    half.mkdir(parents=True)
    (half / "x").write_text("", encoding="utf-8")
    make_clone(str(origin), str(tmp_path / "w" / "clone"), str(tmp_path / "repos"))
    assert sorted(p.name for p in (tmp_path / "w").iterdir()) == ["clone"]


def test_a_plain_directory_becomes_one_shared_repository(tmp_path):
    plain = tmp_path / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub" / "a.txt").write_text("hello", encoding="utf-8")
    for name in ("one", "two"):
        make_clone(str(plain), str(tmp_path / name), str(tmp_path / "repos"))
    assert (tmp_path / "two" / "sub" / "a.txt").read_text() == "hello"
    commit(tmp_path / "one", "work", b_md="1")
    run(tmp_path / "one", "push", "-q")
    run(tmp_path / "two", "pull", "-q")
    assert (tmp_path / "two" / "b.md").exists()
    assert not (plain / ".git").exists()
    assert found(str(plain), str(tmp_path / "repos")).endswith(".git")


def test_two_makers_at_once_make_one_clone(repos, tmp_path):
    origin, _, _ = repos
    f = change(fleet(), log_dir=str(tmp_path))
    words = clone_command(f, change(f.agents[0], clone=str(origin), dir=str(tmp_path / "c")))
    makers = [subprocess.Popen(words, stdout=subprocess.PIPE, cwd="/") for _ in range(4)]
    assert [(m.wait(), m.stdout.read(), m.stdout.close())[0] for m in makers] == [0, 0, 0, 0]
    assert run(tmp_path / "c", "log", "--format=%s") == "start"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".c")] == []


def test_only_files_that_matter_wake_the_loop(repos, watch):
    """A build that writes thousands of files in the work tree must not keep the supervisor awake."""
    _, builder, _ = repos
    w = watch(builder, inboxes=("A.md", "B.md"))
    until(lambda: (w.look(), place_of(w))[1])
    paths = w.keeper.watch_paths(w.fleet.loop)
    assert f"{builder}/docs/STATUS-p1.md" in paths
    assert f"{builder}/A.md" in paths
    assert f"{builder}/.git/refs/remotes/origin/main" in paths
    assert f"{builder}/.git/refs/heads/main" in paths
    assert not any(os.path.isdir(p) for p in paths)


@pytest.mark.parametrize("seed", range(4))
def test_a_history_is_what_another_reader_of_git_says_it_is(tmp_path, seed):
    """GitPython over the same random repository: merges, odd subjects, equal dates."""
    import git as other

    rng = Random(seed)
    run(tmp_path, "init", "-q", "-b", "main")
    base = commit(tmp_path, "first")
    for n in range(12):
        if rng.random() < 0.25:
            run(tmp_path, "checkout", "-q", "-b", f"side{n}")
            commit(tmp_path, f"claim(side{n}): {rng.choice(ODD)}")
            run(tmp_path, "checkout", "-q", "main")
            run(tmp_path, "merge", "-q", "--no-ff", "-m", f"review(side{n}): merged", f"side{n}")
        commit(tmp_path, f"{rng.choice(['claim', 'review', 'note'])}(p{n}): {rng.choice(ODD)}")
    tip = run(tmp_path, "rev-parse", "HEAD")
    done = subprocess.run(git.history_command(str(tmp_path), base, tip), capture_output=True, check=False)
    ours = git.parse_history(base, tip, done.returncode, done.stdout)
    repo = other.Repo(tmp_path)
    try:
        theirs = {c.hexsha: str(c.summary) for c in repo.iter_commits(f"{base}..{tip}")}
    finally:
        repo.close()
    assert {c.hash: c.subject for c in ours.commits} == theirs
