"""A small fleet with a loop, and a world in memory for it: what the loop's tests share."""

from __future__ import annotations

import contextlib

from fleet.core.effects import Move
from fleet.core.loop.decide_loop import decide_loop
from fleet.core.loop.done import Done
from fleet.core.loop.loop_case import GitView, LoopCase, LoopMemory, LoopSeen, Place, StatusView, TreeView
from fleet.core.model import Backend, Fleet, Handoff, Loop, Member, Phase, WatchdogSpec
from fleet.ports import FileStat
from fleet.times.moment import Moment
from tests.records import replace

A, B, C = "a" * 40, "b" * 40, "c" * 40
NOW = 1_000_000.0


def agent(name, kind="loop", role="", **more):
    return Member(
        name=name,
        session=f"t-{name}",
        kind=kind,
        backend="demo",
        dir=f"/p/{name}",
        watch="heal",
        role=role,
        **more,
    )


def phase(id_, **more):
    return Phase(id=id_, plan=f"plans/{id_}.md", status=f"STATUS-{id_}.md", **more)


def fleet(*ids, gates=(), handoff=None, agents=None, **loop):
    phases = tuple(
        phase(i, gates=tuple(gates)) if isinstance(i, str) else i for i in (ids or ("p1", "p2", "p3"))
    )
    handoff = handoff or Handoff(
        repo="/p/builder",
        claim_pings=("adversary",),
        review_pings=("builder",),
        inboxes=("ADVERSARY-INBOX.md", "BUILDER-INBOX.md"),
        state_subdir="docs",
    )
    return Fleet(
        config_path="/p/agents.toml",
        project_dir="/p",
        session_prefix="t-",
        log_dir="/p/.ao",
        tmux_socket="t",
        project_id="0" * 16,
        watchdog=WatchdogSpec(signal_interval=30.0),
        backends=(Backend(name="demo", bin="true", prompt_delivery="exec"),),
        members=agents
        or (
            agent("builder", role="builder"),
            agent("adversary", role="adversary"),
            agent("reporter", "task"),
        ),
        loop=Loop(
            **{"kickoff_template": "/p/kickoff.md", "roles_dir": "/p/roles"} | loop,
            phases=phases,
            handoff=handoff,
        ),
    )


def place(f, index, **more):
    ids = tuple(p.id for p in f.loop.phases)
    return Place(index=index, id=ids[index] if index < len(ids) else "", ids=ids, **more)


DONE = StatusView("/p/builder/docs/STATUS.md", "d1", Done(done=True, line=3))
WORKING = StatusView("/p/builder/docs/STATUS.md", "w1", Done(done=False, why="no line begins with '## DONE'"))
STILL = GitView(ref="refs/remotes/origin/main", tip=A, head=A, tree=TreeView(A, at=NOW))


def seen(f, at=0, **more):
    where = more.pop("place", place(f, at))
    facts = {"place": where, "index": where.index if where else None, "status": WORKING, "git": STILL}
    return LoopSeen(**(facts | more))


def settled(f, index=0, **more):
    """A memory that has seen this phase done a while ago."""
    ids = tuple(p.id for p in f.loop.phases)
    facts = {
        "looked": ids[index], "done_phase": ids[index], "done_digest": "d1", "done_since": NOW - 10,
        "repo": f.loop.handoff.repo, "branch": f.loop.handoff.branch, "tip": A,
    }  # fmt: skip
    return LoopMemory(**(facts | more))


def decide(f, memory=None, view=None, now=NOW):
    """Both clocks show `now`."""
    return decide_loop(LoopCase(f, f.loop, memory or LoopMemory(), view or seen(f), Moment(now, now)))


def moves(plan):
    return effects(plan, Move)


def effects(plan, kind):
    return [e for e in plan.effects if isinstance(e, kind)]


def pings(plan):
    """The messages, without the agents they are for."""
    return [message for _, message in plan.messages]


class Crash(BaseException):
    """The process ends here."""


class MemoryDisk:
    """Files in a dictionary. Every change is durable; the process can be made to die around any of them."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.changes = 0
        self.die_at: int | None = None  # die at this change ...
        self.after = False  # ... after it rather than before

    def read(self, path, cap=1 << 20):
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def write(self, path, data, *, sync=True):
        with self._change():
            self.files[path] = data

    def append(self, path, data, *, sync):
        self.files[path] = self.files.get(path, b"") + data

    def remove(self, path):
        if path in self.files:
            with self._change():
                del self.files[path]

    def rename(self, old, new, *, sync=True):
        with self._change():
            self.files[new] = self.files.pop(old)

    def stat(self, path):
        if path in self.files:
            body = self.files[path]
            return FileStat(len(body), hash(body), 1, 0o100600)
        if any(name.startswith(f"{path}/") for name in self.files):
            return FileStat(0, 0, 2, 0o040700)
        return None

    def names(self, path):
        lead = f"{path}/"
        return tuple(sorted({n[len(lead) :].split("/")[0] for n in self.files if n.startswith(lead)}))

    def make_dir(self, path):
        pass

    def touch(self, path):
        self.files.setdefault(path, b"")

    @contextlib.contextmanager
    def _change(self):
        self.changes += 1
        dying = self.die_at is not None and self.changes == self.die_at
        if dying and not self.after:
            raise Crash
        yield
        if dying:
            raise Crash


def change(thing, **more):
    return replace(thing, **more)
