"""A repository as git would show it: commits with parents, three refs, a work tree, and the answers of git.

The watched clone is the builder's. `remote` is what both sides push to, `tracking` what the clone knows of
it since its last fetch. Refs are real files on the simulated disk, so that the real reader reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.sim.disk import SimDisk

REPO = "/project/repo"
GIT = f"{REPO}/.git"
UNKNOWN = (128, b"fatal: bad object\n")
MODES = "100644 100644 100644"
A = "a" * 40  # a blob's name where none matters
OFFLINE = (128, b"fatal: unable to access the remote: Could not resolve host\n")


@dataclass(frozen=True)
class SimCommit:
    """One commit; `phase`, `kind` and `verdict` are the truth about it, which no subject can change."""

    hash: str
    parents: tuple[str, ...]
    subject: str
    at: int
    tree: str
    phase: str = ""
    kind: str = ""  # claim, review, or other work
    verdict: str = ""


@dataclass
class Place:
    """One clone or the remote: where it stands."""

    tip: str = ""


@dataclass
class SimRepo:
    """Everything of one repository. `changed` is called after each change that a watcher could see."""

    disk: SimDisk
    wall: Callable[[], float]
    changed: Callable[[], None]
    commits: dict[str, SimCommit] = field(default_factory=dict)
    remote: str = ""
    tracking: str = ""
    head: str = ""
    dirty: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)  # of the work tree, by path below it
    offline: bool = False
    before: dict[str, set[str]] = field(default_factory=dict)  # by phase: commits from before it began again
    locked: bool = False  # a stale lock keeps the tracking ref where it is
    table: bool = False  # refs are kept in a table, which only git can read
    unreadable: bool = False  # and this git cannot
    _count: int = 0

    def prepare(self) -> None:
        """The first commit, pushed and fetched."""
        self.disk.dirs.update((REPO, GIT, f"{GIT}/refs", f"{GIT}/refs/heads"))
        self.disk.put(f"{GIT}/HEAD", b"ref: refs/heads/main\n")
        self.disk.put(f"{GIT}/config", b'[remote "origin"]\n\turl = /srv/remote\n')
        self.head = self.remote = self.tracking = self._make((), "begin", "", "", "")
        self._show()

    # -- what people and agents do

    def commit(self, subject: str, *, phase: str, kind: str = "", verdict: str = "") -> str:
        """On the clone's own branch; the work tree is clean afterwards."""
        self.head = self._make((self.head,), subject, phase, kind, verdict)
        self.dirty.clear()
        self._show()
        return self.head

    def amend(self) -> str:
        """The newest commit of the clone, once more with other content."""
        old = self.commits[self.head]
        self.head = self._make(old.parents, old.subject, old.phase, old.kind, old.verdict, at=old.at)
        self._show()
        return self.head

    def merge(self) -> None:
        """Pull without a rebase: a merge commit where both sides have moved."""
        if self.remote in self.ancestors(self.head):
            return
        if self.head in self.ancestors(self.remote):
            self.head = self.remote
        else:
            self.head = self._make((self.head, self.remote), "merge", "", "", "")
        self.tracking = self.remote
        self._show()

    def push(self, *, force: bool = False) -> None:
        """From the clone; refused where the remote has moved on."""
        if force or self.remote in self.ancestors(self.head):
            self.remote = self.tracking = self.head
            self._show()

    def commit_elsewhere(self, subject: str, *, phase: str, kind: str = "", verdict: str = "") -> str:
        """Another clone's commit, pushed on top of what the remote has."""
        self.remote = self._make((self.remote,), subject, phase, kind, verdict)
        return self.remote

    def write(self, path: str, data: bytes, *, tracked: bool = True) -> None:
        """A file of the work tree."""
        self.files[path] = data
        self.disk.put(f"{REPO}/{path}", data, 0o644)
        if not tracked:
            self.dirty.add(path)
        self.changed()

    def discard(self) -> None:
        """What was not committed is gone."""
        for path in sorted(self.dirty & set(self.files)):
            self.disk.put(f"{REPO}/{path}", b"as committed\n", 0o644)
        self.dirty.clear()
        self.changed()

    def remove(self, path: str) -> None:
        """Take a file of the work tree away."""
        if self.files.pop(path, None) is not None:
            self.disk.unlink(f"{REPO}/{path}")
            self.changed()

    # -- what is true

    def ancestors(self, tip: str) -> set[str]:
        """The commit and everything before it."""
        found: set[str] = set()
        todo = [tip]
        while todo:
            one = todo.pop()
            if one in self.commits and one not in found:
                found.add(one)
                todo.extend(self.commits[one].parents)
        return found

    def of(self, tip: str, phase: str, kind: str) -> list[SimCommit]:
        """The commits of one kind for one phase that a tip holds."""
        since = self.ancestors(tip) - self.before.get(phase, set())
        return [c for h in since if (c := self.commits[h]).phase == phase and c.kind == kind]

    def passed(self, tip: str, phase: str) -> bool:
        """Is there a review that passes this phase and every claim of it?"""
        claims = self.of(tip, phase, "claim")
        passing = [r for r in self.of(tip, phase, "review") if r.verdict == "PASS"]
        return any(all(c.hash in self.ancestors(r.hash) for c in claims) for r in passing)

    # -- git's own answers

    def answer(self, argv: Sequence[str]) -> tuple[int, bytes]:
        """Exit code and output of one call."""
        words = list(argv[argv.index(REPO) + 1 :])
        if words[0] == "--literal-pathspecs":
            words.pop(0)
        return getattr(self, f"_git_{words[0].replace('-', '_')}")(words[1:])

    def _git_fetch(self, _words: list[str]) -> tuple[int, bytes]:
        if self.offline:
            return OFFLINE
        if self.locked:
            path = f"{GIT}/refs/remotes/origin/main.lock"
            said = f"error: cannot lock ref 'main': Unable to create '{path}': File exists."
            return 1, f"{said}\n".encode()
        self.tracking = self.remote
        self._show()
        return 0, b""

    def keep_in_table(self) -> None:
        """From now on the refs are no files."""
        self.table = True
        extension = b"[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\trefStorage = reftable\n"
        self.disk.put(f"{GIT}/config", bytes(self.disk.files[f"{GIT}/config"].data) + extension)
        self.disk.put(f"{GIT}/HEAD", b"ref: refs/heads/.invalid\n")
        self._show()

    def _git_show_ref(self, _words: list[str]) -> tuple[int, bytes]:
        if self.unreadable:
            return 128, b"fatal: unknown repository extension found:\n\trefstorage\n"
        rows = (
            ("HEAD", self.head),
            ("refs/heads/main", self.head),
            ("refs/remotes/origin/main", self.tracking),
        )
        return 0, "".join(f"{commit} {name}\n" for name, commit in rows).encode()

    def _git_log(self, words: list[str]) -> tuple[int, bytes]:
        form = next(w for w in words if w.startswith("--format=")).removeprefix("--format=tformat:")
        spans = [w for w in words if not w.startswith("-")]
        missing = "--ignore-missing" in words
        left: set[str] = set()
        right: set[str] = set()
        for span in spans:
            base, dots, tip = span.partition("...")
            names = (base, tip) if dots else (span.removeprefix("^"),)
            if any(n not in self.commits for n in names) and not missing:
                return UNKNOWN
            if dots:
                left, right = self.ancestors(base), self.ancestors(tip)
                left, right = left - right, right - left
            elif span.startswith("^"):
                right -= self.ancestors(names[0])
            else:
                right |= self.ancestors(names[0])
        rows = [self._row(c, "<" if c.hash in left else ">", form) for c in self._newest_first(left | right)]
        return 0, "".join(f"{row}\0" for row in rows).encode()

    def _git_status(self, words: list[str]) -> tuple[int, bytes]:
        rows = {
            "--porcelain=v1": [f" M {name}" for name in sorted(self.dirty)],
            "--porcelain=v2": [f"1 .M N... {MODES} {A} {A} {name}" for name in sorted(self.dirty)],
        }
        form = next(w for w in words if w.startswith("--porcelain"))
        return 0, "".join(f"{row}\0" for row in rows[form]).encode()

    def _git_ls_tree(self, _words: list[str]) -> tuple[int, bytes]:
        return 0, b""

    @staticmethod
    def _row(commit: SimCommit, side: str, form: str) -> str:
        facts = {
            "%m": side, "%H": commit.hash, "%at": str(commit.at),
            "%P": " ".join(commit.parents), "%T": commit.tree, "%x09": "\t",
        }  # fmt: skip
        head, _, rest = form.partition("%s")  # a subject may hold what looks like a slot
        for slot, value in facts.items():
            head = head.replace(slot, value)
        return f"{head}{commit.subject}{rest}"

    def _newest_first(self, hashes: Iterable[str]) -> list[SimCommit]:
        order = {name: number for number, name in enumerate(self.commits)}
        return sorted((self.commits[h] for h in hashes), key=lambda c: -order[c.hash])

    def _make(
        self, parents: tuple[str, ...], subject: str, phase: str, kind: str, verdict: str, at: int = 0
    ) -> str:
        self._count += 1
        tree = hashlib.sha1(f"tree {self._count}".encode(), usedforsecurity=False).hexdigest()
        name = hashlib.sha1(f"{self._count} {parents}".encode(), usedforsecurity=False).hexdigest()
        self.commits[name] = SimCommit(
            name, parents, subject, at or int(self.wall()), tree, phase, kind, verdict
        )
        return name

    def _show(self) -> None:
        if self.table:
            self.disk.put(f"{GIT}/reftable/tables.list", f"{self.head} {self.tracking}\n".encode())
            self.changed()
            return
        for ref, commit in (("heads/main", self.head), ("remotes/origin/main", self.tracking)):
            path, data = f"{GIT}/refs/{ref}", f"{commit}\n".encode()
            if self.disk.text(path) != data.decode():
                self.disk.put(path, data)
        self.changed()
