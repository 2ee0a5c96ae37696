"""Gates: in order, once a commit, told once, never in the way."""

from __future__ import annotations

import itertools

import pytest

from fleet.core.effects import CancelGate, LookAtTree, RunGate
from fleet.core.loop.gates import (
    Answer,
    builders,
    judge,
    judge_ratchet,
    key_of,
    name_of,
    print_of,
    verdict_in,
)
from fleet.core.loop.loop_case import Commit, GateResult, LoopJob, TreeView
from fleet.core.model import Gate, Handoff
from tests.unit.loops import (
    DONE,
    NOW,
    STILL,
    WORKING,
    A,
    B,
    C,
    agent,
    change,
    decide,
    effects,
    fleet,
    moves,
    pings,
    place,
    seen,
    settled,
)  # fmt: skip

TESTS, CLEAN = Gate(run="make test", timeout=60), Gate(clean=True)
REVIEW, RATCHET = Gate(review="PASS"), Gate(ratchet="count", metric="coverage")


def result(gate, index=0, *, ok=True, key=A, at=NOW, phase="p1", **more):
    return GateResult(
        phase,
        index,
        print_of(gate),
        key,
        ok=ok,
        said="it said so",
        log="/p/.ao/logs/gates/x.log",
        at=at,
        **more,
    )


def run(gates, *results, git=STILL, jobs=(), memory=None, now=NOW, **more):
    f = fleet(gates=gates)
    view = seen(f, status=DONE, git=git, gates=results, jobs=frozenset(jobs), **more)
    return decide(f, memory or settled(f), view, now)


def test_gates_wait_until_the_phase_is_really_done():
    f = fleet(gates=[TESTS])
    assert not effects(decide(f, settled(f), seen(f, status=WORKING)), RunGate)
    assert not effects(decide(f, None, seen(f, status=DONE)), RunGate), "seen once is not enough"


def test_the_first_gate_is_started_and_the_phase_stays():
    plan = run([TESTS, CLEAN])
    (step,) = effects(plan, RunGate)
    assert (step.index, step.gate, step.key) == (0, TESTS, A)
    assert not moves(plan)
    assert "gate 1 of 2 (run) is running" in plan.shown.state


def test_gates_run_in_order_and_one_at_a_time():
    (step,) = effects(run([TESTS, CLEAN], result(TESTS)), RunGate)
    assert step.index == 1
    plan = run([TESTS, CLEAN], jobs=[effects(run([TESTS]), RunGate)[0].job])
    assert not effects(plan, RunGate)
    assert not effects(plan, CancelGate)


def test_all_passed_for_this_commit_advances():
    plan = run([TESTS, CLEAN], result(TESTS), result(CLEAN, 1))
    assert [m.to.id for m in moves(plan)] == ["p2"]


def test_a_failure_stops_the_rest_and_is_told_once_with_its_log():
    plan = run([TESTS, CLEAN], result(TESTS, ok=False))
    assert not effects(plan, RunGate)
    assert not moves(plan)
    (ping,) = pings(plan)
    assert [(agent, m.about) for agent, m in plan.messages] == [("builder", "gate")]
    assert "/p/.ao/logs/gates/x.log" in ping.text
    assert A[:12] in ping.text
    assert "it said so" not in ping.text, "the gate's words stay in the log"
    assert "gate 1 of 2 (run) failed" in plan.shown.state
    again = run([TESTS, CLEAN], result(TESTS, ok=False), memory=plan.memory)
    assert not pings(again)
    assert not [n for n in again.notes if n.type == "gate.failed"]


def test_a_new_commit_is_judged_anew_and_told_anew():
    told = run([TESTS], result(TESTS, ok=False))
    moved = change(STILL, head=B, tree=TreeView(B, at=NOW))
    memory = told.memory
    (step,) = effects(run([TESTS], result(TESTS, ok=False), git=moved, memory=memory), RunGate)
    assert step.key == B
    plan = run([TESTS], result(TESTS, ok=False), result(TESTS, ok=False, key=B), git=moved, memory=memory)
    assert len(pings(plan)) == 1
    assert B[:12] in pings(plan)[0].text
    assert pings(plan)[0].id != pings(told)[0].id


def test_an_edited_gate_has_never_been_run():
    assert effects(run([change(TESTS, run="make check")], result(TESTS)), RunGate)
    assert moves(run([change(TESTS, timeout=5)], result(TESTS))), "a time limit does not change what it says"


def test_a_result_of_another_phase_says_nothing():
    assert effects(run([TESTS], result(TESTS, phase="p0")), RunGate)


def test_a_gate_at_work_for_an_older_commit_makes_room():
    old = RunGate("p1", 0, TESTS, print_of(TESTS), A).job
    plan = run([TESTS], git=change(STILL, head=B, tree=TreeView(B, at=NOW)), jobs=[old])
    assert effects(plan, CancelGate) == [CancelGate(old)]
    assert not effects(plan, RunGate)


def test_a_failed_clean_is_looked_at_again_because_no_commit_names_it():
    assert not effects(run([CLEAN], result(CLEAN, ok=False, at=NOW - 1)), RunGate)
    plan = run([CLEAN], result(CLEAN, ok=False, at=NOW - 6))
    assert effects(plan, RunGate)
    assert len(pings(plan)) == 1
    again = run([CLEAN], result(CLEAN, ok=False, at=NOW - 6), memory=plan.memory)
    assert not pings(again), "looked at again is not told again"
    plan = run([TESTS], result(TESTS, ok=False, at=NOW - 6))
    assert not effects(plan, RunGate), "a command's answer stands"


def test_a_review_hangs_on_the_watched_ref_not_on_the_work_tree():
    git = change(STILL, tip=B, head=A)
    f = fleet(gates=[REVIEW])
    view = seen(f, status=DONE, git=git)
    assert key_of(REVIEW, view) == B
    assert key_of(TESTS, view) == A


def test_without_a_commit_the_status_text_is_the_key():
    f = fleet(gates=[TESTS])
    assert key_of(TESTS, seen(f, status=DONE, git=change(STILL, head="", tip=""))) == "status-d1"


def test_a_repository_that_cannot_be_read_holds_the_gates():
    plan = run([TESTS], git=None)
    assert not effects(plan, RunGate)
    assert not moves(plan)
    assert "cannot be read" in plan.shown.state


def test_the_ratchet_is_given_the_value_accepted_so_far():
    f = fleet(gates=[RATCHET])
    view = seen(f, place=place(f, 0, ratchets=(("coverage", 80.0),)), status=DONE)
    (step,) = effects(decide(f, settled(f), view), RunGate)
    assert step.baseline == 80.0


def test_who_hears_of_a_failure():
    assert [a.name for a in builders(fleet())] == ["builder"]
    solo = (agent("maker", role="builder"), agent("other", role="scribe"))
    quiet = Handoff(repo="/p/b")
    assert [a.name for a in builders(fleet(agents=solo, handoff=quiet))] == ["maker"]
    assert [a.name for a in builders(fleet(agents=solo[1:], handoff=quiet))] == ["other"]


def test_gates_have_names():
    assert [name_of(g) for g in (TESTS, CLEAN, REVIEW, RATCHET)] == [
        "run",
        "clean",
        "review PASS",
        "ratchet coverage",
    ]


# --- what an answer means ---------------------------------------------------------------------------

HANDOFF = Handoff(repo="/p/b")


def verdict(gate, answer, baseline=None, **more):
    return judge(RunGate("p1", 0, gate, "x", A, baseline=baseline, **more), answer, HANDOFF)


@pytest.mark.parametrize(
    ("gate", "answer", "ok", "words"),
    [
        (TESTS, Answer(0, "40 passed"), True, "passed"),
        (TESTS, Answer(1, "x\n3 failed\n\n"), False, "exit code 1, last line: 3 failed"),
        (TESTS, Answer(-9, ""), False, "exit code -9"),
        (TESTS, Answer(None, "hanging"), False, "time limit of 60 s"),
        (CLEAN, Answer(0, ""), True, "clean"),
        (CLEAN, Answer(0, " M a.py\0?? b.py\0"), False, "2 uncommitted"),
        (CLEAN, Answer(128, "fatal: not a git repository"), False, "exit code 128"),
        (RATCHET, Answer(0, "coverage: 81.5%\n"), True, "coverage = 81.5"),
        (RATCHET, Answer(0, "no figure"), False, "no number"),
        (RATCHET, Answer(1, "81"), False, "exit code 1"),
    ],
)
def test_an_answer_is_judged(gate, answer, ok, words):
    good, said, _ = verdict(gate, answer)
    assert good is ok
    assert words in said


def line(*subjects, start=1):
    """Commits on one line of history, newest first."""
    made = [Commit(f"{i:040x}", s, at=i) for i, s in enumerate(subjects, start)]
    return (*(change(c, parents=(after.hash,)) for c, after in itertools.pairwise(made)), *made[-1:])


@pytest.mark.parametrize(
    ("subjects", "ok"),
    [
        (["review(p1): PASS"], True),
        (["review(p1): PASS", "claim(p1): lexer"], True),
        (["claim(p1): again", "review(p1): PASS", "claim(p1): lexer"], False),
        (["fix: later work", "review(p1): PASS", "claim(p1): lexer"], True),
        (["review(p1): FAIL", "review(p1): PASS", "claim(p1): x"], False),
        (["review(p1): PASS", "review(p1): FAIL", "claim(p1): x"], True),
        (["review(p1): found two holes", "claim(p1): x"], False),
        (["review(p1): more probes", "review(p1): PASS", "claim(p1): x"], False),
        (["claim(p1): x"], False),
        (["docs: PASS"], False),
        ([], False),
        (["review(p2): PASS", "claim(p1): x"], False),
        (["review(p0): PASS", "claim(p1): x"], False),
        (["review(p10): PASS", "claim(p1): x"], False),
        (["review: PASS", "claim(p1): x"], False),
        (["review(p2): FAIL", "review(p1): PASS", "claim(p1): x"], True),
        (["review: FAIL", "review(p1): PASS", "claim(p1): x"], False),
        (["review(p1/2): PASS", "claim(p1/2): x"], True),
    ],
)
def test_a_review_must_be_newer_than_the_newest_claim_and_name_the_phase(subjects, ok):
    good, said, _ = verdict(REVIEW, Answer(0, "", line(*subjects)))
    assert good is ok
    assert said


def graph(*rows):
    """Rows of (hash letter, subject, parents), in any order a log may list them."""
    return tuple(Commit(h * 40, s, at=5, parents=tuple(p * 40 for p in up)) for h, s, up in rows)


MERGE, SAYS_PASS = ("d", "merge", "bc"), ("b", "review(p1): PASS", "a")
CLAIM_TWO, CLAIM_ONE = ("c", "claim(p1): two", "a"), ("a", "claim(p1): one", "")


@pytest.mark.parametrize(
    ("commits", "ok"),
    [
        # the review and an unreviewed claim were merged: whichever a log lists first
        (graph(MERGE, SAYS_PASS, CLAIM_TWO, CLAIM_ONE), False),
        (graph(MERGE, CLAIM_TWO, SAYS_PASS, CLAIM_ONE), False),
        # a review after the merge has seen both
        (graph(("e", "review(p1): PASS", "d"), MERGE, ("b", "fix", "a"), CLAIM_TWO, CLAIM_ONE), True),
        # two reviewers side by side
        (graph(MERGE, SAYS_PASS, ("c", "review(p1): FAIL", "a"), CLAIM_ONE), False),
        (graph(MERGE, SAYS_PASS, ("c", "review(p1): PASS", "a"), CLAIM_ONE), True),
    ],
)  # fmt: skip
def test_every_claim_is_an_ancestor_of_the_review_that_passes_it(commits, ok):
    good, said, _ = verdict(REVIEW, Answer(0, "", commits))
    assert good is ok
    assert said


def test_after_a_rewrite_a_review_from_before_the_phase_says_nothing():
    commits = line("review(p1): PASS", "claim(p1): x", start=50)
    assert verdict(REVIEW, Answer(0, "", commits), since=C, tip=A, begun=100.0)[0] is False
    assert verdict(REVIEW, Answer(0, "", commits), since=C, tip=A, begun=10.0)[0] is True
    kept = (*commits[:-1], change(commits[-1], parents=(C,)))
    assert verdict(REVIEW, Answer(0, "", kept), since=C, tip=A, begun=100.0)[0] is True, (
        "dates do not matter then"
    )


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("review(p1): PASS", ("p1", "PASS")),
        ("review(p1) PASS", ("p1", "PASS")),
        ("review(p1): PASS, no findings", ("p1", "PASS")),
        ("review(p1): PASS: tried empty, huge and missing files", ("p1", "PASS")),
        ("review(p1): PASS no findings", ("p1", "PASS")),
        ("review(p1): **PASS**", ("p1", "PASS")),
        ("review(no-crash): PASS", ("no-crash", "PASS")),
        ("review(p1): PASS, 4 of 4 probes hold", ("p1", "PASS")),
        ("review PASS p1", ("", "PASS")),
        ("review p1 PASS", ("", "")),
        ("review(p1): FAIL, will PASS when mended", ("p1", "FAIL")),
        ("review(p1): fail", ("p1", "FAIL")),
        ("review(p1): REJECTED", ("p1", "REJECTED")),
        ("review(p1): not a PASS", ("p1", "")),
        ("review(p1): can't PASS yet", ("p1", "")),
        ("review(p1): cannot PASS", ("p1", "")),
        ("review(p1): unable to PASS", ("p1", "")),
        ("review(p1): would PASS otherwise", ("p1", "")),
        ("review(p1): PASS withheld", ("p1", "")),
        ("review(p1): PASS - withheld", ("p1", "")),
        ("review(p1): PASS? no", ("p1", "")),
        ("review(p1): PASS ?", ("p1", "")),
        ("review(p1): PASS, no", ("p1", "")),
        ("review(p1): PASS/FAIL pending", ("p1", "")),
        ("review(p1): PASS / FAIL", ("p1", "")),
        ("review(p1): PASS or FAIL", ("p1", "")),
        ("review(p1): PASS once mended", ("p1", "")),
        ("review(p1): PASS (not yet)", ("p1", "")),
        ("review(p1): no issues, PASS", ("p1", "")),
        ("review(p1): BYPASS", ("p1", "")),
        ("review(p1): PASSED", ("p1", "")),
        ("review(p1): PASS-ish", ("p1", "")),
        ("review(p1): pass", ("p1", "")),
        ("review(PASS): looked", ("PASS", "")),
        ("review: NON-PASS", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_verdict_is_the_first_word_after_the_scope(subject, expected):
    assert verdict_in(subject, "PASS") == expected


# --- the work tree ----------------------------------------------------------------------------------

DIRTY = TreeView(A, tracked="t1", at=NOW)


def test_a_result_belongs_to_the_commit_and_the_work_tree():
    dirty = change(STILL, tree=DIRTY)
    (step,) = effects(run([TESTS, CLEAN], result(TESTS), git=dirty), RunGate)
    assert (step.index, step.key) == (0, f"{A}+t1.")
    (step,) = effects(run([TESTS, CLEAN], result(TESTS, key=DIRTY.key)), RunGate)
    assert (step.index, step.key) == (0, A), "what passed on a dirty tree is asked again on a clean one"


def test_the_work_tree_is_looked_at_before_the_gates_and_before_the_step():
    assert effects(run([TESTS], git=change(STILL, tree=None)), LookAtTree)
    assert not effects(run([TESTS], git=change(STILL, tree=None), jobs=[LoopJob.WORKTREE]), LookAtTree)
    plan = run([TESTS], result(TESTS), git=change(STILL, tree=TreeView(A, at=NOW - 1)))
    assert effects(plan, LookAtTree), "the look was older than the answer"
    assert not moves(plan)
    plan = run([REVIEW], git=change(STILL, tree=None))
    assert not effects(plan, LookAtTree), "a review does not hang on it"


@pytest.mark.parametrize(("age", "wake"), [(60.0, 5.0), (5.0, 5.0), (2.0, 3.0)])
def test_a_look_at_the_work_tree_that_is_under_way_is_waited_for_without_looking_on(age, wake):
    tree = TreeView(A, at=NOW - age)
    plan = run([TESTS], result(TESTS, ok=False), git=change(STILL, tree=tree), jobs=[LoopJob.WORKTREE])
    assert plan.wake_at is not None
    assert plan.wake_at - NOW == pytest.approx(wake)


def test_a_phase_without_gates_costs_no_look():
    assert not effects(run([], git=change(STILL, tree=None)), LookAtTree)


def test_a_failure_is_told_once_a_commit_whatever_the_work_tree_does():
    first = run([TESTS], result(TESTS, ok=False))
    git = change(STILL, tree=DIRTY)
    memory = first.memory
    second = run([TESTS], result(TESTS, ok=False, key=DIRTY.key), git=git, memory=memory)
    assert not pings(second)


def test_a_phase_that_is_done_again_takes_nothing_from_before():
    f = fleet(gates=[TESTS])
    view = seen(f, place=place(f, 0, since=7.0), status=DONE, gates=(result(TESTS),))
    assert effects(decide(f, settled(f), view), RunGate)
    view = seen(f, place=place(f, 0, since=7.0), status=DONE, gates=(result(TESTS, begun=7.0),))
    assert moves(decide(f, settled(f), view))


def test_a_gate_during_which_files_changed_is_asked_again():
    assert not effects(run([TESTS], result(TESTS, ok=False, moved=True, at=NOW - 1)), RunGate)
    assert effects(run([TESTS], result(TESTS, ok=False, moved=True, at=NOW - 6)), RunGate)


@pytest.mark.parametrize(
    ("metric", "text", "baseline", "ok", "value"),
    [
        ("coverage", "81", None, True, 81.0),
        ("coverage", "81", 81.0, True, 81.0),
        ("coverage", "82.5", 81.0, True, 82.5),
        ("coverage", "80.9", 81.0, False, 80.9),
        ("-warnings", "3", 4.0, True, 3.0),
        ("-warnings", "4", 4.0, True, 4.0),
        ("-warnings", "5", 4.0, False, 5.0),
        ("coverage", "lines 10 of 20\nTOTAL 87%", None, True, 87.0),
        ("size", "1,234 bytes", None, True, 1234.0),
        ("t", "-2", None, True, -2.0),
        ("t", "1.5e3", None, True, 1500.0),
        ("t", "python3 v2", None, False, None),
        ("t", "nan inf", None, False, None),
    ],
)
def test_a_ratchet_holds_or_improves(metric, text, baseline, ok, value):
    good, said, found = judge_ratchet(metric, text, baseline)
    assert (good, found) == (ok, value)
    assert said


def test_a_commit_of_the_past_is_not_shown_to_anybody():
    plan = run(
        [REVIEW],
        result(REVIEW, ok=False, key=C),
        git=change(STILL, tip=C, head=C, tree=TreeView(C, at=NOW)),
        memory=settled(fleet(), tip=C),
    )
    assert C[:12] in pings(plan)[0].text
