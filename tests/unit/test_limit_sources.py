"""When does a limit end? The source that has the number itself is believed before any banner's words."""

from __future__ import annotations

import pytest

from fleet.backends import profiles
from fleet.backends.claude import signals as claude_signals
from fleet.backends.codex import signals as codex_signals
from fleet.backends.sources import Facts, Heading, Reach, Source
from fleet.core.agent.limits import limits
from fleet.core.heard import Heard, fold
from fleet.core.memory import Run
from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness
from fleet.supervisor.eye import HEARSAY_S, Eye
from fleet.supervisor.hear import Ears
from tests.records import replace
from tests.unit.cases import NOW, READY, WD, case, limit, reading, seen

SLACK = WD.limit_reset_slack
HIT = ReportKind.LIMIT_HIT


def told(until: float | None, source: Witness = Witness.TRANSCRIPT):
    return limit(since=NOW.wall, until=until or 0.0, line="no more", source=source, parsed=until is not None)


def window(until: float, source: Witness = Witness.SCREEN, **more):
    return replace(READY, state="limited", limit=limit(until=until + SLACK, source=source, **more))


def banner(until: float | None):
    return reading("limited", line="resets 3pm", until=until)


def test_a_number_that_comes_after_the_banner_moves_the_window():
    """T71."""
    look = seen(reading=banner(NOW.wall + 600), limit=told(NOW.wall + 777))
    verdict = limits(case(window(NOW.wall + 600), seen=look))
    assert verdict.memory.limit.until == NOW.wall + 777 + SLACK
    assert verdict.memory.limit.source == "transcript"


def test_the_same_number_again_changes_nothing():
    look = seen(reading=banner(NOW.wall + 600), limit=told(NOW.wall + 600))
    verdict = limits(case(window(NOW.wall + 600), seen=look))
    assert (verdict.memory, verdict.notes) == (None, ())


@pytest.mark.parametrize(("source", "moved"), [(Witness.SCREEN, True), (Witness.TRANSCRIPT, False)])
def test_a_later_banner_moves_what_a_banner_named_and_not_what_a_source_did(source, moved):
    """A banner without a zone may be hours off."""
    look = seen(reading=banner(NOW.wall + 7200))
    verdict = limits(case(window(NOW.wall + 600, source), seen=look))
    assert bool(verdict.notes) is moved


def test_a_window_that_a_person_has_ended_is_not_moved():
    look = seen(reading=banner(NOW.wall + 600), limit=told(NOW.wall + 777))
    assert limits(case(window(NOW.wall + 600, Witness.OPERATOR), seen=look)).notes == ()


@pytest.mark.parametrize("until", [None, NOW.wall + 900])
def test_a_source_without_a_number_takes_the_banners(until):
    look = seen(reading=banner(until), limit=told(None))
    made = limits(case(replace(READY, state="limited"), seen=look)).memory.limit
    assert made.parsed is (until is not None)
    assert made.until == (until + SLACK if until else NOW.wall + WD.limit_probe_fallback)


WORDS = "You've hit your session limit · resets 3pm"
DAY_S = 86_400.0


@pytest.mark.parametrize("probed", [0.0, NOW.steady - 60])
def test_the_banner_of_a_window_that_a_source_named_is_not_the_next_window(probed):
    """A bare time of day reads as tomorrow's once it has passed; only the screen puts a glyph before it."""
    over = limit(
        until=NOW.wall - 1, line=WORDS, source=Witness.HOOK, probed=probed, probes=1 if probed else 0
    )
    look = seen(reading=reading("limited", line=f"⎿ {WORDS} (Europe", until=NOW.wall + DAY_S - 60, draft=""))
    memory = replace(READY, state="limited", state_looks=9, limit=replace(over, named=NOW.wall - 1))
    verdict = limits(case(memory, seen=look))
    assert verdict.memory.limit.until < NOW.wall + WD.limit_probe_fallback + 1
    assert "one probe" in verdict.reason or probed


def test_other_words_are_another_window():
    over = limit(until=NOW.wall - 1, line=WORDS, source=Witness.HOOK, named=NOW.wall - 1)
    look = seen(reading=reading("limited", line="⎿ You've hit your weekly limit", until=NOW.wall + DAY_S))
    verdict = limits(case(replace(READY, state="limited", state_looks=9, limit=over), seen=look))
    assert verdict.memory.limit.until == NOW.wall + DAY_S + SLACK


BY_WORDS = Report(HIT, 100.0, Witness.HOOK, until=1000.0, text="resets 3pm")
BY_NUMBER = Report(HIT, 99.5, Witness.TRANSCRIPT, until=1017.0, text="resets 3pm", exact=True)


@pytest.mark.parametrize("order", [(BY_WORDS, BY_NUMBER), (BY_NUMBER, BY_WORDS)])
def test_of_two_reports_of_one_limit_the_number_counts_in_whatever_order_they_come(order):
    heard = Heard()
    for signal in order:
        heard = fold(heard, [signal])
    assert (heard.limit.at, heard.limit.until, heard.limit.exact) == (100.0, 1017.0, True)
    assert fold(Heard(), order).limit.until == 1017.0


def test_another_limit_later_is_another_limit():
    heard = fold(Heard(), [BY_NUMBER, BY_WORDS._replace(at=500.0, until=2000.0)])
    assert heard.limit.until == 2000.0


def test_a_limit_is_passed_on_once_and_once_more_when_its_end_is_known_better():
    ears = Ears(None, None, None)
    ear = ears._ears["p-a"] = type("Ear", (), {"heard": fold(Heard(), [BY_WORDS]), "told": (0.0, None)})()
    assert ears.new_limit("p-a").until == 1000.0
    assert ears.new_limit("p-a") is None
    ear.heard = fold(ear.heard, [BY_NUMBER])
    assert ears.new_limit("p-a").until == 1017.0
    assert ears.new_limit("p-a") is None


def heading(cli: str) -> Heading:
    run = Run("run", "p-a", 0.0)
    facts = Facts("/w", run.started)
    return Heading(profiles.load(cli), facts, Source("x", Reach.TAIL, "x"), NOW.wall, "UTC")


def test_the_transcript_and_the_rollout_have_the_number():
    record = (
        b'{"type":"assistant","timestamp":"2026-11-16T03:00:00Z","sessionId":"s","isApiErrorMessage":true,'
        b'"error":"rate_limit","quotaLimits":{"resetsAt":1794803417},"message":{"content":[{"type":"text",'
        b'"text":"You\\u0027ve hit your session limit \\u00b7 resets 4:30am"}]}}'
    )
    (signal,) = claude_signals.from_transcript(heading("claude"), record)
    assert (signal.kind, signal.until, signal.exact) == (HIT, 1794803417.0, True)
    events = (
        b'{"timestamp":"2026-11-16T03:00:00Z","type":"event_msg","payload":{"type":"token_count",'
        b'"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1794803417}}}}\n'
        b'{"timestamp":"2026-11-16T03:00:01Z","type":"event_msg","payload":{"type":"error",'
        b'"message":"You\\u2019ve hit your usage limit. Try again at 4:30 AM."}}\n'
    )
    (signal,) = codex_signals.from_rollout(heading("codex"), events)
    assert (signal.kind, signal.until, signal.exact) == (HIT, 1794803417.0, True)


@pytest.mark.parametrize(
    ("state", "age", "working"),
    [
        pytest.param("working", 0.0, True, id="just said"),
        pytest.param("idle", 60.0, True, id="a minute ago, at an idle prompt"),
        pytest.param("idle", HEARSAY_S + 60.0, None, id="long ago, at an idle prompt"),
        pytest.param("error", HEARSAY_S + 60.0, None, id="long ago, at a prompt below an error"),
        pytest.param("error", 60.0, True, id="just now: the CLI tries again by itself"),
        pytest.param("limited", HEARSAY_S + 60.0, True, id="long ago, with no idle prompt to deny it"),
        pytest.param("limited", -HEARSAY_S - 60.0, None, id="before the clock was set back"),
    ],
)
def test_how_long_a_source_is_believed_that_says_working(state, age, working):
    heard = Heard(working=True, at=NOW.wall - age, source=Witness.TRANSCRIPT)
    look = Eye(reading=reading(state), heard=heard).with_reports(seen(), NOW)
    assert look.working is working
