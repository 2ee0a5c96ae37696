"""What memory is after an effect: the outcome is a closed word, and each has its row."""

from __future__ import annotations

import pytest

from fleet.core.agent.heal import BAD_ID_TRIES
from fleet.core.decision import Result
from fleet.core.effects import Keep, Paste, Post, Press, Start, Unpause
from fleet.core.memory import Run
from fleet.core.settle import REFUSED_AGAIN_S, settle, take_back
from fleet.core.words import EventType, MessageState, Outcome
from tests.records import replace
from tests.unit.cases import BACKEND, NOW, READY, REF, limit, message

START = Start("a", "it exited with 1")
RUN = Run("run2", "s-a", NOW.wall)
SENT = replace(message(), status=MessageState.SUBMITTED, enters=2, run="run1")
TYPING = replace(READY, outbox=(SENT,))
PASTE = Paste("a", REF, SENT.id, "send")
PRESS = Press("a", REF, ("Enter",), "submit", SENT.id)
POST = Post("a", REF, SENT.id, "http://127.0.0.1:1", "c", "send", BACKEND)


def kinds(after):
    return [note.type for note in after.notes]


def test_a_heal_is_counted_and_a_planned_start_is_not():
    healed = settle(READY, START, Result(Outcome.DONE, run=RUN), NOW)
    assert (healed.memory.heals, healed.healed, healed.memory.run) == (READY.heals + 1, True, RUN)
    assert kinds(healed) == [EventType.AGENT_HEALED]
    planned = settle(READY, replace(START, planned=True), Result(Outcome.DONE, run=RUN), NOW)
    assert (planned.memory.heals, planned.healed, kinds(planned)) == (READY.heals, False, [])


def test_a_start_in_a_new_conversation_forgives_the_one_that_could_not_be_resumed():
    tried = replace(READY, bad_resumes=BAD_ID_TRIES)
    assert settle(tried, START, Result(Outcome.DONE, run=RUN), NOW).memory.bad_resumes == 0


@pytest.mark.parametrize(
    ("outcome", "kind", "fatal", "retry"),
    [
        (Outcome.IMPOSSIBLE, EventType.AGENT_FAILED_FOR_GOOD, "why", False),
        (Outcome.REFUSED, EventType.AGENT_START_FAILED, "", True),
        (Outcome.UNKNOWN, EventType.AGENT_START_FAILED, "", True),
        (Outcome.EXISTS, None, "", False),
        (Outcome.STALE, None, "", False),
    ],
)
def test_a_start_that_was_not_made(outcome, kind, fatal, retry):
    after = settle(READY, START, Result(outcome, "why"), NOW)
    assert kinds(after) == [kind] * (kind is not None)
    assert after.memory.fatal == fatal
    assert (after.memory.retry_at == NOW.after(REFUSED_AGAIN_S)) is retry
    assert not after.healed


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.UNKNOWN])
def test_what_may_have_been_pasted_goes_no_step_back(outcome):  # I11: it is never typed twice
    after = settle(TYPING, PASTE, Result(outcome), NOW)
    assert after.memory.outbox == (replace(SENT, pasted=outcome is Outcome.DONE),)
    assert bool(after.notes) is (outcome is Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("effect", "outcome", "status", "enters"),
    [
        (PASTE, Outcome.STALE, MessageState.QUEUED, 2),
        (POST, Outcome.REFUSED, MessageState.QUEUED, 2),
        (PRESS, Outcome.STALE, MessageState.TYPED, 1),
    ],
)
def test_what_was_certainly_not_typed_goes_a_step_back(effect, outcome, status, enters):
    after = settle(TYPING, effect, Result(outcome, "the pane is gone"), NOW)
    (back,) = after.memory.outbox
    assert (back.status, back.enters, back.why) == (status, enters, "the pane is gone")
    assert (after.ended, after.wake_at) == ((), NOW.after(1.0))


def test_what_can_never_be_typed_leaves_the_queue_as_failed():
    after = settle(TYPING, PASTE, Result(Outcome.IMPOSSIBLE, "no such file"), NOW)
    assert after.memory.outbox == ()
    assert [(m.status, m.why) for m in after.ended] == [(MessageState.FAILED, "no such file")]


def test_a_message_that_is_not_in_the_outbox_any_more_changes_nothing():
    after = settle(READY, PASTE, Result(Outcome.STALE, "gone"), NOW)
    assert (after.memory, kinds(after)) == (READY, [EventType.ACTION_STALE])


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.DONE, None),
        (Outcome.STALE, EventType.ACTION_STALE),
        (Outcome.UNKNOWN, EventType.ACTION_FAILED),
    ],
)
def test_any_other_effect_is_told_when_it_was_not_done(outcome, kind):
    after = settle(READY, Keep("a", REF, "unread"), Result(outcome, "x"), NOW)
    assert kinds(after) == [kind] * (kind is not None)
    assert after.memory is READY


def test_the_end_of_a_pause_is_told_once_it_is_on_record():
    act = Unpause("a", "its pause is over")
    assert kinds(settle(READY, act, Result(Outcome.DONE), NOW)) == [EventType.AGENT_UNPAUSED]
    assert kinds(settle(READY, act, Result(Outcome.STALE, "paused anew"), NOW)) == [EventType.ACTION_STALE]


@pytest.mark.parametrize("acted", [True, False])
def test_a_window_that_was_seen_stays_and_one_that_an_effect_would_have_changed_does_not(acted):
    before, after = READY, replace(READY, limit=limit())
    assert (take_back(before, after, acted=acted).limit is None) is acted
