"""A rule is a table: one row a promise."""

from __future__ import annotations

import signal

import pytest

from fleet.backends import profiles
from fleet.core.agent.asking import asking
from fleet.core.agent.bringup import bringup
from fleet.core.agent.decide import AGENT_RULES, SERVICE_RULES, UNWATCHED_RULES, judge
from fleet.core.agent.heal import fatal, heal
from fleet.core.agent.identity import identity
from fleet.core.agent.limits import limits, noted
from fleet.core.agent.receipts import receipts
from fleet.core.agent.stall import stall
from fleet.core.agent.starting import starting
from fleet.core.agent.stopping import stopping
from fleet.core.agent.turnover import turnover
from fleet.core.agent.typing import typing
from fleet.core.agent.unknown import unknown
from fleet.core.agent.waiting import waiting
from fleet.core.agent.wake import wake
from fleet.core.agent.wedged import wedged
from fleet.core.agent.wish import intent, unwatched
from fleet.core.case import AgentSeen, ProcView, Wish
from fleet.core.desired import Want
from fleet.core.effects import Keep, Paste, Press, Remove, Signal, Start, Unpause
from fleet.core.loop.loop_case import LoopShown
from fleet.core.memory import AgentMemory, Limit, MadeFor, Stopping
from fleet.core.model import Wake
from fleet.core.queue import advance, of_this_phase, queue, receive
from fleet.core.restarts import pardon
from fleet.core.seen import Marker
from fleet.core.words import (
    Detail,
    EventType,
    MessageKind,
    MessageState,
    PingAbout,
    State,
    StopStage,
    Witness,
)
from fleet.supervisor.eye import Eye
from fleet.times.moment import utc
from tests.records import replace
from tests.unit.cases import (
    AGENT,
    BACKEND,
    CONTRACT,
    LOOP_AGENT,
    NOW,
    PANE,
    READY,
    REF,
    SERVICE,
    case,
    dead,
    limit,
    marker,
    message,
    reading,
    seen,
)
from tools.verbs_and_states import EDGES

OVER = replace(READY, over="run1")


def check(verdict, action, words):
    """The verdict does that, for that reason; None means the rule has nothing to say."""
    if words is None:
        assert verdict is None
        return
    assert verdict is not None, f"expected: {words}"
    assert words in verdict.reason
    assert (type(verdict.action) if verdict.action else None) is action


# --- intent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_a_pause_with_an_end_is_looked_at_again_just_then(frozen):
    want = Wish(Want.UP, paused=True, frozen=frozen, until=NOW.wall + 300.0)
    verdict = intent(case(READY, seen=seen(wish=want)))
    assert verdict.hold
    assert verdict.wake_at == NOW.steady + 300.0
    forever = Wish(Want.UP, paused=True, frozen=frozen)
    assert intent(case(READY, seen=seen(wish=forever))).wake_at is None


@pytest.mark.parametrize(
    ("look", "run", "pid"),
    [
        pytest.param(seen(), "run1", REF.pid, id="its-processes-go-on"),
        pytest.param(seen(pane=dead()), "run1", 0, id="what-the-dead-left-behind-goes-on"),
        pytest.param(seen(pane=None), "", 0, id="there-is-nothing-to-go-on"),
    ],
)
def test_a_freeze_that_is_over_is_taken_back_and_tried_again_each_second(look, run, pid):
    want = Wish(Want.UP, frozen=True, until=NOW.wall - 300.0, over=True)
    decision = judge(case(seen=replace(look, wish=want)))
    assert decision.effects == (Unpause("a", "its pause is over", run, pid),)
    assert (decision.shown.detail, decision.wake_at) == (Detail.FROZEN, NOW.steady + 1.0)


def test_a_pause_that_is_over_ends_without_a_signal():
    want = Wish(Want.UP, until=NOW.wall - 300.0, over=True)
    assert judge(case(seen=seen(wish=want))).effects == (Unpause("a", "its pause is over"),)


def test_an_agent_that_a_verb_holds_is_left_to_it():
    memory = replace(READY, state="idle", seen_run="another")
    decision = judge(case(memory, seen=seen(pane=dead(), wish=Wish(Want.UP, held_by="down"))))
    assert (decision.effects, decision.notes, decision.shown.detail) == ((), (), Detail.HELD)
    assert replace(decision.memory, detail=memory.detail, since=memory.since) == memory


@pytest.mark.parametrize(
    ("look", "action", "words"),
    [
        pytest.param(seen(), None, None, id="wanted-and-there-is-nobodys-business"),
        pytest.param(seen(blind="tmux hangs", pane=None), None, "not seen", id="unseen-is-not-dead"),
        pytest.param(seen(pane=None, foreign=True), None, "not ours", id="a-strangers-session-is-left-alone"),
        pytest.param(
            seen(wish=Wish(Want.DOWN)), Signal, "taken down", id="I25-down-wins-over-a-racing-start"
        ),
        pytest.param(seen(wish=Wish(Want.DOWN), pane=None), None, "taken down", id="down-and-gone"),
        pytest.param(seen(wish=Wish(), pane=None), None, "has asked for", id="T32-not-up-not-healed"),
        pytest.param(seen(wish=Wish(Want.UP, paused=True)), None, "paused", id="paused"),
        pytest.param(seen(wish=Wish(Want.UP, frozen=True)), None, "frozen", id="frozen"),
        pytest.param(
            seen(wish=Wish(Want.UP, paused=True), pane=dead()), None, "paused", id="paused-is-not-healed"
        ),
    ],
)
def test_intent(look, action, words):
    check(intent(case(seen=look)), action, words)


@pytest.mark.parametrize(
    ("look", "words"),
    [
        pytest.param(seen(), "not watched", id="running"),
        pytest.param(seen(pane=dead(0)), "finished", id="T09-a-finished-task-is-not-run-again"),
        pytest.param(seen(pane=dead(3)), "exited with 3", id="R088-failed-and-not-watched"),
    ],
)
def test_unwatched(look, words):
    check(unwatched(case(seen=look, agent=replace(AGENT, watch="none"))), None, words)


# --- stopping --------------------------------------------------------------------------------------


BEGUN, ASKED, FORCED, REMOVED = StopStage


def stop(stage=ASKED, ago=1.0, clear=0, planned=True):
    return Stopping("because", planned, PANE.ref, "run1", 100, stage, at=NOW.steady - ago, clear=clear)


@pytest.mark.parametrize(
    ("state", "look", "action", "words"),
    [
        pytest.param(None, seen(), None, None, id="nothing-to-stop"),
        pytest.param(stop(BEGUN, 0), seen(survivors=3), Signal, "stopping", id="ask-first"),
        pytest.param(stop(ASKED, 1), seen(survivors=2), None, "waiting for 2", id="wait"),
        pytest.param(stop(ASKED, 11), seen(survivors=2), Signal, "forcing 2", id="force-after-ten-seconds"),
        pytest.param(stop(FORCED, 0.5), seen(survivors=1), None, "waiting for 1", id="forced-and-waiting"),
        pytest.param(stop(FORCED, 2), seen(survivors=1), Remove, "session away", id="hang-up-on-survivors"),
        pytest.param(
            stop(REMOVED, 6), seen(pane=None, survivors=1), Signal, "survive SIGKILL", id="I29-told"
        ),
        pytest.param(stop(ASKED, 1), seen(survivors=None), None, "not counted", id="uncounted-is-not-gone"),
        pytest.param(stop(ASKED, 1), seen(survivors=0, pane=dead()), None, "seen once", id="sweep-twice"),
        pytest.param(
            stop(ASKED, 1, clear=1), seen(survivors=0, pane=dead()), Remove, "session away", id="then-remove"
        ),
        pytest.param(
            stop(ASKED, 1, clear=1), seen(survivors=0), Remove, "session away", id="before-tmux-hears-of-it"
        ),
        pytest.param(stop(BEGUN, 0), seen(survivors=0), Signal, "stopping", id="ask-what-was-not-counted"),
        pytest.param(stop(REMOVED, 1, clear=1), seen(survivors=0, pane=None), None, "stopped", id="done"),
    ],
)
def test_stopping(state, look, action, words):
    check(stopping(case(replace(READY, stopping=state), seen=look)), action, words)


def test_a_stop_escalates_from_term_to_kill_and_never_the_other_way():
    first = stopping(case(replace(READY, stopping=stop(BEGUN, 0)), seen=seen(survivors=1)))
    second = stopping(case(replace(READY, stopping=stop(ASKED, 11)), seen=seen(survivors=1)))
    assert first.action.signum == signal.SIGTERM
    assert second.action.signum == signal.SIGKILL


def test_a_session_that_does_not_go_is_taken_away_again_at_the_usual_pace():
    looks = [stop(ASKED, 1, clear=1), stop(REMOVED, 0, clear=1)]
    first, again = (stopping(case(replace(READY, stopping=s), seen=seen(survivors=0))) for s in looks)
    assert isinstance(first.action, Remove)
    assert isinstance(again.action, Remove)
    assert first.wake_at == NOW.steady < again.wake_at


def test_a_finished_stop_is_forgotten():
    verdict = stopping(case(replace(READY, stopping=stop(REMOVED, 1)), seen=seen(survivors=0, pane=None)))
    assert verdict.memory.stopping is None


# --- turnover --------------------------------------------------------------------------------------

IN_P1 = replace(READY, run=replace(READY.run, made_for=MadeFor("p1")))
CALLED = Wish(Want.UP, run=2)
ANSWERS = replace(READY, run=replace(READY.run, made_for=MadeFor(call=2)))
EARLIER = replace(READY, run=replace(READY.run, made_for=MadeFor(call=1)), over="run1")


@pytest.mark.parametrize(
    ("memory", "loop", "look", "action", "words"),
    [
        pytest.param(IN_P1, LoopShown("p1"), seen(), None, None, id="same-phase"),
        pytest.param(IN_P1, LoopShown("p2"), seen(), Signal, "p2 begins", id="R112-the-phase-moved-on"),
        pytest.param(IN_P1, LoopShown("p2", keep_runs=True), seen(), None, None, id="T18-no-restart-asked"),
        pytest.param(
            IN_P1, LoopShown("", complete=True), seen(), Signal, "complete", id="R113-finished-loops-stop"
        ),
        pytest.param(
            IN_P1, LoopShown("", complete=True), seen(pane=None), None, "complete", id="R118-and-stay"
        ),
        pytest.param(
            OVER, LoopShown("p1", held="doubt"), seen(pane=None), None, "held", id="T52-held-is-not-started"
        ),
        pytest.param(
            IN_P1, LoopShown("p1", held="doubt"), seen(), None, None, id="held-leaves-the-running-alone"
        ),
        pytest.param(IN_P1, LoopShown(), seen(), None, None, id="an-unknown-position-stops-nobody"),
        pytest.param(
            OVER, LoopShown(), seen(pane=None), None, "held", id="an-unknown-position-starts-nobody"
        ),
    ],
)
def test_turnover(memory, loop, look, action, words):
    check(turnover(case(memory, agent=LOOP_AGENT, loop=loop, seen=look)), action, words)


def test_turnover_is_not_counted_against_the_agent():
    verdict = turnover(case(IN_P1, agent=LOOP_AGENT, loop=LoopShown("p2")))
    assert verdict.memory.stopping.planned


@pytest.mark.parametrize(
    ("memory", "more", "action", "words"),
    [
        pytest.param(EARLIER, {}, Signal, "called for", id="T36-a-run-of-an-earlier-call-is-replaced"),
        pytest.param(ANSWERS, {}, None, None, id="its-run-answers-this-call"),
        pytest.param(replace(ANSWERS, run=None), {}, None, None, id="a-run-without-a-record-is-left-alone"),
        pytest.param(
            EARLIER,
            {"agent": LOOP_AGENT, "loop": LoopShown("p1", held="doubt")},
            None,
            None,
            id="what-could-not-be-started-is-not-stopped",
        ),
    ],
)
def test_turnover_of_a_call(memory, more, action, words):
    check(turnover(case(memory, seen=seen(wish=CALLED), **more)), action, words)


GONE = {"pane": None, "survivors": 0}


@pytest.mark.parametrize(
    ("memory", "look", "action", "words"),
    [
        pytest.param(EARLIER, GONE | {"wish": Wish(Want.UP)}, None, None, id="not-called"),
        pytest.param(EARLIER, {}, None, None, id="alive-is-left-alone"),
        pytest.param(EARLIER, GONE, Start, "called for", id="R116-run-it"),
        pytest.param(AgentMemory(), GONE, Start, "called for", id="its-first-run"),
        pytest.param(
            EARLIER, {"pane": dead(), "survivors": 0}, Start, "called for", id="in-place-of-a-dead-pane"
        ),
        pytest.param(ANSWERS, GONE, None, None, id="it-has-answered-this-call"),
        pytest.param(replace(EARLIER, fatal="x"), GONE, None, None, id="what-failed-for-good-stays"),
        pytest.param(
            EARLIER, GONE | {"survivors": 2}, Signal, "left processes", id="I29-what-is-left-goes-first"
        ),
        pytest.param(EARLIER, GONE | {"survivors": None}, None, "counting", id="uncounted-is-not-gone"),
        pytest.param(
            replace(EARLIER, over=""), {"pane": dead(None)}, None, "exit status", id="wait-for-the-status"
        ),
        pytest.param(
            replace(EARLIER, retry_at=NOW.steady + 4), GONE, None, "next try in 4 s", id="a-failed-try-waits"
        ),
        pytest.param(replace(EARLIER, limit=limit()), GONE, Start, "called for", id="a-name-is-explicit"),
    ],
)
def test_bringup(memory, look, action, words):
    verdict = bringup(case(memory, seen=seen(**{"wish": CALLED} | look)))
    check(verdict, action, words)
    assert verdict is None or not isinstance(verdict.action, Start) or verdict.action.planned


# --- heal ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "look", "more", "action", "words"),
    [
        pytest.param(READY, seen(), {}, None, None, id="alive-is-left-alone"),
        pytest.param(READY, seen(pane=dead(None)), {}, None, "exit status", id="wait-for-the-status"),
        pytest.param(
            OVER, seen(pane=dead(), survivors=None), {}, None, "counting", id="uncounted-is-not-gone"
        ),
        pytest.param(
            OVER, seen(pane=dead(), survivors=2), {}, Signal, "left processes", id="I29-survivors-first"
        ),
        pytest.param(
            OVER, seen(pane=dead(), survivors=0), {}, Start, "exited with 1", id="R089-first-death-at-once"
        ),
        pytest.param(OVER, seen(pane=None, survivors=0), {}, Start, "session is gone", id="session-killed"),
        pytest.param(
            replace(OVER, retry_at=NOW.steady + 9),
            seen(pane=dead(), survivors=0),
            {},
            None,
            "next try in 9 s (0 deaths, 0 clean exits counted); it exited with 1",
            id="backing-off",
        ),
        pytest.param(
            replace(OVER, retry_at=NOW.steady + 9, ready=0.0),
            seen(pane=dead(3), survivors=0, last_words="Hello\nno API key in \x1b KEY "),
            {},
            None,
            "it exited with 3: no API key in",
            id="one-that-was-never-ready-says-why",
        ),
        pytest.param(
            OVER, seen(pane=dead(), survivors=0), {"may_start": False}, None, "used up", id="I21-fleet-budget"
        ),
        pytest.param(
            replace(OVER, planned=True),
            seen(pane=None, survivors=0),
            {"may_start": False},
            Start,
            "started again",
            id="our-own-stops-cost-no-budget",
        ),
    ],
)
def test_heal(memory, look, more, action, words):
    check(heal(case(memory, seen=look, **more)), action, words)


NOT_READY = replace(OVER, ready=0.0)


@pytest.mark.parametrize(
    ("memory", "look", "words"),
    [
        pytest.param(READY, seen(), None, id="alive"),
        pytest.param(NOT_READY, seen(pane=dead(127)), "could not be started", id="program-missing"),
        pytest.param(
            NOT_READY,
            seen(pane=dead(1), ending=reading("dead", line="unknown option", fix="correct the flags")),
            "correct the flags",
            id="its-last-words-say-what-to-do",
        ),
        pytest.param(
            NOT_READY,
            seen(pane=dead(1), last_words="Traceback ..."),
            None,
            id="an-ordinary-crash-is-not-fatal",
        ),
        pytest.param(OVER, seen(pane=dead(127)), None, id="a-run-that-was-ready-is-retried"),
        pytest.param(READY, seen(auth_failed="Invalid API key"), "credentials", id="refused-credentials"),
        pytest.param(
            replace(OVER, fatal="why", fix="do this"), seen(pane=dead()), "do this", id="fatal-is-sticky"
        ),
    ],
)
def test_fatal(memory, look, words):
    check(fatal(case(memory, seen=look)), None, words)


def test_a_model_that_is_refused_on_the_screen_is_fatal_at_the_second_look():
    refused = reading("error", pattern="model", line="unknown model", fix="correct the agent's model")
    assert fatal(case(replace(READY, state="error", state_looks=1), seen=seen(reading=refused))) is None
    verdict = fatal(case(replace(READY, state="error", state_looks=2), seen=seen(reading=refused)))
    assert "model" in verdict.memory.fix


def test_a_run_of_another_backend_is_put_right_though_nobody_declares_that_one():
    """T13: a backend for one invocation does not outlive the next look."""
    memory = replace(READY, run=replace(READY.run, backend="other"))
    verdict = identity(case(memory, seen=seen(proc=ProcView(expected=False))))
    assert isinstance(verdict.action, Signal)
    assert identity(case(memory, seen=seen(proc=ProcView(expected=True)))) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude", "No conversation found with session ID: u"),
        ("claude", "Error: Session ID u is already in use."),
        ("codex", "ERROR: No saved session found with ID u. Run `codex resume` without an ID"),
        ("opencode", "Error: Session not found: ses_u"),
    ],
)
def test_a_conversation_that_cannot_be_resumed_is_set_aside_after_its_own_words(name, words):
    memory = replace(NOT_READY, run=replace(READY.run, resumed=True, conversation="u"))
    look = seen(pane=dead(1), survivors=0, last_words=words)
    backend = profiles.load(name)
    verdict = heal(case(memory, seen=look, backend=backend))
    assert verdict.memory.bad_resumes == 2
    assert (
        heal(case(memory, seen=look, backend=replace(backend, resume_refused_re=""))).memory.bad_resumes == 1
    )
    assert "agent.resume_id_set_aside" in [note.type for note in verdict.notes]


# --- limits ----------------------------------------------------------------------------------------

BANNER = reading("limited", line="You've hit your limit · resets 3pm", until=NOW.wall + 3600)
OLD = BANNER._replace(line="limit · resets 3pm")  # the one that armed the window
LIMITED = replace(READY, state="limited")
SHUT = replace(LIMITED, limit=limit())
OPEN = replace(LIMITED, limit=limit(until=NOW.wall - 1))
PROBED = replace(LIMITED, limit=limit(until=NOW.wall - 60, probed=NOW.steady - 20, probes=1))


@pytest.mark.parametrize(
    ("memory", "look", "action", "words"),
    [
        pytest.param(READY, seen(), None, None, id="no-banner"),
        pytest.param(LIMITED, seen(reading=BANNER), None, "seen once", id="first-look-only-holds"),
        pytest.param(
            replace(LIMITED, limit_hint=NOW.steady - 1),
            seen(reading=BANNER),
            None,
            "quiet",
            id="second-look-arms",
        ),
        pytest.param(
            SHUT,
            seen(reading=BANNER._replace(until=NOW.wall + 555)),
            None,
            "limited",
            id="R092-inside-the-window-nothing",
        ),
        pytest.param(SHUT, seen(reading=BANNER), None, "quiet", id="R154-a-later-reset-moves-the-end"),
        pytest.param(
            SHUT, seen(pane=dead(), survivors=0), None, "limited", id="T73-dead-inside-the-window-waits"
        ),
        pytest.param(
            OPEN, seen(pane=dead(), survivors=0), Start, "window is over", id="T73-started-at-its-end"
        ),
        pytest.param(OPEN, seen(reading=OLD), None, "one probe", id="R153-one-probe"),
        pytest.param(
            replace(OPEN, state_looks=2),
            seen(reading=BANNER),
            None,
            "quiet",
            id="another-banner-needs-no-probe",
        ),
        pytest.param(
            replace(OPEN, limit=replace(OPEN.limit, source=Witness.OPERATOR), state_looks=2),
            seen(reading=BANNER),
            None,
            "one probe",
            id="who-ended-the-window-wants-a-probe",
        ),
        pytest.param(PROBED, seen(reading=BANNER), None, "quiet", id="R154-a-reprinted-banner-rearms"),
        pytest.param(
            PROBED,
            seen(reading=OLD),
            None,
            "fallback",
            id="T75-an-unchanged-banner-uses-the-fallback",
        ),
        pytest.param(
            replace(PROBED, state="idle"), seen(), None, "went through", id="the-probe-went-through"
        ),
        pytest.param(
            replace(SHUT, state="working"),
            seen(reading=reading("working")),
            None,
            "at work",
            id="T75-active-clears",
        ),
        pytest.param(
            OPEN,
            seen(reading=OLD._replace(dialog="limit", key="Escape")),
            Press,
            "allowed key",
            id="its-dialog-is-answered-with-its-one-key",
        ),
        pytest.param(
            OPEN,
            seen(reading=OLD._replace(dialog="limit", key="")),
            None,
            "dialog is open",
            id="or-reported",
        ),
    ],
)
def test_limits(memory, look, action, words):
    check(limits(case(memory, seen=look)), action, words)


@pytest.mark.parametrize(
    ("memory", "look", "words", "kept"),
    [
        pytest.param(READY, seen(), None, False, id="no-banner"),
        pytest.param(LIMITED, seen(reading=BANNER), "seen once", False, id="first-look-only-holds"),
        pytest.param(
            replace(LIMITED, limit_hint=NOW.steady - 1), seen(reading=BANNER), "quiet", True, id="armed"
        ),
        pytest.param(SHUT, seen(pane=dead()), "limited", True, id="dead-inside-the-window"),
        pytest.param(
            replace(SHUT, state="working"), seen(reading=reading("working")), "at work", False, id="at-work"
        ),
        pytest.param(OPEN, seen(reading=OLD), None, True, id="no-probe"),
        pytest.param(OPEN, seen(reading=BANNER), "seen once", True, id="another-banner"),
        pytest.param(replace(OPEN, state="idle"), seen(), "is over", False, id="over"),
        pytest.param(OPEN, seen(pane=dead()), "is over", False, id="over-and-dead"),
    ],
)
def test_noted(memory, look, words, kept):
    loose = replace(AGENT, watch="none")
    verdict = noted(case(memory, agent=loose, seen=look))
    check(verdict, None, words)
    after = verdict.memory if verdict and verdict.memory else memory
    assert (after.limit is not None) is kept


def test_the_window_ends_slack_after_the_reset():
    verdict = limits(case(replace(LIMITED, limit_hint=NOW.steady - 1), seen=seen(reading=BANNER)))
    assert verdict.memory.limit.until == NOW.wall + 3600 + 45  # R033


def test_an_unreadable_reset_uses_the_flat_fallback():
    banner = BANNER._replace(until=None)
    verdict = limits(case(replace(LIMITED, limit_hint=NOW.steady - 1), seen=seen(reading=banner)))
    assert verdict.memory.limit.until == NOW.wall + 300  # R155
    assert not verdict.memory.limit.parsed


def test_a_structured_report_arms_at_once():
    told = limit(source=Witness.HOOK, until=NOW.wall + 900)
    assert limits(case(seen=seen(limit=told))).memory.limit.source == "hook"


def test_a_banner_that_goes_on_to_name_an_end_is_another():
    nameless = replace(PROBED.limit, line="You've hit your limit", parsed=False)
    verdict = limits(case(replace(PROBED, limit=nameless), seen=seen(reading=BANNER)))
    assert verdict.memory.limit.until == NOW.wall + 3600 + 45


def test_an_operator_may_forbid_the_resume():
    quiet = replace(AGENT, resume_on_reset=False)
    verdict = limits(case(OPEN, agent=quiet, seen=seen(reading=OLD)))
    assert verdict.action is None
    assert "resume_on_reset" in verdict.reason
    assert not verdict.memory


@pytest.mark.parametrize("resumes", [True, False])
@pytest.mark.parametrize("kind", ["send", "wake"])
def test_what_is_submitted_at_the_end_of_a_window_is_its_one_probe(kind, resumes):
    agent = replace(AGENT, resume_on_reset=resumes)
    typed = message(kind, status=MessageState.TYPED, run="run1", at=NOW.steady - 1)
    memory = replace(OPEN, outbox=(typed, message("probe")))
    pressed = receipts(case(memory, agent=agent, seen=seen(reading=OLD._replace(draft=typed.text))))
    assert isinstance(pressed.action, Press)
    tried = pressed.memory.limit
    assert (tried.probed, tried.probes) == (NOW.steady, 1)
    assert [m.kind for m in pressed.memory.outbox] == [kind]
    later = replace(pressed.memory, outbox=(), limit=replace(tried, probed=NOW.steady - 20))
    refused = limits(case(later, agent=agent, seen=seen(reading=OLD)))
    assert "fallback" in refused.reason
    assert not refused.memory.outbox


def test_agents_of_one_account_wait_together_and_resume_one_after_the_other():
    held = limits(case(account_until=NOW.wall + 60, account_by="b"))
    assert held.hold
    assert "b" in held.reason
    late = limits(case(OPEN, seen=seen(reading=OLD), stagger=10.0))
    assert "its turn" in late.reason


def test_refused_credentials_are_told_inside_a_window_too():  # I21
    shut = {"account_until": NOW.wall + 60, "account_by": "b"}
    for memory in (READY, SHUT):
        told = judge(case(replace(memory, state="auth"), seen=seen(auth_failed="Please log in"), **shut))
        assert told.shown.rule == "fatal"
    assert judge(case(told.memory, seen=seen(pane=dead()), **shut)).shown.detail == Detail.LIMITED
    for window in (None, OPEN.limit):  # and no end of one starts it
        lost = judge(case(replace(told.memory, limit=window), seen=seen(pane=dead(), survivors=0), **shut))
        assert (lost.shown.detail, lost.effects) == (Detail.FATAL, ())
        alone = judge(case(replace(told.memory, limit=window), seen=seen(pane=dead(), survivors=0)))
        assert (alone.shown.detail, alone.effects) == (Detail.FATAL, ())


def test_the_third_probe_without_a_reset_is_loud():
    memory = replace(PROBED, limit=replace(PROBED.limit, probes=3))
    verdict = limits(case(memory, seen=seen(reading=OLD)))
    assert "agent.limit_without_reset" in [note.type for note in verdict.notes]  # T72


# --- starting, identity, wedged, asking, unknown ---------------------------------------------------

YOUNG = replace(READY, ready=0.0, alive_since=NOW.steady - 3, state=None)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        pytest.param(READY, None, id="ready"),
        pytest.param(YOUNG, "starting for 3 s", id="T40-left-alone-while-starting"),
        pytest.param(replace(YOUNG, alive_since=NOW.steady - 60), None, id="grace-over"),
        pytest.param(replace(YOUNG, state="asking"), None, id="a-dialog-at-start-is-for-the-asking-rule"),
    ],
)
def test_starting(memory, words):
    check(starting(case(memory)), None, words)


@pytest.mark.parametrize(
    ("backend", "memory", "proc", "action", "words"),
    [
        pytest.param(BACKEND, READY, ProcView(), None, None, id="the-right-program"),
        pytest.param(
            BACKEND,
            READY,
            ProcView(expected=False, other="codex"),
            Signal,
            "it runs codex",
            id="R091-another-backend",
        ),
        pytest.param(
            BACKEND, READY, ProcView(expected=True, other="codex"), None, None, id="T41-both-is-fine"
        ),
        pytest.param(
            CONTRACT,
            READY,
            ProcView(expected=False, other="codex"),
            None,
            None,
            id="R052-no-process-name-opts-out",
        ),
        pytest.param(
            BACKEND,
            replace(READY, shell_since=NOW.steady - 10),
            ProcView(expected=False, shell_only=True),
            None,
            "only a shell",
            id="a-shell-for-a-moment",
        ),
        pytest.param(
            BACKEND,
            replace(READY, shell_since=NOW.steady - 301),
            ProcView(expected=False, shell_only=True),
            Signal,
            "only a shell",
            id="a-shell-for-a-heavy-interval",
        ),
        pytest.param(
            BACKEND, READY, ProcView(expected=False), None, None, id="an-unknown-helper-is-no-proof"
        ),
    ],
)
def test_identity(backend, memory, proc, action, words):
    check(identity(case(memory, backend=backend, seen=seen(proc=proc))), action, words)


@pytest.mark.parametrize(
    ("state", "looks", "action", "words"),
    [
        pytest.param("idle", 5, None, None, id="fine"),
        pytest.param("wedged", 1, None, "seen once", id="T68-one-look-is-not-enough"),
        pytest.param("wedged", 2, Signal, "wedged", id="R090-two-are"),
    ],
)
def test_wedged(state, looks, action, words):
    memory = replace(READY, state=state, state_looks=looks)
    check(wedged(case(memory, seen=seen(reading=reading(state, line="redacted")))), action, words)


@pytest.mark.parametrize(("state", "afresh"), [("wedged", True), ("context", True), ("idle", False)])
def test_a_conversation_that_is_wedged_or_full_is_not_resumed(state, afresh):
    memory = replace(READY, state=state, state_looks=2, quiet_since=NOW.after(-9000))
    verdict = judge(case(memory, seen=seen(reading=reading(state, line="redacted"))))
    assert isinstance(verdict.effects[0], Signal)
    assert verdict.memory.afresh is afresh


@pytest.mark.parametrize(
    ("memory", "dialog", "action", "words"),
    [
        pytest.param(READY, {}, None, None, id="no-dialog"),
        pytest.param(
            replace(READY, state="asking", state_looks=1), {"key": "1"}, None, "seen once", id="look-twice"
        ),
        pytest.param(
            replace(READY, state="asking", state_looks=2),
            {"key": "1"},
            Press,
            "allowed key",
            id="I14-the-one-key",
        ),
        pytest.param(
            replace(READY, state="asking", state_looks=2),
            {"fix": "trust it"},
            None,
            "trust it",
            id="I14-never-a-blind-enter",
        ),
        pytest.param(
            replace(READY, state="asking", state_looks=2, pressed="trust", presses=2),
            {"key": "1"},
            None,
            "attach",
            id="not-for-ever",
        ),
    ],
)
def test_asking(memory, dialog, action, words):
    state = "asking" if memory.state == "asking" else "idle"
    look = seen(reading=reading(state, dialog="trust" if state == "asking" else "", **dialog))
    check(asking(case(memory, seen=look)), action, words)


def test_unknown_is_kept_and_told_once():
    memory = replace(READY, state="unknown", state_since=NOW.steady - 1900)
    first = unknown(case(memory, seen=seen(reading=reading("unknown"))))
    assert isinstance(first.action, Keep)
    again = unknown(case(first.memory, seen=seen(reading=reading("unknown"))))
    assert again.hold
    assert again.action is None


@pytest.mark.parametrize("age", [0, 60, 3600, 86_400])
def test_unknown_is_never_healed(age):
    """I7: whatever the age, nothing destructive follows from a screen nobody can read."""
    memory = replace(
        READY, state="unknown", state_since=NOW.steady - age, quiet_since=NOW.steady - age, kept="run1"
    )
    decision = judge(case(memory, seen=seen(reading=reading("unknown"), fresh=False)))
    assert decision.effects == ()
    assert decision.shown.detail is Detail.UNKNOWN


# --- waiting, wake, stall --------------------------------------------------------------------------


def with_marker(offset, text="WAITING-UNTIL: soon"):
    return seen(reading=reading("idle", draft="", marker=marker(offset, text)))


@pytest.mark.parametrize(
    ("memory", "look", "words"),
    [
        pytest.param(READY, seen(), None, id="no-marker"),
        pytest.param(READY, with_marker(600), "asked to wait until", id="R095-a-new-marker-holds"),
        pytest.param(
            replace(READY, marker=NOW.wall + 600), with_marker(600), "to wait until", id="and-goes-on-holding"
        ),
        pytest.param(
            replace(READY, marker=NOW.wall - 5), with_marker(-5), "sending it", id="passed-it-is-told-once"
        ),
        pytest.param(
            replace(READY, marker=NOW.wall - 5, marker_woken=NOW.wall - 5),
            with_marker(-5),
            None,
            id="not-twice",
        ),
        pytest.param(
            READY, with_marker(None, "WAITING-UNTIL: <time>"), "cannot be read", id="T76-malformed-is-flagged"
        ),
    ],
)
def test_waiting(memory, look, words):
    check(waiting(case(memory, seen=look)), None, words)


WAKING = replace(AGENT, wake=Wake(600.0, "/p/wake.md"))


@pytest.mark.parametrize(
    ("agent", "woke", "queued"),
    [
        pytest.param(AGENT, 0.0, False, id="has-none"),
        pytest.param(WAKING, NOW.steady - 599, False, id="T79-not-before-its-interval"),
        pytest.param(WAKING, NOW.steady - 601, True, id="R080-due"),
    ],
)
def test_wake(agent, woke, queued):
    verdict = wake(case(replace(READY, woke=woke), agent=agent))
    assert bool(verdict and verdict.memory and verdict.memory.outbox) is queued


def test_two_wakes_are_never_queued():
    first = wake(case(replace(READY, woke=NOW.steady - 601), agent=WAKING))
    later = NOW._replace(steady=NOW.steady + 700)
    second = wake(case(first.memory, agent=WAKING, now=later))
    assert len([m for m in second.memory.outbox if m.kind is MessageKind.WAKE]) == 1


QUIET = replace(READY, quiet_since=NOW.steady - 301, still_since=NOW.steady - 301)
UNMEASURED = seen(proc=ProcView(measured=False))


@pytest.mark.parametrize(
    ("memory", "agent", "more", "action", "words"),
    [
        pytest.param(READY, AGENT, {}, None, "idle for", id="not-yet"),
        pytest.param(QUIET, AGENT, {}, Signal, "without a sign", id="R094-idle-too-long"),
        pytest.param(
            QUIET, replace(AGENT, watch="heal"), {}, None, None, id="R093-heal-never-reboots-for-idling"
        ),
        pytest.param(replace(QUIET, ready=0.0), AGENT, {}, None, None, id="not-before-it-was-ready"),
        pytest.param(QUIET, AGENT, {"resumed": True}, None, None, id="I23-not-after-a-suspend"),
        pytest.param(
            replace(QUIET, marker=NOW.wall - 100),
            AGENT,
            {"seen": with_marker(-100)},
            None,
            "the grace runs",
            id="R095-within-the-grace",
        ),
        pytest.param(
            replace(QUIET, marker=NOW.wall - 181),
            AGENT,
            {"seen": with_marker(-181)},
            Signal,
            "without",
            id="R034-grace-over",
        ),
        pytest.param(
            QUIET, LOOP_AGENT, {"loop": LoopShown("p1")}, None, "done marker", id="T58-first-the-nudge"
        ),
        pytest.param(
            replace(QUIET, nudged="p1"),
            LOOP_AGENT,
            {"loop": LoopShown("p1")},
            Signal,
            "without",
            id="T58-once",
        ),
        pytest.param(replace(QUIET, state="unknown"), AGENT, {}, None, None, id="I7-unknown-is-not-idle"),
        pytest.param(QUIET, AGENT, {"seen": UNMEASURED}, None, "measuring", id="I16-measure-first"),
    ],
)
def test_stall(memory, agent, more, action, words):
    check(stall(case(memory, agent=agent, **more)), action, words)


@pytest.mark.parametrize(("busy", "action"), [(False, Signal), (True, None)])
def test_a_screen_that_claims_work_and_does_not_move_is_frozen_unless_it_computes(busy, action):
    """I16."""
    look = seen(reading=reading("working"), proc=ProcView(measured=True, busy=busy))
    verdict = stall(case(replace(QUIET, state="working"), seen=look))
    assert (type(verdict.action) if verdict else None) is action


def test_a_message_on_its_way_keeps_the_reboot_off():
    memory = replace(QUIET, outbox=(message(status=MessageState.TYPED, run="run1"),))
    assert stall(case(memory)) is None


# --- typing ----------------------------------------------------------------------------------------

WAITING = replace(READY, outbox=(message(),))


@pytest.mark.parametrize(
    ("memory", "look", "more", "action", "words"),
    [
        pytest.param(READY, seen(), {}, None, None, id="nothing-to-say"),
        pytest.param(WAITING, seen(), {}, Paste, "typing send", id="idle-and-empty"),
        pytest.param(WAITING, seen(fresh=False), {}, None, "look at the screen", id="not-without-a-look"),
        pytest.param(
            replace(READY, outbox=(message(why="another run", at=NOW.steady - 0.5),)),
            seen(),
            {},
            None,
            "another run",
            id="not-at-every-nudge-after-a-refusal",
        ),
        pytest.param(
            replace(READY, outbox=(message(why="another run", at=NOW.steady - 2),)),
            seen(),
            {},
            Paste,
            "typing send",
            id="but-again-after-a-while",
        ),
        pytest.param(
            WAITING, seen(pane=PANE._replace(in_mode=True)), {}, None, "copy mode", id="K2-not-in-copy-mode"
        ),
        pytest.param(
            WAITING,
            seen(proc=ProcView(expected=False, shell_only=True)),
            {},
            None,
            "another program",
            id="I8-never-into-a-shell",
        ),
        pytest.param(
            WAITING,
            seen(reading=reading("idle", draft="my own th")),
            {},
            None,
            "unsent text",
            id="I12-a-persons-draft",
        ),
        pytest.param(
            WAITING,
            seen(reading=reading("idle", draft="")._replace(commands=True)),
            {},
            None,
            "runs what is typed",
            id="I8-never-as-a-command",
        ),
        pytest.param(
            replace(WAITING, state="working", outbox=(replace(message(), idle=True),)),
            seen(reading=reading("working", draft="")),
            {"backend": replace(BACKEND, queues_input=True)},
            None,
            "it is working",
            id="what-would-be-a-command-in-the-queue-waits",
        ),
        pytest.param(
            WAITING,
            seen(preparing=True),
            {},
            None,
            "preamble",
            id="R047-not-into-a-preamble",
        ),
        pytest.param(
            replace(WAITING, alive_since=NOW.steady - 5),
            seen(),
            {"backend": replace(BACKEND, patterns=(), connect_delay=12.0)},
            None,
            "to come up",
            id="R062-a-program-has-its-time",
        ),
        pytest.param(
            WAITING,
            seen(pane=PANE._replace(typed_at=NOW.wall - 5)),
            {},
            None,
            "a person is typing",
            id="T31-a-person-at-the-keyboard",
        ),
        pytest.param(
            replace(WAITING, state="working"),
            seen(reading=reading("working", draft="")),
            {},
            None,
            "it is working",
            id="I13-not-into-work",
        ),
        pytest.param(
            replace(WAITING, state="working"),
            seen(reading=reading("working", draft="")),
            {"backend": replace(BACKEND, queues_input=True)},
            Paste,
            "typing",
            id="unless-it-queues",
        ),
        pytest.param(
            replace(WAITING, state="asking"),
            seen(reading=reading("asking")),
            {},
            None,
            "it is asking",
            id="never-into-a-dialog",
        ),
        pytest.param(
            replace(WAITING, state="unknown"),
            seen(reading=reading("unknown")),
            {},
            None,
            "no pattern of the profile matches its screen",
            id="nor-the-unknown",
        ),
        pytest.param(
            replace(WAITING, state="working"),
            seen(reading=reading("unknown"), working=True),
            {"backend": replace(BACKEND, queues_input=True)},
            None,
            "no pattern of the profile matches its screen",
            id="whatever-its-cli-reports",
        ),
        pytest.param(
            replace(WAITING, limit=limit()), seen(), {}, None, "limited", id="T66-not-while-limited"
        ),
        pytest.param(
            WAITING,
            seen(reading=reading("idle", draft="please go on with it")),
            {},
            None,
            "already stands",
            id="our-own-text-is-not-typed-twice",
        ),
        pytest.param(
            replace(READY, outbox=(message("ping", about=PingAbout.CLAIM),), typed=(NOW.steady - 5,)),
            seen(),
            {},
            None,
            "less than",
            id="SEC-12-rate",
        ),
        pytest.param(
            replace(READY, outbox=(replace(message("wake"), queued=NOW.steady - 4000),)),
            seen(),
            {},
            None,
            "not deliverable",
            id="expires",
        ),
    ],
)
def test_typing(memory, look, more, action, words):
    check(typing(case(memory, seen=look, **more)), action, words)


def in_flight(status, ago, *, enters=0, tries=0):
    sent = replace(
        message(),
        status=status,
        at=NOW.steady - ago,
        at_wall=NOW.wall - ago,
        run="run1",
        enters=enters,
        tries=tries,
        pasted=True,
    )
    return replace(READY, outbox=(sent,))


OURS = reading("idle", draft="please go on with it")
THEIRS = reading("idle", draft="rm -rf")
EMPTY = reading("idle", draft="")


@pytest.mark.parametrize(
    ("memory", "look", "action", "words"),
    [
        pytest.param(
            in_flight(MessageState.TYPED, 0.1), seen(reading=OURS), None, "settle", id="K3-a-gap-before-enter"
        ),
        pytest.param(
            in_flight(MessageState.TYPED, 0.3), seen(reading=OURS), Press, "submit", id="shown-then-enter"
        ),
        pytest.param(
            in_flight(MessageState.TYPED, 0.5),
            seen(reading=EMPTY),
            None,
            "not on the screen",
            id="not-shown-yet",
        ),
        pytest.param(
            in_flight(MessageState.TYPED, 3),
            seen(reading=EMPTY),
            None,
            "typing it anew",
            id="never-shown-is-typed-anew",
        ),
        pytest.param(
            in_flight(MessageState.TYPED, 3, tries=2),
            seen(reading=EMPTY),
            None,
            "never showed up",
            id="not-for-ever",
        ),
        pytest.param(
            in_flight(MessageState.TYPED, 3),
            seen(reading=THEIRS),
            None,
            "something else",
            id="I12-not-our-text-no-enter",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 0.3, enters=1),
            seen(reading=EMPTY),
            None,
            "left the composer",
            id="confirmed",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 0.3, enters=1),
            seen(reading=OURS),
            None,
            "waiting for it",
            id="patience",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 2, enters=1),
            seen(reading=OURS),
            Press,
            "submit",
            id="K3-enter-again",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 2, enters=1),
            seen(reading=THEIRS),
            None,
            "another text",
            id="I12-theirs",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 7, enters=3),
            seen(reading=OURS),
            None,
            "still stands",
            id="I11-given-up-honestly",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 1, enters=1),
            seen(reading=EMPTY, prompts=((NOW.wall - 500, ""),)),
            None,
            "not reported it yet",
            id="a-CLI-that-reports-has-the-last-word",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 11, enters=1),
            seen(reading=EMPTY, prompts=((NOW.wall - 500, ""),)),
            None,
            "may have been a command",
            id="and-what-it-never-reports-is-not-delivered",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 1, enters=1),
            seen(reading=EMPTY._replace(queued="  ↳ please go on with it"), prompts=((NOW.wall - 500, ""),)),
            None,
            "queue",
            id="unless-its-queue-shows-it",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 1, enters=1),
            seen(reading=EMPTY, prompts=((NOW.wall, "please go on with it\u200b"),)),
            None,
            "not as it was sent",
            id="altered-is-not-delivered",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 2, enters=1),
            seen(reading=OURS, prompts=((NOW.wall, ""),)),
            None,
            "reported",
            id="the-CLI-said-so",
        ),
        pytest.param(
            in_flight(MessageState.SUBMITTED, 2, enters=1),
            seen(pane=dead()),
            None,
            "the agent ended",
            id="submitted-to-a-run-that-died",
        ),
    ],
)
def test_receipts(memory, look, action, words):
    check(receipts(case(memory, seen=look)), action, words)


@pytest.mark.parametrize(
    ("arrived", "confirmed"),
    [("please go on with it", True), ("", True), ("something quite different", False)],
)
def test_the_receipt_of_another_prompt_is_not_ours(arrived, confirmed):
    """I11."""
    look = seen(reading=OURS, prompts=((NOW.wall, arrived),))
    verdict = receipts(case(in_flight(MessageState.SUBMITTED, 1, enters=1), seen=look))
    assert bool(verdict.finished) is confirmed


def test_a_program_that_has_drawn_nothing_since_is_not_typed_to_again():
    quiet = PANE._replace(activity=NOW.wall - 60)
    verdict = receipts(case(in_flight(MessageState.TYPED, 3), seen=seen(reading=EMPTY, pane=quiet)))
    assert "not drawn" in verdict.reason
    late = receipts(case(in_flight(MessageState.TYPED, 25), seen=seen(reading=EMPTY, pane=quiet)))
    assert late.finished[0].status is MessageState.FAILED


def test_only_confirmed_leaves_a_good_receipt():
    good = receipts(case(in_flight(MessageState.SUBMITTED, 0.3, enters=1), seen=seen(reading=EMPTY)))
    bad = receipts(case(in_flight(MessageState.SUBMITTED, 7, enters=3), seen=seen(reading=OURS)))
    assert [m.status for m in (*good.finished, *bad.finished)] == [
        MessageState.CONFIRMED,
        MessageState.FAILED,
    ]
    assert not good.memory.outbox
    assert not bad.memory.outbox


def test_words_that_may_have_killed_the_agent_are_not_said_twice():
    verdict = receipts(case(in_flight(MessageState.SUBMITTED, 1, enters=1), seen=seen(pane=dead())))
    assert [m.status for m in verdict.finished] == [MessageState.FAILED]
    assert not verdict.memory.outbox


def test_text_typed_into_a_dead_run_goes_back_into_the_queue():
    verdict = receipts(case(in_flight(MessageState.TYPED, 1), seen=seen(pane=dead())))
    assert [m.status for m in verdict.memory.outbox] == [MessageState.QUEUED]


# --- the outbox ------------------------------------------------------------------------------------


def test_the_same_id_is_never_queued_twice():
    memory = queue(queue(READY, message()), message())
    assert len(memory.outbox) == 1


def test_of_one_kind_of_ping_only_the_newest_waits():
    memory = queue(
        queue(READY, replace(message("ping", about=PingAbout.CLAIM), id="1")),
        replace(message("ping", about=PingAbout.CLAIM), id="2"),
    )
    assert [m.id for m in memory.outbox] == ["2"]


def test_people_are_never_coalesced():
    memory = queue(queue(READY, replace(message(), id="1")), replace(message(), id="2"))
    assert len(memory.outbox) == 2


def test_a_final_message_leaves_the_outbox():
    assert not advance(WAITING, replace(message(), status=MessageState.FAILED)).outbox


def test_a_ping_of_another_phase_is_withdrawn_before_it_is_typed():
    ping = replace(message("ping", about=PingAbout.CLAIM), phase="p1")
    memory = replace(READY, outbox=(ping, replace(ping, id="typed", status=MessageState.TYPED)))
    kept, stale = of_this_phase(memory, "p2")
    assert ([m.id for m in kept.outbox], [m.id for m in stale]) == (["typed"], [ping.id])
    assert of_this_phase(memory, "p1") == of_this_phase(memory, "") == (memory, ())


def test_what_was_put_into_the_outbox_is_taken_in_once():
    new = replace(message(), queued=0.0)
    memory = receive(replace(READY, outbox=(new,)), NOW)
    assert [m.queued for m in memory.outbox] == [NOW.steady]
    assert receive(memory, NOW._replace(steady=NOW.steady + 9)) is memory


def test_a_newer_ping_that_was_put_down_replaces_one_that_waits():
    old, new = (replace(message("ping", about=PingAbout.CLAIM), id=i) for i in ("old", "new"))
    memory = receive(replace(READY, outbox=(old, replace(new, queued=0.0))), NOW)
    assert [m.id for m in memory.outbox] == ["new"]


@pytest.mark.parametrize(("ends", "probed"), [(-1.0, True), (60.0, False)])
def test_what_an_operator_says_after_a_window_is_its_probe(ends, probed):
    limit = Limit(NOW.wall - 900, NOW.wall + ends)
    memory = receive(replace(READY, limit=limit, outbox=(replace(message(), queued=0.0),)), NOW)
    assert bool(memory.limit.probed) is probed
    assert (memory.limit.source == "operator") is probed


WINDOW = Limit(0.0, NOW.wall + 900)
CONDEMNED = replace(READY, deaths=(1.0, 2.0), fatal="no such model", fix="x", limit=WINDOW)


def test_a_fresh_try_forgets_tallies_once_and_keeps_the_window():
    wish = Wish(Want.UP, tries=3)
    after, news = pardon(case(CONDEMNED, seen=seen(wish=wish)))
    assert (after.deaths, after.fatal, after.tries) == ((), "", 3)
    assert after.limit.until == CONDEMNED.limit.until
    assert [note.type for note in news] == ["agent.reset"]
    assert pardon(case(after, seen=seen(wish=wish))) == (after, ())
    assert pardon(case(READY, seen=seen(wish=wish)))[1] == (), "nothing was forgotten: no news"


def test_a_reset_ends_the_window_too():
    after, news = pardon(case(CONDEMNED, seen=seen(wish=Wish(Want.UP, resets=1))))
    assert (after.limit.until, after.fatal, after.resets) == (NOW.wall, "", 1)
    assert news


def test_whom_we_could_not_look_at_is_not_pardoned_by_what_we_do_not_know():
    blind = AgentSeen(blind="tmux does not answer")
    assert pardon(case(replace(CONDEMNED, tries=3), seen=blind)) == (replace(CONDEMNED, tries=3), ())


# --- the whole -------------------------------------------------------------------------------------


def test_every_rule_has_a_name_of_its_own_and_a_table_here():
    names = [name for name, _ in AGENT_RULES]
    assert len(names) == len(set(names))
    tested = {n.removeprefix("test_") for n in globals() if n.startswith("test_")}
    every = {rule.__name__ for _, rule in (*AGENT_RULES, *SERVICE_RULES, *UNWATCHED_RULES)}
    assert not {r for r in every if not any(t == r or t.startswith(f"{r}_") for t in tested)}


def test_a_service_is_only_kept_alive():
    names = {name for name, _ in SERVICE_RULES}
    assert not names & {"limits", "stall", "typing", "wake"}  # T33
    decision = judge(
        case(replace(READY, over="run1"), agent=SERVICE, seen=seen(pane=dead(), reading=None, survivors=0))
    )
    assert [type(effect) for effect in decision.effects] == [Start]


CONFIRMED = replace(in_flight(MessageState.SUBMITTED, 1, enters=1), state="working")


@pytest.mark.parametrize(
    ("memory", "look", "detail", "rule", "reason"),
    [
        pytest.param(
            CONFIRMED,
            seen(
                reading=reading("working"), working=True, heard_from=Witness.HOOK, prompts=((NOW.wall, ""),)
            ),
            Detail.WORKING,
            "sight",
            "its hook says working",
            id="a-receipt-does-not-explain-work",
        ),
        pytest.param(
            replace(READY, state="idle"),
            seen(),
            Detail.IDLE,
            "stall",
            "idle for 0 s of 300",
            id="what-is-new-in-this-look-is-no-younger-than-nothing",
        ),
        pytest.param(
            replace(READY, state="idle", outbox=(message(),)),
            seen(reading=reading("idle", draft="mine")),
            Detail.IDLE,
            "typing",
            "send waits: the input line holds unsent text",
            id="a-message-that-waits-goes-before-the-idle-time",
        ),
        pytest.param(
            replace(READY, state="idle", woke=NOW.steady),
            seen(reading=reading("idle", marker=Marker(NOW.wall + 60, "WAITING-UNTIL"))),
            Detail.WAITING,
            "waiting",
            f"the agent asked to wait until {utc(NOW.wall + 60)}; not counted as stalled",
            id="the-rule-that-named-the-detail",
        ),
    ],
)
def test_the_reason_belongs_to_what_is_shown(memory, look, detail, rule, reason):
    agent = replace(AGENT, watch="heal+stall", wake=Wake(600.0, "/w"))
    memory = replace(memory, woke=NOW.steady, content="")
    shown = judge(case(memory, agent=agent, seen=look, looked=NOW.steady + 0.3)).shown
    assert (shown.detail, shown.rule, shown.reason) == (detail, rule, reason)


def test_limited_beats_dead_wedged_mismatched_and_stalled():
    """I5: whatever else is seen, nothing is done to a limited agent."""
    looks = [
        seen(pane=dead(), survivors=0),
        seen(proc=ProcView(expected=False, other="codex")),
        seen(reading=BANNER),
    ]
    for look in looks:
        memory = replace(SHUT, quiet_since=NOW.steady - 9000, outbox=(message(),), over="run1")
        assert judge(case(memory, seen=look)).effects == ()


def test_every_word_has_its_edges():
    assert all(a is not b for a, b in EDGES)
    assert {a for a, _ in EDGES} == {b for _, b in EDGES} == set(State)
    assert len(EDGES) == len(State) * (len(State) - 1)


def test_rules_only_speak_of_events_that_exist():
    import pathlib
    import re

    here = pathlib.Path(__file__).parents[2] / "fleet" / "core"
    spoken = set()
    for file in here.rglob("*.py"):
        spoken |= set(
            re.findall(r'"((?:agent|message|service|config|server|watchdog)\.[a-z_]+)"', file.read_text())
        )
    assert spoken <= {e.value for e in EventType}


def test_the_last_words_of_a_dead_program_go_on_record_without_secrets():
    eye = Eye()
    eye.take_words(
        BACKEND, "bad key hunter2-hunter2\nPane is dead (status 3)\n", {"MY_KEY": "hunter2-hunter2"}
    )
    assert eye.words == "bad key [redacted]"
