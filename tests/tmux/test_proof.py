"""Every advance has its proof: real git, a real fleet, what agents do by mistake."""

from __future__ import annotations

import pytest

from tests.tmux.project import until
from tests.tmux.test_git import commit, run
from tests.tmux.test_loop import LOOP, done, index, kickoff, make, phases, running

__all__ = ["make"]
pytestmark = [pytest.mark.tmux, pytest.mark.long]

CRITIC = """
[[agent]]
name = "critic"
kind = "{kind}"
role = "critic"
backend = "scripted"
env = {{ AO_SCRIPT = "{script}" }}
{more}
"""


def state(p):
    return p.json("status")["loop"]["state"] or ""


def clones(p):
    """The project is the builder's clone; another one is the adversary's."""
    origin, other = p.root.parent / "origin.git", p.root.parent / "adversary"
    run(p.root.parent, "clone", "-q", "--bare", str(p.root), str(origin))
    run(p.root, "remote", "add", "origin", str(origin))
    run(p.root, "fetch", "-q", "origin")
    run(p.root.parent, "clone", "-q", str(origin), str(other))
    return other


def push(where):
    run(where, "push", "-q", "origin", "HEAD:main")


def pull(where):
    run(where, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")


def test_what_passed_on_a_work_tree_says_nothing_of_another_one(make):
    """A change that is thrown away takes its proof with it."""
    p = make(LOOP, "p1", "p2", gates='{ run = "test -f fix" }, { clean = true }')
    p.agents("up")
    (p.root / "fix").write_text("", encoding="utf-8")
    run(p.root, "add", "fix")
    done(p, "p1")
    run(p.root, "add", "docs")
    run(p.root, "commit", "-q", "-m", "status", "--", "docs")
    until(lambda: "gate 2 of 2 (clean) failed" in state(p))
    run(p.root, "stash", "-q")
    until(lambda: "gate 1 of 2 (run) failed" in state(p))
    assert index(p) == "0"
    run(p.root, "stash", "pop", "-q")
    commit(p.root, "fix: it is there")
    until(lambda: index(p) == "1")


def test_a_review_passes_what_it_has_seen_of_this_phase_and_nothing_else(make):
    """A merge does not put an unreviewed claim below a review; another phase's review is another's."""
    p = make(LOOP, "p1", "p2", gates='{ review = "PASS" }')
    adversary = clones(p)
    p.agents("up")
    until(lambda: p.json("status")["loop"]["id"] == "p1")
    commit(p.root, "claim(p1): one", a_md="1")
    push(p.root)
    pull(adversary)
    for subject in ("review(p0): PASS", "review(p1): cannot PASS", "review(p1): PASS"):
        commit(adversary, subject)
    push(adversary)
    commit(p.root, "claim(p1): two", b_md="2")
    pull(p.root)
    push(p.root)
    done(p, "p1")
    until(lambda: "has not seen claim" in state(p))
    assert index(p) == "0"
    pull(adversary)
    commit(adversary, "review(p1): no issues, PASS")
    push(adversary)
    until(lambda: "says no verdict" in state(p))
    commit(adversary, "review(p1): PASS, both claims hold")
    push(adversary)
    until(lambda: index(p) == "1")
    done(p, "p2")
    commit(p.root, "claim(p2): three", c_md="3")
    pull(p.root)
    push(p.root)
    pull(adversary)
    commit(adversary, "review(p1): PASS")
    push(adversary)
    until(lambda: "no review(p2) since the phase began" in state(p))
    p.agents("phase", "set", "p1")  # done again: the old PASS says nothing about it
    until(lambda: "no review(p1) since the phase began" in state(p))
    assert index(p) == "0"


def test_a_lock_that_stays_is_named_and_handoff_goes_on_without_it(make):
    p = make(LOOP, "p1")
    adversary = clones(p)
    p.agents("up")
    until(lambda: p.json("status")["loop"]["id"] == "p1")
    lock = p.root / ".git" / "refs" / "remotes" / "origin" / "main.lock"
    lock.write_text("", encoding="utf-8")
    commit(adversary, "claim(p1): x")
    push(adversary)
    until(lambda: any(str(lock) in w for w in p.json("status")["problems"]))
    assert not p.events("handoff.claimed")
    lock.unlink()
    until(lambda: p.events("handoff.claimed"))
    until(lambda: not any(".lock" in w for w in p.json("status")["problems"]))


def test_an_amended_claim_is_told(make):
    p = make(LOOP, "p1")
    adversary = clones(p)
    p.agents("up")
    until(lambda: p.json("status")["loop"]["id"] == "p1")
    commit(adversary, "claim(p1): x", a_md="1")
    push(adversary)
    until(lambda: len(p.events("handoff.claimed")) == 1)
    (adversary / "a.md").write_text("2", encoding="utf-8")
    run(adversary, "commit", "-q", "-a", "--amend", "--no-edit")
    run(adversary, "push", "-q", "-f", "origin", "HEAD:main")
    until(lambda: len(p.events("handoff.claimed")) == 2)


def test_the_line_that_stands_against_the_marker_is_named(make):
    p = make(LOOP, "p1", "p2")
    p.agents("up")
    done(p, "p1", "- lexer built\n\n## TODO\n- parser")
    said = until(lambda: [w for w in p.json("status")["problems"] if "STATUS-p1.md:6" in w])
    assert "'TODO'" in said[0]
    assert "line 6" in p.json("phase", "show")["why"]
    assert "line 6" in p.agents("explain", "builder")
    assert index(p) == "0"
    done(p, "p1", "Not a single test fails.")
    until(lambda: index(p) == "1")


def test_a_resumed_agent_gets_the_kickoff_of_a_new_phase_and_carries_on_in_the_same(make):
    """And what was to be said to it in the old phase is not said in the new one."""
    p = make(LOOP, "p1", "p2", handoff='claim_pings = "critic"')
    script = p.script("critic", 'steps = [{ ask = "May I?" }]\nidle = [{ say = "heard" }]\n')
    (p.root / "roles" / "critic.md").write_text("Doubt.\n", encoding="utf-8")
    agent = CRITIC.format(kind="loop", script=script, more="resume = true")
    p.base = agent + p.base
    p.write(p.base + phases("p1", "p2"))
    p.agents("up", code=None)  # it asks, so it is not ready
    until(lambda: running(p, "critic") and "Phase: p1" in kickoff(p, "critic"))
    commit(p.root, "claim(p1): x")
    until(lambda: p.events("handoff.claimed"))
    done(p, "p1")
    until(lambda: index(p) == "1")
    until(lambda: len(p.events("agent.started", "critic")) == 2)
    assert kickoff(p, "critic") == "Phase: p2 as critic\n\nDoubt.\n"
    until(lambda: p.events("message.withdrawn", "critic"))
    p.agents("restart", "critic", code=None)
    until(lambda: len(p.events("agent.started", "critic")) == 3)
    assert all(e["facts"]["resumed"] for e in p.events("agent.started", "critic")[1:])
    assert "Phase p2 is still the current one" in kickoff(p, "critic")
    assert not [m for m in p.received("critic") if "new claim" in m["text"]]
