"""What a loop stands on is checked before the night: its repository, its plans, where its clones push to."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.tmux.project import until

pytestmark = [pytest.mark.tmux, pytest.mark.long]

LOOP = """
[[agent]]
name = "builder"
kind = "loop"
role = "builder"
backend = "demo"
{agent}

[[agent]]
name = "adversary"
kind = "loop"
role = "builder"
backend = "demo"
{other}

[loop]
kickoff_template = "kickoff.md"
roles_dir = "."

[loop.handoff]
repo = "{repo}"
claim_pings = "adversary"

[[loop.phases]]
id = "p1"
plan = "{first}"
status = "STATUS-p1.md"

[[loop.phases]]
id = "p2"
plan = "{second}"
status = "STATUS-p2.md"
"""
CLONES = {"agent": 'dir = "work/b"\nclone = "."', "other": 'dir = "work/a"\nclone = "."', "repo": "work/b"}


def git(where, *words):
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    words = ("git", "-C", str(where), *who, *words)
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(p, **more):
    p.write(LOOP.format(**({"agent": "", "other": "", "first": "kickoff.md", "second": "kickoff.md"} | more)))


@pytest.fixture
def project(make):
    p = make()
    for name in ("kickoff.md", "builder.md"):
        (p.root / name).write_text("Go.\n")
    return p


@pytest.mark.parametrize(("repo", "says"), [("nowhere", "does not exist"), (".", "is no git repository")])
def test_a_handoff_repository_that_is_none_is_refused(project, repo, says):
    p = project
    write(p, repo=repo)
    for verb, code in (("validate", 2), ("doctor", 1), ("up", 2)):
        said = p.agents(verb, code=code)
        assert "loop.handoff.repo" in said, verb
        assert says in said, verb
        assert "agents.toml:" in said, verb
    assert p.tmux("list-sessions") == ""
    p.agents("status")
    p.agents("down")
    write(p, **CLONES)  # it is made by `up`
    p.agents("validate")


def test_a_plan_that_is_nowhere_is_an_error_in_any_phase(project):
    p = project
    git(p.root, "init", "-q")
    for key in ("first", "second"):
        write(p, repo=".", **{key: "plans/frist.md"})
        said = p.agents("validate", code=2)
        assert "plans/frist.md" in said
        assert f"loop.phases[{int(key == 'second')}].plan" in said
        assert "agents.toml:" in said
    (p.root / "plans").mkdir()
    (p.root / "plans" / "frist.md").write_text("It is here.\n")
    p.agents("validate")
    # a plan that only the clone to come holds: of a bare repository nobody can tell by its files
    git(p.root, "clone", "-q", "--bare", ".", "bare.git")
    write(p, **{k: v.replace('"."', '"bare.git"') for k, v in CLONES.items()}, first="only-there.md")
    said = p.agents("validate", code=None)
    assert "warning" in said or "fine" in said
    assert p.json("validate")["warnings"]


def test_clones_of_a_work_tree_can_push_and_the_others_see_it(project):
    p = project
    write(p, **CLONES)
    (p.root / ".gitignore").write_text(".ao-state/\nwork/\n")
    git(p.root, "init", "-q", "-b", "trunk")
    git(p.root, "add", "-A")
    git(p.root, "commit", "-qm", "start")
    p.agents("up")
    (p.root / "work" / "b" / "made").write_text("x")
    git(p.root / "work" / "b", "add", "-A")
    git(p.root / "work" / "b", "commit", "-qm", "claim(p1): made")
    git(p.root / "work" / "b", "push", "-q")
    until(lambda: p.events("handoff.claimed"))
    git(p.root / "work" / "a", "pull", "-q")
    assert (p.root / "work" / "a" / "made").exists()
    assert git(p.root, "status", "--porcelain") == ""
    shared = git(p.root / "work" / "a", "remote", "get-url", "origin")
    git(p.root, "pull", "-q", shared)
    assert (p.root / "made").exists()


def test_a_work_tree_that_takes_pushes_is_cloned_as_it_is_and_a_plain_directory_without_our_state(project):
    p = project
    write(p, **CLONES)
    p.agents("up")
    held = git(p.root / "work" / "b", "ls-files").split()
    assert "kickoff.md" in held
    assert not [name for name in held if name.startswith(".ao-state")]
    p.agents("down")

    for folder in (p.root / "work", p.log_dir):
        shutil.rmtree(folder)
    (p.root / ".gitignore").write_text(".ao-state/\nwork/\n")
    git(p.root, "init", "-q")
    git(p.root, "config", "receive.denyCurrentBranch", "updateInstead")
    git(p.root, "add", "-A")
    git(p.root, "commit", "-qm", "start")
    p.agents("up")
    assert git(p.root / "work" / "b", "remote", "get-url", "origin") == str(p.root)
