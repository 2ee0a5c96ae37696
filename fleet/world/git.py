"""Reading a repository that others write to, without ever running anything of theirs.

Whether a ref moved is one or two small files; only when it did is git itself asked, as a child with a
time limit. Every call switches hooks, the file-system monitor, signature programs, prompts and optional
locks off. What git prints is parsed as data: hashes are checked, subjects are only matched.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from fleet.core.loop import Commit, GitView, History
from fleet.core.rules.handoff import EMPTY
from fleet.world.ports import Disk, FileStat

FETCH_TIMEOUT_S = 60.0
LOG_TIMEOUT_S = 60.0
COMMITS_CAP = 200_000
REFS_CAP = 64 << 20

SAFE = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.ext.allow=never",
)
ENV = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REMOTE = re.compile(r'^\s*\[remote\s+"origin"\]', re.MULTILINE)


def command(repo: str, *words: str) -> list[str]:
    """A git call on that repository that runs nothing of the repository's own."""
    settings = [word for setting in SAFE for word in ("-c", setting)]
    return ["git", "--no-pager", *settings, "-C", repo, *words]


def fetch_command(repo: str) -> list[str]:
    """Bring the remote-tracking refs up to date, and nothing else."""
    return command(repo, "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "origin")


def history_command(repo: str, base: str, tip: str) -> list[str]:
    """Everything that one of the two commits has and the other has not, newest first."""
    span = tip if base in {EMPTY, ""} else f"{base}...{tip}"
    return command(
        repo, "log", "-z", "--topo-order", "--left-right", "--encoding=UTF-8", "--no-notes",
        f"--max-count={COMMITS_CAP + 1}", "--format=tformat:%m%H %at %s", span, "--",
    )  # fmt: skip


def since_command(repo: str, since: str, tip: str) -> list[str]:
    """The commits of `tip` that `since` has not; all of them where `since` is not known."""
    span = [tip, f"^{since}"] if _HASH.fullmatch(since) else [tip]
    return command(
        repo, "log", "-z", "--topo-order", "--encoding=UTF-8", "--no-notes", "--ignore-missing",
        f"--max-count={COMMITS_CAP}", "--format=tformat:>%H %at %s", *span, "--",
    )  # fmt: skip


def status_command(repo: str, exclude: str = "") -> list[str]:
    """What is changed or untracked, leaving out a directory of ours inside the work tree."""
    inside = os.path.relpath(exclude, repo) if exclude else ".."
    paths = [] if inside.startswith("..") else ["--", ".", f":(exclude,literal){inside}"]
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    return command(repo, *words, *paths)


def tree_command(repo: str, tip: str, paths: Sequence[str]) -> list[str]:
    """The blobs at some paths of a commit, with their sizes."""
    return command(repo, "--literal-pathspecs", "ls-tree", "-z", "-l", "--full-tree", tip, "--", *paths)


def parse_commits(output: bytes) -> tuple[Commit, ...]:
    """The commits that `log` listed; what is not of the asked form is left out."""
    commits = []
    for record in output.decode("utf-8", "replace").split("\0"):
        side, rest = record[:1], record[1:]
        hash_, _, rest = rest.partition(" ")
        at, _, subject = rest.partition(" ")
        if side in {"<", ">"} and _HASH.fullmatch(hash_) and at.lstrip("-").isdigit():
            commits.append(Commit(hash_, subject, int(at), new=side == ">"))
    return tuple(commits)


def parse_history(base: str, tip: str, code: int | None, output: bytes) -> History:
    """What the log's answer means. A base that git does not know is lost; other failures are asked again."""
    if code == 0:
        commits = parse_commits(output)
        return History(base, tip, commits, lost=len(commits) > COMMITS_CAP)
    said = output.decode("utf-8", "replace").strip()
    if code is not None and re.search(
        r"bad (object|revision)|Invalid symmetric|unknown revision|not a tree", said
    ):
        return History(base, tip, lost=True)
    words = said.splitlines()[-1][:200] if said else f"exit code {code}"
    return History(
        base, tip, trouble=f"git log did not answer: {words}" if code is not None else "git log hung"
    )


def parse_tree(output: bytes) -> dict[str, str]:
    """Path to blob hash; empty for a file without content."""
    found = {}
    for record in output.decode("utf-8", "surrogateescape").split("\0"):
        facts, tab, path = record.partition("\t")
        words = facts.split()
        if tab and len(words) == 4 and words[1] == "blob":  # noqa: PLR2004 (mode, type, hash, size)
            found[path] = words[2] if int(words[3]) > 1 else ""
    return found


def blob_hash(content: bytes, like: str) -> str:
    """The name git gives to this content, in the repository's kind of hash; empty for blank content."""
    if not content.strip():
        return ""
    kind = "sha256" if len(like) == 64 else "sha1"  # noqa: PLR2004 (hex digits)
    return hashlib.new(kind, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class GitDir:
    """Where a repository keeps its things; a linked work tree shares `common` with its siblings."""

    own: str
    common: str


class Refs:
    """Ref files of one repository, read anew each time; packed-refs only when it changed."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._packed: dict[str, tuple[FileStat, dict[str, str]]] = {}

    def view(self, repo: str, branch: str) -> GitView | None:
        """The watched ref and the head; empty in a plain directory, None where there is not even that.

        Raises OSError for what cannot be read.
        """
        repo = os.path.realpath(repo)
        found = self.find(repo)
        if found is None:
            return GitView() if self._is(repo, stat.S_ISDIR) else None
        ref, tip = self._watched(found, branch)
        head = self._resolve(found, "HEAD")
        config = self._text(f"{found.common}/config", 1 << 20)
        return GitView(ref=ref, tip=tip, head=head, remote=bool(_REMOTE.search(config)))

    def find(self, repo: str) -> GitDir | None:
        """The git directory that `git -C repo` would use."""
        path = repo
        while self._is(repo, stat.S_ISDIR):
            dot = f"{path.rstrip('/')}/.git"
            if self._is(dot, stat.S_ISDIR):
                return self._common(dot)
            text = self._text(dot, 4096)
            if text.startswith("gitdir:"):
                return self._common(os.path.normpath(os.path.join(path, text[7:].strip())))
            if self._is(f"{path}/objects", stat.S_ISDIR) and self._text(f"{path}/HEAD", 4096):
                return self._common(path)
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent
        return None

    def watched_files(self, repo: str, branch: str) -> tuple[str, ...]:
        """The files in which a moved ref shows, for whoever wakes the loop."""
        found = self.find(repo)
        if found is None:
            return ()
        head = self._text(f"{found.own}/HEAD", 4096).strip()
        names = [self._watched(found, branch)[0], "packed-refs", head.removeprefix("ref:").strip()]
        shared = [f"{found.common}/{name}" for name in names if name and not _HASH.fullmatch(name)]
        return (f"{found.own}/HEAD", *shared)

    def _common(self, own: str) -> GitDir:
        shared = self._text(f"{own}/commondir", 4096).strip()
        return GitDir(own, os.path.normpath(os.path.join(own, shared)) if shared else own)

    def _watched(self, found: GitDir, branch: str) -> tuple[str, str]:
        for name in candidates(branch):
            commit = self._resolve(found, name)
            if commit:
                return name, commit
        return ("", "") if branch else ("HEAD", self._resolve(found, "HEAD"))

    def _resolve(self, found: GitDir, name: str, depth: int = 5) -> str:
        """The commit a ref names, through symbolic ones; empty when there is none yet."""
        where = found.own if name == "HEAD" else found.common
        text = self._text(f"{where}/{name}", 4096).strip()
        if text.startswith("ref:"):
            target = text[4:].strip()
            safe = depth > 0 and target.startswith("refs/") and ".." not in target
            return self._resolve(found, target, depth - 1) if safe else ""
        return text if _HASH.fullmatch(text) else self._packed_refs(found.common).get(name, "")

    def _packed_refs(self, common: str) -> dict[str, str]:
        path = f"{common}/packed-refs"
        now = self._disk.stat(path)
        if now is None:
            return {}
        known = self._packed.get(path)
        if known and known[0] == now:
            return known[1]
        refs = {}
        for line in self._text(path, REFS_CAP).splitlines():
            commit, _, name = line.partition(" ")
            if _HASH.fullmatch(commit):
                refs[name] = commit
        self._packed[path] = (now, refs)
        return refs

    def _text(self, path: str, cap: int) -> str:
        try:
            return self._disk.read(path, cap).decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return ""

    def _is(self, path: str, kind: object) -> bool:
        found = self._disk.stat(path)
        return found is not None and callable(kind) and bool(kind(found.mode))


def candidates(branch: str) -> tuple[str, ...]:
    """The refs to watch, best first: the branch asked for on the remote, then here; else the remote's own."""
    if not branch:
        return ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")
    if branch.startswith("refs/"):
        return (branch,)
    bare = branch.removeprefix("origin/")
    return (f"refs/remotes/origin/{bare}", f"refs/heads/{branch}", f"refs/heads/{bare}")
