"""Running gates: what to start for each kind, where its output is kept, what its answer means.

The watchdog and `agents.py gate` share this, so that a replay by hand is the real thing, and what it
finds counts: both keep results in the same book.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from fleet.core.codec import from_plain, to_plain
from fleet.core.effects import RunGate
from fleet.core.loop.gates import Answer, judge
from fleet.core.loop.loop_case import GateResult, Job, TreeView
from fleet.core.model import Loop
from fleet.host import git
from fleet.ports import JobEnd
from fleet.store.documents import Store
from fleet.times.moment import Wall

DOCUMENT = "gates"
RESULTS_CAP = 60
OUTPUT_TAIL = 64 << 10


def gate_command(loop: Loop, step: RunGate, log_dir: str) -> tuple[list[str], dict[str, str]]:
    """What to run for a gate, and with which additions to the environment."""
    repo, gate = loop.handoff.repo, step.gate
    if gate.clean:
        return git.status_command(repo, log_dir), git.ENV
    if gate.review:
        return git.since_command(repo, step.since, step.tip), git.ENV
    return ["/bin/sh", "-c", gate.run or gate.ratchet], {}


def gate_log(log_dir: str, step: RunGate) -> str:
    """Where a gate's output is kept: one file a phase, gate and commit."""
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in step.phase)[:60]
    return f"{log_dir}/logs/gates/{safe}-{step.index + 1}-{step.key[:12]}.log"


def gate_result(step: RunGate, ended: JobEnd[Job], loop: Loop, wall: Wall) -> GateResult:
    """A finished child, judged."""
    text = ended.output[-OUTPUT_TAIL:].decode("utf-8", "replace")
    commits = git.parse_commits(ended.output) if step.gate.review else ()
    ok, said, value = judge(step, Answer(ended.code, text, commits), loop.handoff)
    return GateResult(
        phase=step.phase,
        gate=step.index,
        print=step.print,
        key=step.key,
        ok=ok,
        said=said,
        log=ended.log,
        at=wall,
        seconds=ended.seconds,
        value=value,
        begun=step.begun,
    )


def proved_for(result: GateResult, step: RunGate, after: TreeView) -> GateResult:
    """The result under the work tree it was proved for: what a gate leaves behind untracked is its own."""
    before = step.tree
    if before is None or (before.head, before.tracked) == (after.head, after.tracked):
        return result._replace(key=after.key) if before is not None else result
    why = "files of the work tree changed while it ran; it is asked again"
    return result._replace(ok=False, said=why, key=after.key, moved=True)


class GateBook:
    """What gates have said so far, by the watchdog or by hand."""

    def __init__(self, store: Store, lock: Callable[[], AbstractContextManager[object]]) -> None:
        self._store = store
        self._lock = lock

    def read(self) -> tuple[GateResult, ...]:
        """All that is kept; unreadable results are none, for they can be had again."""
        data = self._store.load(DOCUMENT) or {}
        try:
            return tuple(from_plain(GateResult, row) for row in data.get("results", ()))
        except ValueError:
            return ()

    def keep(self, result: GateResult) -> None:
        """Keep one; of the same question only the newest answer."""
        with self._lock():
            same = (result.phase, result.gate, result.print, result.key, result.begun)
            others = [r for r in self.read() if (r.phase, r.gate, r.print, r.key, r.begun) != same]
            rows = [to_plain(r) for r in (*others, result)][-RESULTS_CAP:]
            self._store.save(DOCUMENT, {"results": rows})
