"""Done means done: the checks a finished phase must pass, in order, each once a commit.

A gate runs as a child while the loop goes on healing; its result is kept under what it was run for, so
that nothing is run twice and a failure is told once a commit. What a result depends on is its key: the
commit *and* the state of the work tree for commands, the watched ref for reviews. It belongs to one go at
its phase: a phase that is done again is proved again. While a phase is done and does not pass, the work
tree is looked at every few seconds; and once more after the last gate, before the phase moves on.

A review passes when its subject names this phase and gives the wanted verdict as its first word, when every
claim since the phase began is an ancestor of it, and when no other review of this phase stands beside or
above it with another verdict. Ancestry is git's, not the order in which a log happens to list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from fleet.core.decision import Note
from fleet.core.effects import CancelGate, LookAtTree, LoopEffect, RunGate
from fleet.core.loop.loop_case import (
    Commit,
    GateJob,
    GateResult,
    LoopCase,
    LoopJob,
    LoopPart,
    LoopSeen,
    Place,
    targets,
)
from fleet.core.model import Fleet, Gate, Handoff, Member, Phase
from fleet.core.words import EventType, PingAbout
from fleet.text import plural
from fleet.times.moment import UNNAMED, Wall, later

TREE_AGAIN_S = 5.0  # how long a look at the work tree is believed
TOLD_CAP = 200  # failures remembered as told
SAID_CAP = 160
SUBJECT_CAP = 1000  # so much of a commit subject is looked at
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
FAILS = frozenset({"FAIL", "FAILS", "FAILED", "BLOCK", "BLOCKED", "REJECT", "REJECTED", "CHANGES"})
_SCOPE = re.compile(r"[\w.-]+(?:\((?P<scope>[^()]*)\))?!?\s*:?\s*")
_TAKEN_BACK = re.compile(  # right after the verdict
    r"[\W_]*(?:(?:withheld|withdrawn|revoked|retracted|denied|refused|pending|deferred|postponed|if|once|when|after"
    r"|until|till|unless|except|only|but|not|false|later|soon|tomorrow|tbd|tbc|or|maybe|almost|nearly)\b|no\W*$)",
    re.IGNORECASE,
)


class GateVerdict(NamedTuple):
    """All passed, or what is being waited for; and what that leads to."""

    passed: bool
    part: LoopPart
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
    if gate.review:
        commit = seen.git.tip
    else:
        commit = seen.git.tree.key if seen.git.head and seen.git.tree else seen.git.head
    return commit or (f"status-{seen.status.digest[:12]}" if seen.status else "")


def commit_of(key: str) -> str:
    """The commit in a key: what is told of it."""
    return key.partition("+")[0]


def gates(case: LoopCase, phase: Phase, place: Place) -> GateVerdict:
    """Ask the gates in order; start the first that has not answered for this commit."""
    seen, memory = case.seen, case.memory
    ratchets: list[tuple[str, float]] = []
    if not _tree_known(case, phase):
        asked = LoopPart(memory, effects=ask_tree(case))
        return GateVerdict(passed=False, part=asked, said="looking at the work tree")
    for index, gate in enumerate(phase.gates):
        label = f"gate {index + 1} of {len(phase.gates)} ({name_of(gate)})"
        key = key_of(gate, seen)
        if not key:
            said = f"{label} cannot be run: the repository cannot be read"
            return GateVerdict(passed=False, part=LoopPart(memory), said=said)
        run = plan_gate(phase, index, place, seen)
        result = _result(run, seen)
        if result is None:
            started = LoopPart(memory, effects=_start(case, run))
            return GateVerdict(passed=False, part=started, said=f"{label} is running for {key[:12]}")
        if not result.ok:
            failed = _failed(case, phase, label, run, result)
            log = f"; log: {result.log}" if result.log else ""
            return GateVerdict(
                passed=False, part=failed, said=f"{label} failed for {key[:12]}: {result.said}{log}"
            )
        if gate.ratchet and result.value is not None:
            ratchets.append((gate.metric, result.value))
    return GateVerdict(passed=True, part=LoopPart(memory, effects=cancelled(case)), ratchets=tuple(ratchets))


def _failed(case: LoopCase, phase: Phase, label: str, run: RunGate, result: GateResult) -> LoopPart:
    """Tell of the failure, and ask again what another look at the work tree may change."""
    again = (run.gate.clean or result.moved) and _old(result.at, case.now.wall)
    part = LoopPart(case.memory, effects=_start(case, run) if again else ())
    told = part.joined(_told(case, phase, label, result))
    return told.joined(_look_again(case.after(told), phase))


def _without_tree(phase: Phase) -> bool:
    """Whether no gate of this phase depends on the work tree."""
    return all(g.review for g in phase.gates)


def _tree_known(case: LoopCase, phase: Phase) -> bool:
    """Whether the state of the work tree is known for this commit, as far as that matters."""
    git = case.seen.git
    if git is None or not git.head or _without_tree(phase):
        return True
    return git.tree is not None and git.tree.head == git.head


def seen_just_now(case: LoopCase, phase: Phase) -> bool:
    """Whether the work tree was looked at just now: what passed was proved for what is there."""
    git = case.seen.git
    if git is None or git.tree is None or _without_tree(phase):
        return True
    proved = max((r.at for r in case.seen.gates if r.phase == phase.id), default=UNNAMED)
    return git.tree.at >= proved and not _old(git.tree.at, case.now.wall)


def _look_again(case: LoopCase, phase: Phase) -> LoopPart:
    """What failed is asked again as soon as the work tree is another one."""
    tree, now = case.seen.git.tree if case.seen.git else None, case.now.wall
    if tree is None or _without_tree(phase):
        return LoopPart(case.memory)
    if _old(tree.at, now):  # the child's answer is a wake-up of its own
        return LoopPart(case.memory, effects=ask_tree(case), wakes=(later(now, TREE_AGAIN_S),))
    return LoopPart(case.memory, wakes=(later(tree.at, TREE_AGAIN_S),))


def ask_tree(case: LoopCase) -> tuple[LookAtTree, ...]:
    """Look at the work tree, unless a child does so already."""
    return () if LoopJob.WORKTREE in case.seen.jobs else (LookAtTree(case.loop.handoff.repo),)


def _old(at: Wall, now: Wall) -> bool:
    return not 0 <= now - at < TREE_AGAIN_S  # also after the clock was set back


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
        begun=place.since,
        tree=seen.git.tree if seen.git and not gate.review else None,
    )


def cancelled(case: LoopCase, wanted: GateJob | None = None) -> tuple[CancelGate, ...]:
    """End the children of gates, except the one whose answer is wanted."""
    return tuple(CancelGate(job) for job in _gate_jobs(case) if job != wanted)


def _gate_jobs(case: LoopCase) -> list[GateJob]:
    return sorted(job for job in case.seen.jobs if isinstance(job, GateJob))


def _start(case: LoopCase, run: RunGate) -> tuple[LoopEffect, ...]:
    """One gate at a time; a child for an older commit makes room first."""
    return cancelled(case, run.job) if _gate_jobs(case) else (run,)


def _result(run: RunGate, seen: LoopSeen) -> GateResult | None:
    wanted = (run.phase, run.index, run.print, run.key, run.begun)
    found = [r for r in seen.gates if (r.phase, r.gate, r.print, r.key, r.begun) == wanted]
    return max(found, key=lambda r: r.at, default=None)


def builders(fleet: Fleet) -> tuple[Member, ...]:
    """Who hears of a failed gate: the side that reviews go to, else the loop's builder."""
    loop = fleet.loop
    named = targets(fleet, loop.handoff.review_pings) if loop else ()
    if named:
        return named
    loops = tuple(a for a in fleet.agents if a.is_loop)
    return tuple(a for a in loops if a.role == "builder") or loops[:1]


def _told(case: LoopCase, phase: Phase, label: str, result: GateResult) -> LoopPart:
    """Once a commit: what failed, where it can be read. The gate's own words stay in the log."""
    commit, told = commit_of(result.key), case.memory.told
    event = f"{phase.id}/{result.gate}/{result.print}/{commit}/{result.begun:.0f}"
    if event in told:
        return LoopPart(case.memory)
    facts = (("phase", phase.id), ("commit", commit), ("log", result.log))
    where = f" Its output is in {result.log}." if result.log else ""
    text = (
        f"Phase {phase.id} is marked as done, but {label} does not pass for commit {commit[:12]}.{where}"
        " Fix it and commit; it is checked again by itself."
    )
    short = f"cat {result.log}" if result.log else commit[:12]
    about = f"{phase.id}-{result.gate}-{result.print}-{commit[:40]}-{result.begun:.0f}"
    return LoopPart(
        case.memory._replace(told=(*told, event)[-TOLD_CAP:]),
        messages=tuple(
            case.ping(agent, about, PingAbout.GATE, (text, short)) for agent in builders(case.fleet)
        ),
        notes=(Note(EventType.GATE_FAILED, f"{label}: {result.said}", facts),),
    )


# What a finished child's answer means. Pure, so that the watchdog and the verb agree.


class Answer(NamedTuple):
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
        return judge_review(step, answer.commits, handoff)
    if gate.ratchet:
        return judge_ratchet(gate.metric, answer.text, step.baseline)
    return True, "passed", None


def _judge_clean(text: str) -> tuple[bool, str, None]:
    paths = [p for p in text.split("\0") if p]
    if paths:
        return False, plural(len(paths), "uncommitted or untracked file"), None
    return True, "the work tree is clean", None


def judge_review(step: RunGate, commits: tuple[Commit, ...], handoff: Handoff) -> tuple[bool, str, None]:
    """Whether a review of this phase says so, with every claim below it and no other verdict beside it."""
    wanted, phase = step.gate.review, step.phase
    reviews = [(c, *verdict_in(c.subject, wanted)) for c in _reviews(step, commits, handoff)]
    mine = [(c, said) for c, scope, said in reviews if _is_about(phase, scope, said)]
    if not mine:
        other = f": {reviews[0][0].hash[:12]} names another phase, or none" if reviews else ""
        return False, f"no review({phase}) since the phase began{other}", None
    claims = matching(commits, handoff.claim_pattern)
    against = [c for c, said in mine if said != wanted]
    known, why = {c.hash: c for c in commits}, ""
    for review, said in mine:  # newest first, as far as a log can tell
        name = f"review {review.hash[:12]}"
        doubt = f"{name} says {said or 'no verdict'}, expected {wanted} as its first word"
        if said == wanted:
            doubt = _unseen_by(review, known, claims, against, wanted)
        if not doubt:
            return True, f"{name} says {wanted}", None
        why = why or doubt
    return False, why, None


def _unseen_by(
    review: Commit, known: dict[str, Commit], claims: Iterable[Commit], against: Iterable[Commit], wanted: str
) -> str:
    """What a review of the wanted verdict was not made on; empty when it has seen all."""
    below, name = ancestors(review.hash, known), review.hash[:12]
    claim = next((c for c in claims if c.hash not in below), None)
    if claim is not None:
        return f"review {name} has not seen claim {claim.hash[:12]}"
    other = next((c for c in against if c.hash not in below), None)
    return f"review {other.hash[:12]} does not say {wanted}, and {name} has not seen it" if other else ""


def _reviews(step: RunGate, commits: tuple[Commit, ...], handoff: Handoff) -> tuple[Commit, ...]:
    """Every review since the phase began."""
    found = matching(commits, handoff.review_pattern)
    if not step.since or step.since == step.tip or any(step.since in c.parents for c in commits):
        return found
    # history was rewritten since: what was written before the phase began says nothing about it
    return tuple(c for c in found if c.at >= int(step.begun))


def _is_about(phase: str, scope: str, said: str) -> bool:
    """Does a review speak of this phase? A failure that names none does as well."""
    return names_phase(scope, phase) or (not scope and said in FAILS)


def matching(commits: Iterable[Commit], pattern: str) -> tuple[Commit, ...]:
    """Those whose subject matches; only so much of a subject is looked at."""
    expression = re.compile(pattern)
    return tuple(c for c in commits if expression.search(c.subject[:SUBJECT_CAP]))


def ancestors(tip: str, known: dict[str, Commit]) -> set[str]:
    """A commit and all that it was made on, as far as they are listed."""
    found: set[str] = set()
    todo = [tip]
    while todo:
        hash_ = todo.pop()
        if hash_ not in found and hash_ in known:
            found.add(hash_)
            todo += known[hash_].parents
    return found


def scope_of(subject: str) -> str:
    """What stands in parentheses behind the first word of a commit's subject."""
    head = _SCOPE.match(subject[:SUBJECT_CAP].strip())
    return (head["scope"] or "").strip() if head else ""


def names_phase(scope: str, phase: str) -> bool:
    """A scope is a phase's id, or one of its items: `p1`, `p1/3`."""
    return scope == phase or scope.startswith(f"{phase}/")


def verdict_in(subject: str, wanted: str) -> tuple[str, str]:
    """The scope of a review's subject and its verdict: the first word after it, closed.

    `wanted` when it is that one, a word of FAILS, else empty: "no issues, PASS" gives no verdict.
    """
    subject = subject[:SUBJECT_CAP].strip()
    head = _SCOPE.match(subject)
    if head is None:
        return "", ""
    scope, rest = (head["scope"] or "").strip(), subject[head.end() :].lstrip("*_` ")
    if rest.startswith(wanted):
        after = rest[len(wanted) :].lstrip("*_`")
        whole = (
            not after or after[0] in ".,;:!)" or (after[0].isspace() and after.lstrip()[:1] not in {"?", "/"})
        )
        return scope, wanted if whole and not _TAKEN_BACK.match(after) else ""
    word = re.match(r"[A-Za-z]+", rest)
    return scope, word[0].upper() if word and word[0].upper() in FAILS else ""


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
    beside = "was" if ok else "may not be worse than"
    return ok, f"{metric} = {value:g}, {beside} {baseline:g}", value


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f", last line: {lines[-1][:SAID_CAP]}" if lines else ""
