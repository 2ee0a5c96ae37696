"""Done means done: the checks a finished phase must pass, in order, each once a commit.

A gate runs as a child while the loop goes on healing; its result is kept under the commit it was run
for, so that nothing is run twice and a failure is told once. What a result depends on is its key: the
work tree's commit for commands, the watched ref for reviews. A `clean` gate depends on files that no
commit names, so its failure is looked at again after a while.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from fleet.core.loop import TOLD_CAP, Cancel, Commit, Draft, GateResult, LoopSeen, Ping, Place, RunGate
from fleet.core.model import AgentSpec, Fleet, Gate, Handoff, Phase
from fleet.core.rules.targets import targets, wording

CLEAN_AGAIN_S = 5.0
SAID_CAP = 160
SUBJECT_CAP = 1000  # so much of a commit subject is looked at
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_AGAINST = "FAIL|FAILS|FAILED|BLOCK|BLOCKED|REJECT|REJECTED|NOT|NO|CHANGES|WITHHELD"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """All passed, or what is being waited for."""

    passed: bool
    said: str = ""
    ratchets: tuple[tuple[str, float], ...] = ()


def name_of(gate: Gate) -> str:
    """What a gate is called in tables and messages."""
    if gate.clean:
        return "clean"
    if gate.review:
        return f"review {gate.review}"
    return f"ratchet {gate.metric}" if gate.ratchet else "run"


def print_of(gate: Gate) -> str:
    """A fingerprint: an edited gate has never been run."""
    words = (gate.run, str(gate.clean), gate.review, gate.ratchet, gate.metric)
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def key_of(gate: Gate, seen: LoopSeen) -> str:
    """What the answer depends on; empty when that cannot be seen."""
    if seen.git is None:
        return ""
    commit = seen.git.tip if gate.review else seen.git.head
    return commit or (f"status-{seen.status.digest[:12]}" if seen.status else "")


def job_of(step: RunGate) -> str:
    """The name of a gate's child among the jobs."""
    return f"gate:{step.phase}:{step.index}:{step.print}:{step.key}"


def gates(draft: Draft, phase: Phase, place: Place) -> GateVerdict:
    """Ask the gates in order; start the first that has not answered for this commit."""
    seen, now = draft.seen, draft.now
    ratchets: list[tuple[str, float]] = []
    total = len(phase.gates)
    for index, gate in enumerate(phase.gates):
        label = f"gate {index + 1} of {total} ({name_of(gate)})"
        key = key_of(gate, seen)
        if not key:
            return GateVerdict(passed=False, said=f"{label} cannot be run: the repository cannot be read")
        step = plan_gate(phase, index, place, seen)
        result = _result(step, seen)
        if result is None or _stale(gate, result, now):
            _start(draft, step)
            if result is None:
                return GateVerdict(passed=False, said=f"{label} is running for {key[:12]}")
        if not result.ok:
            _tell(draft, phase, label, result)
            if gate.clean:
                draft.wakes.append(now + CLEAN_AGAIN_S)
            log = f"; log: {result.log}" if result.log else ""
            return GateVerdict(passed=False, said=f"{label} failed for {key[:12]}: {result.said}{log}")
        if gate.ratchet and result.value is not None:
            ratchets.append((gate.metric, result.value))
    cancel_others(draft, "")
    return GateVerdict(passed=True, ratchets=tuple(ratchets))


def plan_gate(phase: Phase, index: int, place: Place, seen: LoopSeen) -> RunGate:
    """Everything needed to run one gate, by the watchdog or by hand."""
    gate = phase.gates[index]
    return RunGate(
        phase=phase.id,
        index=index,
        gate=gate,
        print=print_of(gate),
        key=key_of(gate, seen),
        since=place.commit,
        tip=seen.git.tip if seen.git else "",
        baseline=dict(place.ratchets).get(gate.metric) if gate.ratchet else None,
    )


def cancel_others(draft: Draft, wanted: str) -> None:
    """End gate children that answer a question nobody asks any more."""
    draft.steps.extend(Cancel(j) for j in sorted(draft.seen.jobs) if j.startswith("gate:") and j != wanted)


def _start(draft: Draft, step: RunGate) -> None:
    """One gate at a time; a child for an older commit makes room first."""
    job = job_of(step)
    cancel_others(draft, job)
    if not any(j.startswith("gate:") for j in draft.seen.jobs):
        draft.steps.append(step)


def _result(step: RunGate, seen: LoopSeen) -> GateResult | None:
    wanted = (step.phase, step.index, step.print, step.key)
    found = [r for r in seen.gates if (r.phase, r.gate, r.print, r.key) == wanted]
    return max(found, key=lambda r: r.at, default=None)


def _stale(gate: Gate, result: GateResult, now: float) -> bool:
    return gate.clean and not result.ok and not 0 <= now - result.at < CLEAN_AGAIN_S


def builders(fleet: Fleet) -> tuple[AgentSpec, ...]:
    """Who hears of a failed gate: the side that reviews go to, else the loop's builder."""
    loop = fleet.loop
    named = targets(fleet, loop.handoff.review_pings) if loop else ()
    if named:
        return named
    loops = tuple(a for a in fleet.agents if a.kind == "loop")
    return tuple(a for a in loops if a.role == "builder") or loops[:1]


def _tell(draft: Draft, phase: Phase, label: str, result: GateResult) -> None:
    """Once a commit: what failed, where it can be read. The gate's own words stay in the log."""
    event = f"{phase.id}/{result.gate}/{result.print}/{result.key}"
    if event in draft.memory.told:
        return
    draft.remember(told=(*draft.memory.told, event)[-TOLD_CAP:])
    draft.note("gate.failed", f"{label}: {result.said}", phase=phase.id, commit=result.key, log=result.log)
    where = f" Its output is in {result.log}." if result.log else ""
    text = (
        f"Phase {phase.id} is marked as done, but {label} does not pass for commit {result.key[:12]}.{where}"
        " Mend it and commit; it is checked again for the new commit."
    )
    for agent in builders(draft.fleet):
        id_ = f"gate-{phase.id}-{result.gate}-{result.print}-{result.key[:40]}-{agent.name}"
        words = wording(draft.fleet, agent, text, f"cat {result.log}" if result.log else result.key[:12])
        draft.ping(Ping(id_, agent.name, words, "gate"))


# What a finished child's answer means. Pure, so that the watchdog and the verb agree.


@dataclass(frozen=True, slots=True)
class Answer:
    """How a child ended: its code (None: killed by the time limit), its output, the commits it listed."""

    code: int | None
    text: str = ""
    commits: tuple[Commit, ...] = ()


def judge(step: RunGate, answer: Answer, handoff: Handoff) -> tuple[bool, str, float | None]:
    """Passed or not, in one sentence, with the value of a ratchet."""
    gate = step.gate
    if answer.code is None:
        return False, f"ended after its time limit of {gate.timeout:g} s", None
    if answer.code != 0:
        return False, f"exit code {answer.code}{_last_line(answer.text)}", None
    if gate.clean:
        return _judge_clean(answer.text)
    if gate.review:
        return _judge_review(gate.review, answer.commits, handoff)
    if gate.ratchet:
        return judge_ratchet(gate.metric, answer.text, step.baseline)
    return True, "passed", None


def _judge_clean(text: str) -> tuple[bool, str, None]:
    paths = [p for p in text.split("\0") if p]
    if paths:
        return False, f"{len(paths)} uncommitted or untracked file(s)", None
    return True, "the work tree is clean", None


def _judge_review(verdict: str, commits: tuple[Commit, ...], handoff: Handoff) -> tuple[bool, str, None]:
    for commit in commits:  # newest first
        if re.search(handoff.review_pattern, commit.subject[:SUBJECT_CAP]):
            said = verdict_in(commit.subject, verdict)
            if said == verdict:
                return True, f"review {commit.hash[:12]} says {verdict}", None
            return False, f"the newest review, {commit.hash[:12]}, does not say {verdict}", None
        if re.search(handoff.claim_pattern, commit.subject[:SUBJECT_CAP]):
            return False, f"no review is newer than claim {commit.hash[:12]}", None
    return False, "no review since the phase began", None


def verdict_in(subject: str, verdict: str) -> str:
    """The first verdict in a review's subject, its scope in parentheses left out; empty: none."""
    words = re.sub(r"\([^)]*\)", " ", subject)
    found = re.search(rf"(?<![\w-])(?:({re.escape(verdict)})|(?i:{_AGAINST}))(?![\w-])", words)
    if found is None:
        return ""
    return verdict if found[1] else found[0].upper()


def judge_ratchet(metric: str, text: str, baseline: float | None) -> tuple[bool, str, float | None]:
    """The last number printed may only hold or improve. A name that begins with - falls, others rise."""
    numbers = _NUMBER.findall(text)
    if not numbers:
        return False, f"no number was printed for {metric}", None
    value = float(numbers[-1].replace(",", ""))
    if baseline is None:
        return True, f"{metric} = {value:g}, the first value", value
    falls = metric.startswith("-")
    ok = value <= baseline if falls else value >= baseline
    return ok, f"{metric} = {value:g}, {'was' if ok else 'may not be worse than'} {baseline:g}", value


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f", last line: {lines[-1][:SAID_CAP]}" if lines else ""
