"""Reading a repository that others write to, without ever running anything of theirs.

Whether a ref moved is one or two small files; only when it did is git itself asked, as a child with a
time limit. Where refs are not files (reftable), one file tells that some ref moved, and git is asked which
(`Ask`); a look that does not wait gets the last answer meanwhile, or NotYet. Every call switches hooks,
the file-system monitor, signature programs, prompts and optional locks off. What git prints is parsed as
data: hashes are checked, subjects are only matched.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fleet.core.loop.gates import ancestors
from fleet.core.loop.handoff import EMPTY
from fleet.core.loop.loop_case import Commit, GitView, History, TreeView
from fleet.host.children import child_env
from fleet.ports import Disk, FileStat
from fleet.times.moment import Wall

FETCH_TIMEOUT_S = 60.0
LOG_TIMEOUT_S = 60.0
COMMITS_CAP = 200_000
REFS_CAP = 64 << 20
CHANGED_FILE_CAP = 256 << 10  # changed files up to this size are read ...
CHANGED_CAP = 4 << 20  # ... and not more than this of them per look; others are known by their dates

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
ASK_TIMEOUT_S = 20.0
PLACEHOLDER = "ref: refs/heads/.invalid"  # what HEAD says in a repository whose refs are not files
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REMOTE = re.compile(r'^\s*\[remote\s+"origin"\]', re.MULTILINE)
_STORAGE = re.compile(r"^\s*refstorage\s*=\s*\"?(\w+)", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(r"^\s*repositoryformatversion\s*=\s*[1-9]", re.MULTILINE | re.IGNORECASE)

Ask = Callable[[str, Sequence[str], object], "tuple[int | None, bytes]"]


class NotYet(Exception):
    """Git was asked and has not answered."""


def command(repo: str, *words: str) -> list[str]:
    """A git call on that repository that runs nothing of the repository's own."""
    settings = [word for setting in SAFE for word in ("-c", setting)]
    return ["git", "--no-pager", *settings, "-C", repo, *words]


def refs_command(repo: str, names: Sequence[str]) -> list[str]:
    """The commits of HEAD and of those of the names that are there."""
    return command(repo, "show-ref", "--head", "--", *names)


def ask_now(repo: str, words: Sequence[str], _stamp: object = None) -> tuple[int | None, bytes]:
    """Ask git and wait for it, not for long: for a verb."""
    env = {**child_env(os.environ), **ENV}
    try:
        done = subprocess.run(
            list(words), cwd=repo, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=ASK_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, b"it did not answer in time"
    except OSError as error:
        return None, (error.strerror or str(error)).encode()
    return done.returncode, done.stdout + done.stderr


def fetch_command(repo: str) -> list[str]:
    """Bring the remote-tracking refs up to date, and nothing else."""
    return command(repo, "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "origin")


def history_command(repo: str, base: str, tip: str) -> list[str]:
    """Everything that one of the two commits has and the other has not, newest first."""
    span = tip if base in {EMPTY, ""} else f"{base}...{tip}"
    return command(
        repo, "log", "-z", "--topo-order", "--left-right", "--cherry-mark", "--encoding=UTF-8", "--no-notes",
        "--no-ext-diff", "--no-textconv",
        f"--max-count={COMMITS_CAP + 1}", "--format=tformat:%m%H %at %P %x09%s", span, "--",
    )  # fmt: skip


def since_command(repo: str, since: str, tip: str) -> list[str]:
    """The commits of `tip` that `since` has not; all of them where `since` is not known."""
    span = [tip, f"^{since}"] if _HASH.fullmatch(since) else [tip]
    return command(
        repo, "log", "-z", "--topo-order", "--encoding=UTF-8", "--no-notes", "--ignore-missing",
        f"--max-count={COMMITS_CAP}", "--format=tformat:>%H %at %P %x09%s", *span, "--",
    )  # fmt: skip


def status_command(repo: str, exclude: str = "") -> list[str]:
    """What is changed or untracked, leaving out a directory of ours inside the work tree."""
    inside = os.path.relpath(exclude, repo) if exclude else ".."
    paths = [] if inside.startswith("..") else ["--", ".", f":(exclude,literal){inside}"]
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    return command(repo, *words, *paths)


def changes_command(repo: str, exclude: str = "") -> list[str]:
    """As `status_command`, for a fingerprint: the staged contents by name, and every untracked file."""
    words = status_command(repo, exclude)
    names = {"--porcelain=v1": "--porcelain=v2", "--untracked-files=normal": "--untracked-files=all"}
    return [names.get(word, word) for word in words]


def parse_changes(disk: Disk, repo: str, head: str, output: bytes, wall: Wall) -> TreeView:
    """The state of the work tree: what git says of each changed file, and what the file holds now."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    budget, root = CHANGED_CAP, _root(disk, repo)
    records = iter(output.decode("utf-8", "surrogateescape").split("\0"))
    for record in records:
        kind = record[:1]
        fields = {"1": 8, "2": 9, "u": 10, "?": 1}.get(kind)
        if fields is None:
            continue
        path = record.split(" ", fields)[-1]
        old = next(records, "") if kind == "2" else ""
        said, used = _content(disk, f"{root}/{path}", budget)
        budget -= used
        parts[kind == "?"].append(f"{record}\0{old}\0{said}")
    prints = {untracked: _digest(sorted(rows)) for untracked, rows in parts.items()}
    return TreeView(head, prints[False], prints[True], wall)


def _root(disk: Disk, repo: str) -> str:
    """The top of the work tree that a directory lies in: what git's paths begin at."""
    path = os.path.realpath(repo)
    while disk.stat(f"{path}/.git") is None and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _content(disk: Disk, path: str, budget: int) -> tuple[str, int]:
    """What a file holds, or, where it is large, how it is dated; and how many bytes were read for it."""
    try:
        found = disk.stat(path)
        if found is None or not stat.S_ISREG(found.mode):
            return ("" if found is None else f"{found.mode} {found.mtime_ns} {found.inode}"), 0
        if found.size > min(budget, CHANGED_FILE_CAP):
            return f"{found.size} {found.mtime_ns} {found.inode}", 0
        return hashlib.sha256(disk.read(path, CHANGED_FILE_CAP)).hexdigest(), found.size
    except OSError as error:
        return f"unreadable {error.errno}", 0


def _digest(rows: Sequence[str]) -> str:
    text = "\1".join(rows).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:12] if rows else ""


def tree_command(repo: str, tip: str, paths: Sequence[str]) -> list[str]:
    """The blobs at some paths of a commit, with their sizes."""
    return command(repo, "--literal-pathspecs", "ls-tree", "-z", "-l", "--full-tree", tip, "--", *paths)


def parse_commits(output: bytes) -> tuple[Commit, ...]:
    """The commits that `log` listed; what is not of the asked form is left out."""
    commits = []
    for record in output.decode("utf-8", "replace").split("\0"):
        facts, _, subject = record.partition("\t")
        side, words = facts[:1], facts[1:].split()
        if side not in {"<", ">", "="} or len(words) < 2:  # noqa: PLR2004 (hash and time)
            continue
        hash_, at, *parents = words
        if all(_HASH.fullmatch(h) for h in (hash_, *parents)) and at.lstrip("-").isdigit():
            made = Commit(hash_, subject, int(at), side != "<", tuple(parents), same=side == "=")
            commits.append(made)
    return tuple(commits)


def _sided(commits: tuple[Commit, ...], tip: str) -> tuple[Commit, ...]:
    """Git marks a change that both sides have the same on either: which side it is on, ancestry tells."""
    if not any(c.same for c in commits):
        return commits
    here = ancestors(tip, {c.hash: c for c in commits})
    return tuple(c._replace(new=c.hash in here) if c.same else c for c in commits)


def parse_history(base: str, tip: str, code: int | None, output: bytes) -> History:
    """What the log's answer means. A base that git does not know is lost; other failures are asked again."""
    if code == 0:
        commits = _sided(parse_commits(output), tip)
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


class GitDir(NamedTuple):
    """Where a repository keeps its things; a linked work tree shares `common` with its siblings."""

    own: str
    common: str


class Refs:
    """Ref files of one repository, read anew each time; packed-refs only when it changed.

    Where refs are not files, `ask` puts the question to git; a stamp tells whether an older answer is good.
    """

    def __init__(self, disk: Disk, ask: Ask = ask_now) -> None:
        self._disk = disk
        self._ask = ask
        self._packed: dict[str, tuple[FileStat, dict[str, str]]] = {}

    def view(self, repo: str, branch: str) -> GitView | None:
        """The watched ref and the head; empty in a plain directory, None where there is not even that.

        Raises OSError for what cannot be read, NotYet while git has not answered.
        """
        repo = os.path.realpath(repo)
        found = self.find(repo)
        if found is None:
            return GitView() if self._is_dir(repo) else None
        config = self._text(f"{found.common}/config", 1 << 20)
        remote = bool(_REMOTE.search(config))
        if self._in_table(found, config):
            if _STORAGE.search(config) is None or not _VERSION.search(config):
                raise OSError(
                    "its HEAD says that refs are kept elsewhere, and its config does not say where "
                    "(extensions.refStorage with core.repositoryFormatVersion 1): mend the config"
                )
            refs = self._table(repo, found, candidates(branch))
            head = refs.get("HEAD", "")
            nothing = ("", "") if branch else ("HEAD", head)
            ref, tip = next(((name, refs[name]) for name in candidates(branch) if name in refs), nothing)
            return GitView(ref=ref, tip=tip, head=head, remote=remote)
        ref, tip = self._watched(found, branch)
        head = self._resolve(found, "HEAD")
        return GitView(ref=ref, tip=tip, head=head, remote=remote)

    def find(self, repo: str) -> GitDir | None:
        """The git directory that `git -C repo` would use."""
        path = repo
        while self._is_dir(repo):
            dot = f"{path.rstrip('/')}/.git"
            if self._is_dir(dot):
                return self._common(dot)
            text = self._text(dot, 4096)
            if text.startswith("gitdir:"):
                return self._common(os.path.normpath(os.path.join(path, text[7:].strip())))
            if self._is_dir(f"{path}/objects") and self._text(f"{path}/HEAD", 4096):
                return self._common(path)
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent
        return None

    def watched_files(self, repo: str, branch: str) -> tuple[str, ...]:
        """The files in which a moved ref shows: a change of one wakes the loop."""
        found = self.find(repo)
        if found is None:
            return ()
        if self._in_table(found, self._text(f"{found.common}/config", 1 << 20)):
            return self._tables(found)
        head = self._text(f"{found.own}/HEAD", 4096).strip()
        names = [self._watched(found, branch)[0], "packed-refs", head.removeprefix("ref:").strip()]
        shared = [f"{found.common}/{name}" for name in names if name and not _HASH.fullmatch(name)]
        return (f"{found.own}/HEAD", *shared)

    def _in_table(self, found: GitDir, config: str) -> bool:
        """Are refs kept in another way than as files?"""
        storage = _STORAGE.search(config)
        if storage is not None:
            return storage[1].lower() != "files"
        return self._text(f"{found.own}/HEAD", 4096).strip() == PLACEHOLDER

    @staticmethod
    def _tables(found: GitDir) -> tuple[str, ...]:
        """The files that are replaced whenever a ref moves; a linked work tree has one of its own."""
        return tuple(dict.fromkeys(f"{at}/reftable/tables.list" for at in (found.own, found.common)))

    def _table(self, repo: str, found: GitDir, names: Sequence[str]) -> dict[str, str]:
        """What git says of HEAD and these refs."""
        stamp = tuple(self._disk.stat(path) for path in self._tables(found))
        code, output = self._ask(repo, refs_command(repo, names), stamp)
        said = output.decode("utf-8", "replace").strip()
        if code != 0 and (code != 1 or said):  # 1 without a word: there is no ref yet
            lines = said.splitlines()
            last = lines[-1] if lines else f"exit code {code}"
            why = next((line for line in lines if "extension" in line), last)
            raise OSError(
                f"its refs are kept in a table that only git can read, and git does not: {why[:200]}; "
                "reftable needs git 2.45 or newer"
            )
        if code == 1 and (lost := self._lost_part(found)):  # of which git says nothing
            raise OSError(f"its refs are kept in a table that only git can read, and this is lost: {lost}")
        rows = (line.partition(" ") for line in said.splitlines())
        return {name: commit for commit, _, name in rows if _HASH.fullmatch(commit)}

    def _lost_part(self, found: GitDir) -> str:
        """A file that the list of tables names and that is not there."""
        for table in self._tables(found):
            folder = os.path.dirname(table)
            for name in self._text(table, 1 << 20).split():
                if self._disk.stat(f"{folder}/{name}") is None and name in self._text(table, 1 << 20).split():
                    return f"{folder}/{name}"
        return ""

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

    def _is_dir(self, path: str) -> bool:
        found = self._disk.stat(path)
        return found is not None and stat.S_ISDIR(found.mode)


def candidates(branch: str) -> tuple[str, ...]:
    """The refs to watch, best first: the branch asked for on the remote, then here; else the remote's own."""
    if not branch:
        return ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")
    if branch.startswith("refs/"):
        return (branch,)
    bare = branch.removeprefix("origin/")
    return (f"refs/remotes/origin/{bare}", f"refs/heads/{branch}", f"refs/heads/{bare}")
