"""The repositories of a fleet as GitPython shows them: what would keep work from being handed over.

For `doctor`. `survey` gathers facts and never changes a repository; `doubts` is the rule. It runs as a child
(`python -m fleet.host.repos`, a question as JSON on stdin, findings as JSON on stdout), because the library
may be only in the environment beside agents.py, and because a repository on a slow disk may take its time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fleet.host.clone import ACCEPTS
from fleet.host.git import ENV, SAFE, candidates

UNFINISHED = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}


@dataclass(frozen=True, slots=True)
class RepoFacts:
    """One repository. `trouble` says why it cannot be read; all else then means nothing."""

    path: str
    trouble: str = ""
    bare: bool = False
    branch: str = ""  # that is checked out; empty: none
    upstream: str = ""  # where a plain push of it goes
    origin: str = ""
    refuses: bool = False  # origin is a work tree here that has this branch checked out
    unfinished: str = ""  # rebase, merge, ...
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """What stands in the way of which agent or key, and what to do."""

    who: str
    detail: str
    fix: str
    fatal: bool = False


def doubts(clones: Mapping[str, RepoFacts], watched: RepoFacts | None, branch: str) -> list[Doubt]:
    """`clones`: work trees by the name of their agent. `watched`: handoff.repo, if there is one."""
    found = [doubt for name, facts in clones.items() for doubt in _of_clone(name, facts)]
    if watched is None:
        return found
    if watched.trouble:
        fix = f"git -C {watched.path} status tells more"
        return [*found, Doubt("loop.handoff.repo", f"{watched.path}: {watched.trouble}", fix, fatal=True)]
    if branch and not set(candidates(branch)) & set(watched.refs):
        known = ", ".join(sorted({r.removeprefix("refs/heads/") for r in watched.refs if "/heads/" in r})[:8])
        detail = f"{branch} is no branch of {watched.path}; there are: {known or 'none yet'}"
        found.append(Doubt("loop.handoff.branch", detail, "correct it, or push that branch"))
    for name, facts in clones.items():
        apart = facts.origin and watched.origin and facts.origin != watched.origin
        if apart and not facts.trouble and watched.path not in {facts.path, facts.origin}:
            detail = f"{facts.path} pushes to {facts.origin}, but {watched.path} is fed by {watched.origin}"
            found.append(Doubt(f"agent {name}", detail, "clone all of them from one repository"))
    return found


def _of_clone(name: str, facts: RepoFacts) -> list[Doubt]:
    who, path = f"agent {name}", facts.path
    if facts.trouble:
        return [Doubt(who, f"{path}: {facts.trouble}", f"git -C {path} status tells more", fatal=True)]
    found = []
    if facts.unfinished:
        detail = f"a {facts.unfinished} in {path} is not finished"
        found.append(Doubt(who, detail, f"git -C {path} {facts.unfinished} --continue, or --abort"))
    elif not facts.branch and not facts.bare:
        found.append(Doubt(who, f"{path} has no branch checked out: it can push none", "git switch BRANCH"))
    if not facts.origin:
        return found
    if facts.refuses:
        detail = f"git refuses what {path} pushes: {facts.branch} is checked out in {facts.origin}"
        setting = f"git -C {facts.origin} config receive.denyCurrentBranch updateInstead"
        fix = f"{setting}, or clone a bare repository"
        found.append(Doubt(who, detail, fix, fatal=True))
    elif facts.branch and not facts.upstream:
        detail = f"{facts.branch} of {path} has no upstream: a plain `git push` is refused"
        found.append(Doubt(who, detail, f"git -C {path} push -u origin {facts.branch}"))
    return found


def survey(path: str) -> RepoFacts:
    """Ask one repository, through GitPython; nothing of its own is run."""
    from git import Repo
    from git.exc import GitError

    try:
        repo = Repo(path, search_parent_directories=True)
        repo.git.update_environment(**ENV)
        repo.git.set_persistent_git_options(c=list(SAFE))
        refs = tuple(repo.git.for_each_ref("--format=%(refname)").splitlines())
        branch = _said(repo, "symbolic-ref", "--quiet", "--short", "HEAD")
        upstream = _said(repo, "rev-parse", "--symbolic-full-name", "@{upstream}") if branch else ""
        origin = _said(repo, "config", "--get", "remote.origin.url")
        if origin and "://" not in origin and ":" not in origin.partition("/")[0]:
            origin = os.path.realpath(os.path.join(repo.working_dir or path, origin))
        begun = (word for name, word in UNFINISHED.items() if os.path.exists(f"{repo.git_dir}/{name}"))
        return RepoFacts(
            os.path.realpath(path),
            bare=bool(repo.bare),
            branch=branch,
            upstream=upstream,
            origin=origin,
            refuses=bool(branch) and _refuses(origin, branch),
            unfinished=next(begun, ""),
            refs=refs,
        )
    except (GitError, OSError, ValueError) as fault:
        return RepoFacts(os.path.realpath(path), trouble=_why(fault))


def _why(fault: Exception) -> str:
    """The last line of git's own words, or the library's, or what kind of thing went wrong."""
    text = str(getattr(fault, "stderr", "") or fault).strip().strip("'\"")
    lines = [line.strip(" '\"") for line in text.splitlines() if line.strip(" '\"")]
    name = type(fault).__name__
    if name in {"InvalidGitRepositoryError", "NoSuchPathError"}:
        return "it is no git repository" if name == "InvalidGitRepositoryError" else "it is not there"
    return (lines[-1] if lines else name)[:300]


def _said(repo: Any, *words: str) -> str:
    """What git answers, or nothing."""
    from git.exc import GitCommandError

    try:
        return str(repo.git.execute(["git", *(w for s in SAFE for w in ("-c", s)), *words]))
    except GitCommandError:
        return ""


def _refuses(origin: str, branch: str) -> bool:
    """Is origin a work tree on this machine that has the branch checked out, and takes no push into it?"""
    from git import Repo
    from git.exc import GitError

    if not os.path.isdir(origin):
        return False
    try:
        there = Repo(origin)
        there.git.update_environment(**ENV)
        if there.bare or _said(there, "symbolic-ref", "--quiet", "--short", "HEAD") != branch:
            return False
        return _said(there, "config", "--get", "receive.denyCurrentBranch").lower() not in ACCEPTS
    except (GitError, OSError, ValueError):
        return False


def answer(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings for a question: `clones` by name, `repo`, `branch`."""
    clones = {str(name): survey(str(path)) for name, path in question["clones"].items()}
    watched = survey(str(question["repo"])) if question["repo"] else None
    return [asdict(doubt) for doubt in doubts(clones, watched, str(question["branch"]))]


def main(_argv: Sequence[str] = ()) -> int:
    """The child."""
    print(json.dumps(answer(json.load(sys.stdin))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
