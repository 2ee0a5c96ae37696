"""Repositories whose refs are no files (reftable): git is asked, nobody waits, and no silence.

The git of many machines cannot make such a repository: AO_GIT names one that can (2.45 or newer). What an old
git must be told about is built by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fleet.host import git
from fleet.host.disk import RealDisk
from tests.tmux.project import until
from tests.tmux.test_git import commit, run, watch
from tests.tmux.test_loop import LOOP, make

__all__ = ["make", "watch"]
pytestmark = pytest.mark.tmux

CONFIG = """[core]
\trepositoryformatversion = 1
\tbare = false
[extensions]
\trefstorage = reftable
"""


def newer_git() -> str:
    """A git that knows reftable: the one in AO_GIT, or the one on PATH."""
    for path in (os.environ.get("AO_GIT", ""), shutil.which("git") or ""):
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout if path else ""
        version = re.search(r"(\d+)\.(\d+)", said)
        if version and (int(version[1]), int(version[2])) >= (2, 45):
            return path
    return ""


@pytest.fixture
def modern(monkeypatch, tmp_path):
    """A git with reftable, first on PATH."""
    path = newer_git()
    if not path:
        pytest.skip("no git 2.45 or newer: name one in AO_GIT")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return path


def by_hand(root: Path, config: str = CONFIG) -> Path:
    """What git 3 makes, as far as an older one can see."""
    dot = root / ".git"
    for name in ("objects", "refs", "reftable"):
        (dot / name).mkdir(parents=True)
    (dot / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (dot / "refs" / "heads").write_text("this repository uses the reftable format\n")
    (dot / "reftable" / "tables.list").write_text("0x000000000001-0x000000000001-0ff60861.ref\n")
    (dot / "config").write_text(config)
    return root


def test_only_an_answer_of_git_tells_what_such_a_repository_holds(tmp_path):
    repo = by_hand(tmp_path / "repo")
    part = repo / ".git" / "reftable" / "0x000000000001-0x000000000001-0ff60861.ref"
    part.touch()
    asked = []
    a, b = "a" * 40, "b" * 40

    def answer(code, text):
        def ask(where, words, stamp):
            asked.append((where, tuple(words), stamp))
            return code, text.encode()

        return git.Refs(RealDisk(), ask)

    view = answer(0, f"{a} HEAD\n{b} refs/remotes/origin/main\nwarning: x\n").view(str(repo), "")
    assert (view.ref, view.tip, view.head) == ("refs/remotes/origin/main", b, a)
    view = answer(0, f"{a} HEAD\n{b} refs/heads/work\n").view(str(repo), "work")
    assert (view.ref, view.tip) == ("refs/heads/work", b)
    view = answer(0, f"{a} HEAD\n").view(str(repo), "")
    assert (view.ref, view.tip, view.head) == ("HEAD", a, a)
    view = answer(0, f"{a} HEAD\n").view(str(repo), "work")
    assert (view.ref, view.tip) == ("", "")
    view = answer(1, "").view(str(repo), "")
    assert (view.ref, view.tip, view.head) == ("HEAD", "", "")
    for code, said in ((128, "fatal: no"), (None, ""), (1, "error: broken table")):
        with pytest.raises(OSError, match="only git can read"):
            answer(code, said).view(str(repo), "")
    part.unlink()
    with pytest.raises(OSError, match=f"only git can read.*{part}"):
        answer(1, "").view(str(repo), "")
    part.touch()
    before = asked[-1][2]
    table = repo / ".git" / "reftable" / "tables.list"
    (repo / "new").write_text("0x000000000001-0x000000000002-c60552b8.ref\n")
    (repo / "new").rename(table)
    (table.parent / "0x000000000001-0x000000000002-c60552b8.ref").touch()
    answer(1, "").view(str(repo), "")
    assert asked[-1][2] != before
    assert git.Refs(RealDisk()).watched_files(str(repo), "") == (str(table),)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (CONFIG, "only git can read"),
        ("[core]\n\tbare = false\n", "does not say where"),
        (CONFIG.replace("= 1", "= 0"), "does not say where"),
    ],
)
def test_a_repository_that_git_cannot_read_is_a_problem_and_never_silence(make, config, words):
    """The git here is too old, or the table is damaged: the fleet runs, and `status` says what is missing."""
    p = make(LOOP, "p1")
    shutil.rmtree(p.root / ".git")
    by_hand(p.root, config)
    p.agents("up", code=None)

    def told() -> bool:
        said = p.json("status", code=None)
        return any(words in problem and str(p.root) in problem for problem in said["problems"])

    until(told)
    assert words in p.agents("gate", "p1", code=1)


def test_every_look_is_answered_and_a_moved_ref_is_told(modern, tmp_path, watch):
    """A loop keeper over a real table: claims over an origin, a burst, and a linked work tree."""
    origin, builder = tmp_path / "origin.git", tmp_path / "builder"
    run(tmp_path, "init", "-q", "--bare", "--ref-format=reftable", "-b", "main", str(origin))
    run(tmp_path, "clone", "-q", "--ref-format=reftable", str(origin), str(builder))
    assert (builder / ".git" / "HEAD").read_text().strip() == git.PLACEHOLDER
    commit(builder, "start")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w = watch(builder)
    w.see(run(builder, "rev-parse", "origin/main"))
    first = commit(builder, "claim(p1): one")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.see(first)
    assert w.kinds() == ["claim"]
    for number in range(5):
        last = commit(builder, f"claim(p1): burst {number}")
    run(builder, "push", "-q", "origin", "HEAD:main")
    w.see(last)
    run(builder, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), first)
    view = git.Refs(RealDisk()).view(str(tmp_path / "tree"), "")
    assert (view.head, view.tip, view.remote) == (first, last, True)
    files = git.Refs(RealDisk()).watched_files(str(tmp_path / "tree"), "")
    assert len(files) == 2
    assert all(Path(file).is_file() for file in files)


def test_a_claim_in_such_a_repository_reaches_the_adversary(modern, make):
    """The whole way, with a fleet: refs in a table, a commit, a ping."""
    p = make(LOOP, "p1", handoff='claim_pings = "builder"')
    shutil.rmtree(p.root / ".git")
    run(p.root, "init", "-q", "--ref-format=reftable", "-b", "main")
    commit(p.root, "start")
    p.agents("up", code=None)
    until(lambda: p.json("status", code=None)["loop"]["state"])
    assert not [x for x in p.json("status", code=None)["problems"] if str(p.root) in x]
    tip = commit(p.root, "claim(p1): built")
    until(lambda: [e for e in p.events("handoff.claimed") if e["facts"]["commit"] == tip])
