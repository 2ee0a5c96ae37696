"""One history in a real repository and in the simulated one: the loop reads the same from both."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fleet.host import git
from tests.sim.disk import SimDisk
from tests.sim.repo import REPO, SimRepo

ENV = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


class RealRepo:
    """The builder's clone of a bare remote, with the verbs of the simulated one."""

    def __init__(self, root: Path) -> None:
        self.clone, self.other = str(root / "clone"), str(root / "other")
        remote = str(root / "remote.git")
        self._run(".", "init", "-q", "--bare", "-b", "main", remote)
        self._run(".", "clone", "-q", remote, self.clone)
        self._run(self.clone, "checkout", "-q", "-b", "main")
        self._made = 0
        self.commit("begin")
        self._run(self.clone, "push", "-q", "-u", "origin", "main")
        self._run(".", "clone", "-q", remote, self.other)

    def _run(self, where: str, *words: str) -> str:
        env = {**os.environ, **ENV, "GIT_AUTHOR_DATE": f"{1_700_000_000 + getattr(self, '_made', 0)} +0000"}
        return subprocess.run(
            ["git", "-C", where, *words], check=True, capture_output=True, text=True, env=env
        ).stdout

    def _commit(self, where: str, subject: str) -> None:
        self._made += 1
        Path(where, f"file-{self._made}").write_text(f"{self._made}\n")
        self._run(where, "add", "-A")
        self._run(where, "commit", "-q", "-m", subject)

    def commit(self, subject: str, **_truth: str) -> None:
        self._commit(self.clone, subject)

    def commit_elsewhere(self, subject: str, **_truth: str) -> None:
        self._run(self.other, "pull", "-q", "--no-rebase")
        self._commit(self.other, subject)
        self._run(self.other, "push", "-q")

    def merge(self) -> None:
        self._run(self.clone, "fetch", "-q")
        self._run(self.clone, "merge", "-q", "-m", "merge", "origin/main")

    def amend(self) -> None:
        self._made += 1
        date = self._run(self.clone, "log", "-1", "--format=%ad", "--date=raw").strip()
        Path(self.clone, f"file-{self._made}").write_text("amended\n")
        self._run(self.clone, "add", "-A")
        self._run(self.clone, "commit", "-q", "--amend", "--no-edit", "--date", date)

    def push(self, *, force: bool = False) -> None:
        self._run(self.clone, "push", "-q", *(["--force"] if force else []))

    def answer(self, argv: list[str]) -> tuple[int, bytes]:
        done = subprocess.run(argv, capture_output=True, check=False, env={**os.environ, **ENV})
        return done.returncode, done.stdout + done.stderr

    def tip(self, name: str) -> str:
        return self._run(self.clone, "rev-parse", {"head": "HEAD", "tracking": "origin/main"}[name]).strip()


class Both:
    """Every step is done to both."""

    def __init__(self, root: Path) -> None:
        self.real = RealRepo(root)
        clock = iter(range(1_700_000_000, 1_800_000_000))
        self.sim = SimRepo(SimDisk(lambda: 0.0, None, lambda _site: None), lambda: next(clock), lambda: None)
        self.sim.prepare()

    def __getattr__(self, verb: str):
        def act(*words: str, **more: object) -> None:
            getattr(self.real, verb)(*words, **more)
            getattr(self.sim, verb)(*words, **more)

        return act

    def tips(self, name: str) -> tuple[str, str]:
        return self.real.tip(name), getattr(self.sim, name)

    def history(self, base: tuple[str, str], tip: tuple[str, str]) -> list[object]:
        repos = ((self.real, self.real.clone), (self.sim, REPO))
        found = []
        for (repo, place), one, two in zip(repos, base, tip, strict=True):
            found.append(git.parse_history(one, two, *repo.answer(git.history_command(place, one, two))))
        return found

    def since(self, base: tuple[str, str], tip: tuple[str, str]) -> list[object]:
        repos = ((self.real, self.real.clone), (self.sim, REPO))
        return [
            git.parse_commits(repo.answer(git.since_command(place, one, two))[1])
            for (repo, place), one, two in zip(repos, base, tip, strict=True)
        ]


def shape(commits) -> list[tuple[str, bool, list[str]]]:
    """Subjects, sides, and the subjects of the parents: all that hashes do not decide. Order is git's own."""
    subject = {c.hash: c.subject for c in commits}
    return sorted((c.subject, c.new, sorted(subject.get(p, "") for p in c.parents)) for c in commits)


@pytest.fixture
def both(tmp_path) -> Both:
    return Both(tmp_path)


def test_what_lies_between_two_commits(both):
    begun = both.tips("head")
    both.commit("claim(p1): one", phase="p1", kind="claim")
    both.push()
    claimed = both.tips("head")
    both.commit_elsewhere("review(p1): PASS", phase="p1", kind="review", verdict="PASS")
    both.commit("claim(p1): two", phase="p1", kind="claim")
    both.merge()
    both.push()
    merged = both.tips("tracking")
    for base, tip in ((begun, claimed), (claimed, merged), (begun, merged), (merged, begun)):
        real, sim = both.history(base, tip)
        assert shape(real.commits) == shape(sim.commits)
        assert (real.lost, real.trouble) == (sim.lost, sim.trouble) == (False, "")
        assert shape(both.since(base, tip)[0]) == shape(both.since(base, tip)[1])


def test_an_amended_commit_stands_beside_the_one_it_replaces(both):
    both.commit("claim(p1): one", phase="p1", kind="claim")
    both.push()
    before = both.tips("tracking")
    both.amend()
    both.push(force=True)
    real, sim = both.history(before, both.tips("tracking"))
    assert shape(real.commits) == shape(sim.commits) == [
        ("claim(p1): one", False, [""]), ("claim(p1): one", True, [""])
    ]  # fmt: skip
    assert not any(c.same for c in (*real.commits, *sim.commits))


def test_a_commit_that_is_not_there_is_lost_in_both(both):
    nowhere = ("1" * 40, "1" * 40)
    real, sim = both.history(nowhere, both.tips("head"))
    assert real.lost
    assert sim.lost
