"""An advance is never made twice, skipped or lost, whatever is killed when (I19, I39, I49, T55)."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import pytest

from fleet.core.effects import CallTask
from fleet.core.loop.decide_loop import decide_loop
from fleet.core.loop.loop_case import GateJob, LoopCase, LoopJob, Place, ping_id
from fleet.core.model import Gate, Handoff, OnComplete
from fleet.core.words import Outcome, PingAbout
from fleet.ports import Host, JobEnd
from fleet.store.documents import Store
from fleet.store.house import House
from fleet.store.position import PhaseBook
from fleet.supervisor.loop import LoopKeeper
from fleet.supervisor.phase import MARKER
from fleet.supervisor.world import World
from fleet.times.moment import Moment
from tests.unit.loops import A, B, Crash, MemoryDisk, change, fleet, place

REPO = "/p/builder"


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def wall(self):
        return self.now

    def mono(self):
        return self.now


class FakeChildren:
    """Children that answer at the next look: git from a list of commits, gates by their command."""

    def __init__(self, story):
        self.story = story
        self.ended = []

    def start(self, key, argv, *, cwd, timeout, log="", env=()):
        if key is LoopJob.HISTORY:
            base, _, tip = argv[-2].rpartition("...")
            out = self.story.log(base, tip)
        elif isinstance(key, GateJob):
            self.story.gates_run.append(key)
            out = b""
        else:
            out = b""
        failed = self.story.gates_fail and isinstance(key, GateJob)
        self.ended.append(JobEnd(key, int(failed), out, 0.1, log))
        return ""

    def poll(self):
        ended, self.ended = tuple(self.ended), []
        return ended

    def keys(self):
        return frozenset(e.key for e in self.ended)

    def cancel(self, key):
        self.ended = [e for e in self.ended if e.key != key]


def told(commit):
    """The id of the message that tells the adversary of a claim."""
    return ping_id(PingAbout.CLAIM, commit, "adversary")


class Story:
    """A project whose builder does each phase once it is in it, claims it, and marks it done."""

    def __init__(self, f):
        self.f = f
        self.disk = MemoryDisk()
        self.clock = Clock()
        self.commits = []  # (hash, subject), oldest first
        self.gates_fail = False
        self.gates_run = []
        self.outbox = {}  # ids of the messages that were put there, in their order
        self.tasks = []
        self.places = []  # every place that was ever on disk
        self.disk.files |= {
            "/p/kickoff.md": b"{phase_id}",
            "/p/roles/builder.md": b"build",
            "/p/roles/adversary.md": b"doubt",
            f"{REPO}/.git/HEAD": b"ref: refs/heads/main\n",
            f"{REPO}/.git/config": b"",
            **{f"/p/plans/{p.id}.md": b"plan" for p in f.loop.phases},
        }
        self.commit("start")
        self.boot()

    def boot(self):
        """A new watchdog over what is on disk."""
        world = World(
            tmux=None, processes=None, clock=self.clock, disk=self.disk, host=Host(), servers=None,
            locks=SimpleNamespace(state=contextlib.nullcontext), http=None, draw=lambda: "0" * 32,
        )  # fmt: skip
        self.keeper = LoopKeeper(world, House(world, self.f.log_dir), FakeChildren(self))

    def commit(self, subject):
        self.commits.append((f"{len(self.commits) + 1:040x}", subject))
        self.disk.files[f"{REPO}/.git/refs/heads/main"] = self.commits[-1][0].encode() + b"\n"

    def log(self, base, tip):
        hashes = [h for h, _ in self.commits]
        after = hashes.index(base) + 1 if base in hashes else 0
        chosen = self.commits[after : hashes.index(tip) + 1]
        return b"\0".join(f">{h} {i} \t{s}".encode() for i, (h, s) in enumerate(reversed(chosen)))

    def book(self):
        return PhaseBook(
            Store(self.disk, f"{self.f.log_dir}/state", self.clock.wall), contextlib.nullcontext, "phase-idx"
        )

    def work(self):
        """The builder acts on the phase that it finds itself in."""
        now = self.book().read().place
        if now and not now.complete:
            status = f"{REPO}/docs/STATUS-{now.id}.md"
            if status not in self.disk.files:
                self.disk.files[status] = b"# S\n\n## DONE\nAll green.\n"
                self.commit(f"claim({now.id}): built")

    def turn(self):
        memory, seen = self.keeper.recall(), self.keeper.look(self.f, self.f.loop, alive=())
        now = self.clock.now
        decision = decide_loop(LoopCase(self.f, self.f.loop, memory, seen, Moment(now, now)))
        self.keeper.keep(decision)
        done = [(e, self.keeper.do(self.f, self.f.loop, e)) for e in decision.effects]
        for name in self.disk.names(f"{self.f.log_dir}/state/outbox"):
            self.outbox.setdefault(name.partition(".")[2].removesuffix(".json"), 1)
        self.tasks += [e.token for e, result in done if isinstance(e, CallTask) and result.ok]

    def see(self):
        found = self.book().read()
        assert not found.trouble
        if found.place is not None and (not self.places or self.places[-1] != found.place):
            self.places.append(found.place)

    @property
    def complete(self):
        return f"{self.f.log_dir}/{MARKER}" in self.disk.files

    def run(self, kills=(), looks=60):
        """Look until the end, dying before the given changes; every kill is followed by a restart."""
        kills = list(kills)
        self.disk.changes, self.disk.die_at = 0, kills.pop(0) if kills else None
        rest = 2
        for _ in range(looks):
            try:
                self.turn()
            except Crash:
                self.disk.changes, self.disk.die_at = 0, kills.pop(0) if kills else None
                self.boot()
            self.see()
            self.work()
            self.clock.now += 1.0
            rest -= self.complete
            if rest < 0:
                break
        self.disk.die_at = None
        return self


def two_phases(**more):
    handoff = Handoff(repo=REPO, claim_pings=("adversary",), review_pings=("builder",), state_subdir="docs")
    return fleet("p1", "p2", handoff=handoff, **more)


def check(story):
    """Every promise of an advance, over everything that was ever on disk."""
    assert story.complete, "it got there"
    assert [(p.index, p.id) for p in story.places] == [(0, "p1"), (1, "p2"), (2, "")], (
        "by one, once, never back"
    )
    for before, after in zip(story.places, story.places[1:], strict=False):
        assert dict(after.evidence)["status"].endswith(f"STATUS-{before.id}.md")
    claims = [i for i in story.outbox if i.startswith("claim-")]
    made = [told(hash_) for hash_, subject in story.commits if subject.startswith("claim")]
    assert claims == [m for m in made if m in claims], "once each; what is of an older phase is not told"
    assert json.loads(story.disk.files[f"{story.f.log_dir}/{MARKER}"])["phases"] == ["p1", "p2"]
    assert story.disk.files[f"{story.f.log_dir}/state/phase-idx"] == b"2\n"


def test_without_any_kill_the_story_ends():
    story = Story(two_phases()).run()
    check(story)
    assert len([i for i in story.outbox if i.startswith("claim-")]) == 2


def changes_of(f):
    story = Story(f)
    story.disk.die_at = None
    total, real = 0, story.disk.changes
    story.run()
    total = story.disk.changes - real
    assert total > 10
    return total


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_advance_survives_a_kill_around_every_change(after):
    f = two_phases()
    for kill in range(1, changes_of(f) + 1):
        story = Story(f)
        story.disk.after = after
        check(story.run([kill]))


@pytest.mark.long
def test_an_advance_survives_every_pair_of_kills():
    f = two_phases()
    total = changes_of(f)
    for first in range(1, total + 1):
        for second in range(1, total + 1):
            check(Story(f).run([first, second]))


def test_with_gates_and_a_task_it_survives_every_kill_too():
    f = two_phases(gates=[Gate(run="make test")], on_complete=OnComplete("/p/.ao/.go", "reporter"))
    for kill in range(1, changes_of(f) + 8):
        story = Story(f)
        story.disk.files["/p/.ao/.go"] = b""
        story.run([kill], looks=90)
        for _ in range(3):
            story.turn()
        check(story)
        assert len(story.tasks) == 1, "one trigger, one run"
        assert "/p/.ao/.go" not in story.disk.files


def test_a_gate_runs_once_a_commit_and_its_failure_keeps_the_phase():
    f = two_phases(gates=[Gate(run="make test")])
    story = Story(f)
    story.gates_fail = True
    for _ in range(12):
        story.turn()
        story.work()
        story.clock.now += 1
    assert story.book().read().place.id == "p1"
    assert len(story.gates_run) == 1
    assert len([i for i in story.outbox if i.startswith("gate-")]) == 1
    story.gates_fail = False
    story.commit("fix: mended")
    for _ in range(4):
        story.turn()
        story.clock.now += 1
    assert story.book().read().place.id == "p2"
    assert len(story.gates_run) == 2


def test_commits_made_while_nobody_watched_are_told():
    story = Story(two_phases())
    story.turn()
    story.commit("claim(p1): one")
    story.commit("review(p1): FAIL")
    story.boot()
    for _ in range(3):
        story.turn()
    assert sorted(i.split("-")[0] for i in story.outbox) == ["claim", "review"]


# --- the book itself --------------------------------------------------------------------------------


def book(disk):
    return PhaseBook(Store(disk, "/s", lambda: 0.0), contextlib.nullcontext, "phase-idx")


def test_a_move_expects_what_it_was_decided_on():
    f, disk = fleet(), MemoryDisk()
    assert book(disk).move(None, place(f, 0)).ok
    assert book(disk).move(place(f, 0), place(f, 1)).ok
    before = dict(disk.files)
    stale = book(disk).move(place(f, 0), place(f, 1))
    assert (stale.outcome, stale.why) == (Outcome.STALE, "the loop is at p2 meanwhile")
    assert disk.files == before, "a stale move writes nothing"


def test_an_index_changed_between_look_and_move_is_not_overwritten():
    f, disk = fleet(), MemoryDisk()
    book(disk).move(None, place(f, 0))
    disk.files["/s/phase-idx"] = b"2\n"
    assert "changed" in book(disk).move(place(f, 0), place(f, 1)).why
    assert disk.files["/s/phase-idx"] == b"2\n"


@pytest.mark.parametrize("die_at", range(1, 6))
def test_a_half_made_move_is_finished_by_whoever_looks_next(die_at):
    f, disk = fleet(), MemoryDisk()
    book(disk).move(None, place(f, 0))
    disk.changes, disk.die_at = 0, die_at
    with contextlib.suppress(Crash):
        book(disk).move(place(f, 0), place(f, 1))
    disk.die_at = None
    book(disk).mend()
    found = book(disk).read()
    assert found.place in {place(f, 0), place(f, 1)}
    assert found.index == found.place.index
    assert disk.files["/s/phase-idx"] == f"{found.place.index}\n".encode()


def test_an_index_set_back_by_hand_is_not_taken_for_a_half_made_move():
    f, disk = fleet(), MemoryDisk()
    book(disk).move(None, place(f, 0))
    book(disk).move(place(f, 0), place(f, 1))
    disk.files["/s/phase-idx"] = b"0\n"
    book(disk).mend()
    found = book(disk).read()
    assert (found.index, found.place.index) == (0, 1), "shown as it is: the rule holds the loop"


@pytest.mark.parametrize("garbage", [b"", b"x", b"-1", b"1.0", b"\xff", "\u0661".encode()])
def test_an_unreadable_index_is_trouble_and_not_zero(garbage):
    disk = MemoryDisk()
    book(disk).move(None, place(fleet(), 2))
    disk.files["/s/phase-idx"] = garbage
    assert "phase set" in book(disk).read().trouble


def test_a_persons_word_mends_whatever_was_there():
    disk = MemoryDisk()
    disk.files["/s/phase-idx"] = b"rubbish"
    book(disk).set(place(fleet(), 1))
    found = book(disk).read()
    assert (found.index, found.place, found.trouble) == (1, place(fleet(), 1), "")


def test_a_bare_index_is_shown_without_a_place():
    disk = MemoryDisk()
    disk.files["/s/phase-idx"] = b" 2\n"
    found = book(disk).read()
    assert (found.index, found.place) == (2, None)


def test_the_contract_file_is_a_bare_number():
    disk = MemoryDisk()
    book(disk).move(None, place(fleet(), 2))
    assert disk.files["/s/phase-idx"] == b"2\n"
    assert json.loads(disk.files["/s/phase.json"])["data"]["place"]["id"] == "p3"


def test_places_survive_the_disk():
    full = Place(
        1, "p2", ("p1", "p2"), 5.0, A, keep_runs=True, ratchets=(("x", 1.5),), evidence=(("commit", B),)
    )
    disk = MemoryDisk()
    book(disk).move(None, full)
    assert book(disk).read().place == full
    assert book(disk).move(change(full, commit=B), full) != ""
