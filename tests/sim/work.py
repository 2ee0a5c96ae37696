"""What the agents of a loop do in the repository: they claim, review, mark a phase as done, and err.

Every commit and every marker is made at the end of a turn of an agent that truly ran and worked. What is
true of it is kept beside it; the oracles judge by that, never by the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.sim.agents import SimAgent
from tests.sim.names import ADVERSARY, BUILDER, CLOSER, GATES, status_of
from tests.sim.repo import SimRepo

DONE = "# Status\n\n## DONE\n\nEverything that the plan asks for is there.\n"
NOT_DONE = ("# Status\n\nWorking on it.\n", "# Status\n\n## DONE\n\nNot yet.\n", "## TODO\n- all of it\n")


@dataclass
class Manners:
    """How careless this seed's agents are."""

    passes: float = 0.7
    premature: float = 0.15
    sloppy: float = 0.3
    amends: float = 0.1

    def make_peace(self) -> None:
        """From now on they do as they should."""
        self.passes, self.premature, self.sloppy, self.amends = 1.0, 0.0, 0.0, 0.0


class Work:
    """The hands of both sides. `good` is true while the check would pass for the work tree as it is."""

    def __init__(self, repo: SimRepo, rng: Random) -> None:
        self.repo = repo
        self.rng = rng
        self.manners = Manners()
        self.good = True
        self.committed_good = True
        self.changed_at = -1.0  # universe time of the last change to what gates and markers say
        self.done: set[str] = set()  # phases whose status file truly says so, now
        self.coverage = 50.0
        self.finished: list[str] = []  # runs of the closing task that ended well
        self.commits_made = self.edits = 0

    # -- turns

    def turn(self, agent: SimAgent) -> None:
        """An agent has worked for a while; this is what came of it."""
        if agent.name == CLOSER:
            self.finished.append(agent.proc.run)
            agent.die(code=0)
        elif agent.name == BUILDER and agent.phase:
            self._build(agent.phase, agent.clock.t)
        elif agent.name == ADVERSARY and agent.phase:
            self._review(agent.phase)

    def _build(self, phase: str, now: float) -> None:
        repo, rng, manners = self.repo, self.rng, self.manners
        repo.merge()
        self.changed_at = now
        if not manners.sloppy:  # a careful one leaves what is measured better than it was
            self.coverage += 1.0
        if rng.random() < manners.sloppy / 2:  # tries something, and commits it later or never
            self._edit(good=rng.random() < 0.5)
        elif repo.dirty and rng.random() < manners.sloppy / 2:
            repo.discard()
            self.good = self.committed_good
        if self._reviewed(phase):
            if (repo.dirty or not self.good) and rng.random() >= manners.sloppy:
                self.good = True
                self._commit("tidy up", phase=phase)
            if rng.random() >= manners.sloppy:
                self._mark(phase)
        elif rng.random() < manners.premature:
            self._mark(phase)
        elif phase in self.done and rng.random() < 0.5:
            self._unmark(phase)
        else:
            self._edit(good=rng.random() >= manners.sloppy)
            self.coverage += rng.choice((-1.0, 0.0, 1.0)) if manners.sloppy else 0.0
            last = repo.commits[repo.head]
            if last.kind == "claim" and rng.random() < manners.amends:
                repo.amend()
                repo.push(force=True)
            elif not self._open_claims(phase):
                self.commits_made += 1
                self._commit(f"claim({phase}): part {self.commits_made}", phase=phase, kind="claim")
        if rng.random() < manners.sloppy:
            repo.dirty.add("notes.txt")
        repo.push()

    def _edit(self, *, good: bool) -> None:
        """The work tree changes, without a commit."""
        self.good = good
        self.edits += 1
        self.repo.write("src.py", f"{self.edits} {good}\n".encode(), tracked=False)

    def _commit(self, subject: str, *, phase: str, kind: str = "") -> None:
        self.committed_good = self.good
        self.repo.commit(subject, phase=phase, kind=kind)

    def _review(self, phase: str) -> None:
        repo = self.repo
        if self._open_claims(phase, tip=repo.remote):
            verdict = "PASS" if self.rng.random() < self.manners.passes else "FAIL"
            words = {"PASS": "looks right", "FAIL": "cannot PASS yet"}[verdict]
            repo.commit_elsewhere(
                f"review({phase}): {verdict}, {words}", phase=phase, kind="review", verdict=verdict
            )

    def _open_claims(self, phase: str, tip: str = "") -> bool:
        """Is there a claim that no review has seen?"""
        tip = tip or self.repo.head
        seen = set().union(*(self.repo.ancestors(r.hash) for r in self.repo.of(tip, phase, "review")), set())
        return any(c.hash not in seen for c in self.repo.of(tip, phase, "claim"))

    def _reviewed(self, phase: str) -> bool:
        return bool(self.repo.of(self.repo.head, phase, "claim")) and self.repo.passed(self.repo.head, phase)

    def _mark(self, phase: str) -> None:
        self.done.add(phase)
        self.repo.write(status_of(phase), DONE.encode())
        self._commit(f"status of {phase}", phase=phase)

    def _unmark(self, phase: str) -> None:
        self.done.discard(phase)
        self.repo.write(status_of(phase), self.rng.choice(NOT_DONE).encode())
        self._commit(f"status of {phase}", phase=phase)

    def known(self) -> set[str]:
        """Every commit so far."""
        return self.repo.ancestors(self.repo.head) | self.repo.ancestors(self.repo.remote)

    def begin_again(self, phases: Sequence[str], known: set[str]) -> None:
        """A person goes back to a phase: its markers are taken away, and older commits say nothing of it."""
        for phase in phases:
            self.done.discard(phase)
            self.repo.remove(status_of(phase))
            self.repo.before[phase] = known

    # -- gates

    def answer(self, argv: Sequence[str]) -> tuple[int, bytes]:
        """What a child of the watchdog finds."""
        if argv[0] == "git":
            return self.repo.answer(argv)
        if argv[-1] == "measure":
            return 0, f"coverage: {self.coverage}\n".encode()
        return (0, b"ok\n") if self.good else (1, b"1 failed\n")

    def may_advance(self, phase: str) -> str:
        """Why this phase may not be left now, by what is true; empty if it may."""
        if phase not in self.done:
            return "its status file does not say that it is done"
        kinds = " ".join(GATES[phase])
        if "'check'" in kinds and not self.good:
            return "its check does not pass"
        if "clean" in kinds and self.repo.dirty:
            return "the work tree is not clean"
        if "review" in kinds and not self.repo.passed(self.repo.tracking, phase):
            return "no review passes every claim of it"
        return ""
