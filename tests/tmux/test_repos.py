"""`doctor` looks into the repositories as they are: what would keep work from being handed over is named."""

from __future__ import annotations

import pytest

from fleet.host.repos import RepoFacts, doubts
from tests.tmux.test_git import commit, run
from tests.tmux.test_ground import CLONES, project, write

__all__ = ["project"]
pytestmark = pytest.mark.tmux


def checks(p, code=None):
    return [c for c in p.json("doctor", code=code)["checks"] if c["what"] not in {"tmux", "libraries", "git"}]


def said(p, word):
    return [c for c in checks(p) if word in c["detail"]]


@pytest.mark.long
def test_what_keeps_a_clone_from_handing_over_is_named_with_its_mend(project):
    p = project
    write(p, **CLONES)
    p.agents("up")
    builder, adversary = p.root / "work" / "b", p.root / "work" / "a"
    (fine,) = [c for c in checks(p, 0) if c["what"] == "repositories"]
    assert (fine["level"], fine["detail"]) == ("ok", "2 can hand over")

    run(builder, "checkout", "-q", "--detach")
    (found,) = said(p, "no branch checked out")
    assert found["what"] == "agent builder"
    run(builder, "checkout", "-q", "main")

    run(builder, "checkout", "-q", "-b", "alone")
    (found,) = said(p, "no upstream")
    assert "push -u origin alone" in found["fix"]
    run(builder, "checkout", "-q", "main")

    (builder / ".git" / "MERGE_HEAD").write_text(run(builder, "rev-parse", "HEAD") + "\n")
    (found,) = said(p, "a merge in")
    assert found["level"] == "warn"
    (builder / ".git" / "MERGE_HEAD").unlink()

    elsewhere = p.root.parent / "elsewhere"
    run(p.root.parent, "init", "-q", "-b", "main", str(elsewhere))
    commit(elsewhere, "start")
    run(adversary, "remote", "set-url", "origin", str(elsewhere))
    (found,) = said(p, "git refuses what")
    assert (found["level"], found["what"]) == ("fail", "agent adversary")
    assert said(p, "is fed by")
    run(elsewhere, "config", "receive.denyCurrentBranch", "updateInstead")
    assert not said(p, "git refuses what")

    (adversary / ".git" / "HEAD").write_text("nonsense\n")
    (found,) = [c for c in checks(p) if c["what"] == "agent adversary"]
    assert found["level"] == "fail"
    p.agents("down")


def test_a_watched_branch_that_is_nowhere_is_named(project):
    p = project
    run(p.root, "init", "-q", "-b", "trunk")
    commit(p.root, "start")
    write(p, repo='."\nbranch = "mian')
    (found,) = said(p, "mian is no branch")
    assert found["what"] == "loop.handoff.branch"
    assert "trunk" in found["detail"]


HEADS = ("refs/heads/main",)
FINE = RepoFacts("/c", branch="main", upstream="refs/remotes/origin/main", origin="/o.git", refs=HEADS)


@pytest.mark.parametrize(
    ("clone", "watched", "branch", "words"),
    [
        (FINE, FINE, "", []),
        (FINE, FINE, "main", []),
        (FINE, FINE, "gone", ["gone is no branch"]),
        (RepoFacts("/c", trouble="it is broken"), None, "", ["it is broken"]),
        (FINE, RepoFacts("/w", trouble="it is broken"), "", ["it is broken"]),
        (RepoFacts("/c", branch="main"), None, "", []),  # alone: it pushes nowhere, and need not
        (RepoFacts("/c", origin="/o.git"), None, "", ["no branch checked out"]),
        (RepoFacts("/c", origin="/o.git", unfinished="rebase"), None, "", ["a rebase in /c"]),
        (RepoFacts("/c", branch="main", origin="/o", refuses=True), None, "", ["git refuses what /c pushes"]),
        (RepoFacts("/c", branch="main", origin="/o.git"), None, "", ["no upstream"]),
        (FINE, RepoFacts("/w", branch="main", origin="/other.git"), "", ["is fed by /other.git"]),
        (FINE, RepoFacts("/o.git", bare=True), "", []),
    ],
)
def test_each_fact_has_its_word(clone, watched, branch, words):
    found = doubts({"a": clone}, watched, branch)
    assert len(found) == len(words), found
    for doubt, word in zip(found, words, strict=True):
        assert word in doubt.detail
        assert doubt.fix
