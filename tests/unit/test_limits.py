"""The window of a usage limit: a table of stages. From where, by which row, to where."""

from __future__ import annotations

import pytest

from fleet.backends.screen_reader import read
from fleet.core.agent.decide import judge
from fleet.core.agent.limits import HORIZON_S, SETTLE_S, UNWATCHED, WATCHED, Stage, Why, stage_of, transition
from fleet.core.case import Moment
from fleet.core.evidence import DEALT, EARLY, OWN, PATIENCE_S, dealt_with, weigh
from fleet.core.heard import Heard, fold
from fleet.core.memory import AgentMemory
from fleet.core.model import Backend
from fleet.core.queue import PROBE
from fleet.core.remember import remember
from fleet.core.restarts import forget
from fleet.core.seen import Report, ReportKind, ScreenState
from fleet.core.words import Witness
from tests.records import replace
from tests.unit.cases import AGENT, NOW, PANE, READY, WD, case, dead, limit, message, reading, seen

S, W = Stage, Why
LINE = "limit · resets 3pm"
BANNER = reading("limited", line=LINE, until=NOW.wall + 600)
OTHER = BANNER._replace(line="another limit · resets 5pm", until=NOW.wall + 7200)
TOLD = limit(source=Witness.HOOK, until=NOW.wall + 900)
BUSY = seen(reading=reading("working"))
LIMITED = replace(READY, state="limited")
HINTED = replace(LIMITED, limit_hint=NOW.steady - 1)
ARMED = replace(LIMITED, limit=limit())
OVER = replace(LIMITED, limit=limit(until=NOW.wall - 1))
PROBED = replace(OVER, outbox=(message("probe"),))
SETTLING = replace(LIMITED, limit=limit(until=NOW.wall - 60, probed=NOW.steady - 20, probes=1))
JUST_NOW = {"since": NOW.wall, "until": NOW.wall + 600}
REPORTED = replace(READY, limit=limit(source=Witness.HOOK, **JUST_NOW))  # the screen shows the turn it ended
SHOWN = replace(READY, limit=limit(**JUST_NOW))
BRIEF = replace(REPORTED, limit=replace(REPORTED.limit, until=NOW.wall + SETTLE_S / 2))
FADING = replace(ARMED, state="idle", limit=limit(clear_seen=NOW.steady - 5))
BEFORE = ARMED.limit.since - 1  # a turn that the limit has ended
MENU = BANNER._replace(dialog="limit-menu", key="Escape")


def at_work(memory: AgentMemory) -> AgentMemory:
    return replace(memory, state="working")


def after(seconds: float) -> Moment:
    return Moment(NOW.after(abs(seconds)), NOW.after_wall(seconds))


@pytest.mark.parametrize(
    ("memory", "look", "begins", "why", "ends", "more"),
    [
        (READY, seen(), S.OPEN, None, S.OPEN, {}),
        (READY, seen(limit=TOLD), S.OPEN, W.REPORTED, S.ARMED, {}),
        (LIMITED, seen(reading=BANNER), S.OPEN, W.HINTED, S.OPEN, {}),
        (HINTED, seen(reading=BANNER, fresh=False), S.OPEN, W.HINTED, S.OPEN, {}),
        (HINTED, seen(reading=BANNER), S.OPEN, W.SHOWN, S.ARMED, {}),
        (replace(HINTED, state="idle"), seen(), S.OPEN, W.FLICKERED, S.OPEN, {}),
        (HINTED, seen(pane=dead()), S.OPEN, W.ACCOUNT, S.OPEN, {"account_until": NOW.wall + 60}),
        (READY, seen(), S.OPEN, W.ACCOUNT, S.OPEN, {"account_until": NOW.wall + 60}),
        (at_work(ARMED), BUSY, S.ARMED, W.AT_WORK, S.OPEN, {}),
        (ARMED, seen(reading=MENU, working=True, asked="dialog open"), S.ARMED, W.SHUT, S.ARMED, {}),
        (ARMED, seen(reading=BANNER, working=True, heard_at=BEFORE), S.ARMED, W.SHUT, S.ARMED, {}),
        (ARMED, seen(reading=BANNER, working=True, heard_at=NOW.wall), S.ARMED, W.AT_WORK, S.OPEN, {}),
        (at_work(REPORTED), BUSY, S.ARMED, W.SHUT, S.ARMED, {}),
        (replace(REPORTED, state="retrying"), BUSY, S.ARMED, W.SHUT, S.ARMED, {}),
        (at_work(REPORTED), BUSY, S.ARMED, W.AT_WORK, S.OPEN, {"now": after(SETTLE_S)}),
        (at_work(REPORTED), BUSY, S.ARMED, W.AT_WORK, S.OPEN, {"now": after(-3600)}),
        (REPORTED, replace(BUSY, working=True, heard_at=NOW.wall), S.ARMED, W.AT_WORK, S.OPEN, {}),
        (at_work(SHOWN), BUSY, S.ARMED, W.AT_WORK, S.OPEN, {}),
        (at_work(BRIEF), BUSY, S.OVER, W.AT_WORK, S.OPEN, {"now": after(SETTLE_S / 2)}),
        (ARMED, seen(reading=BANNER, limit=TOLD), S.ARMED, W.MOVED, S.ARMED, {}),
        (ARMED, seen(reading=OTHER), S.ARMED, W.MOVED, S.ARMED, {}),
        (replace(ARMED, state="idle"), seen(), S.ARMED, W.FADING, S.ARMED, {}),
        (FADING, seen(), S.ARMED, W.GONE, S.OPEN, {}),
        (ARMED, seen(reading=BANNER), S.ARMED, W.SHUT, S.ARMED, {}),
        (ARMED, seen(pane=dead()), S.ARMED, W.SHUT, S.ARMED, {}),
        (replace(OVER, fatal="x"), seen(reading=BANNER), S.OVER, W.CONDEMNED, S.OVER, {}),
        (OVER, seen(reading=BANNER), S.OVER, W.ACCOUNT, S.OVER, {"account_until": NOW.wall + 60}),
        (SETTLING, seen(reading=BANNER), S.SETTLING, W.REFUSED, S.ARMED, {"account_until": NOW.wall + 60}),
        (
            replace(OVER, state="idle", outbox=(message("kickoff"),)),
            seen(), S.OVER, W.BEGUN_ANEW, S.OPEN, {},
        ),
        (replace(OVER, state_looks=2), seen(reading=OTHER), S.OVER, W.ANOTHER, S.ARMED, {}),
        (PROBED, seen(reading=BANNER), S.PROBED, W.UNDERWAY, S.PROBED, {}),
        (
            OVER, seen(reading=BANNER), S.OVER, W.FORBIDDEN, S.OVER,
            {"agent": replace(AGENT, resume_on_reset=False)},
        ),
        (OVER, seen(reading=BANNER), S.OVER, W.QUEUED, S.OVER, {"stagger": 10.0}),
        (OVER, seen(pane=dead()), S.OVER, W.UNCOUNTED, S.OVER, {}),
        (OVER, seen(pane=dead(), survivors=2), S.OVER, W.LEFTOVERS, S.OVER, {}),
        (OVER, seen(pane=dead(), survivors=0), S.OVER, W.RESTARTED, S.OPEN, {}),
        (OVER, seen(reading=MENU), S.OVER, W.MENU, S.OVER, {}),
        (OVER, seen(reading=MENU._replace(key="")), S.OVER, W.QUESTION, S.OVER, {}),
        (OVER, seen(reading=BANNER), S.OVER, W.PROBED, S.PROBED, {}),
        (
            replace(SETTLING, limit=replace(SETTLING.limit, probed=NOW.steady - 3)),
            seen(reading=BANNER), S.SETTLING, W.WATCHED, S.SETTLING, {},
        ),
        (SETTLING, seen(reading=BANNER), S.SETTLING, W.REFUSED, S.ARMED, {}),
        (replace(SETTLING, state="idle"), seen(), S.SETTLING, W.WENT_THROUGH, S.OPEN, {}),
    ],
)  # fmt: skip
def test_each_row_takes_a_window_where_the_table_says(memory, look, begins, why, ends, more):
    before = case(memory, seen=look, **more)
    row = transition(before, WATCHED)
    assert stage_of(before) is begins
    assert (row.why if row else None) is why
    verdict = row.do(before) if row else None
    after = replace(before, memory=verdict.memory) if verdict and verdict.memory else before
    assert stage_of(after) is ends
    assert row is None or ends is (row.to or begins)


def test_work_that_a_screen_shows_just_after_a_reported_limit_is_looked_at_again_when_it_counts():
    kept = judge(case(at_work(REPORTED), seen=BUSY, now=after(1.0)))
    assert kept.wake_at == NOW.after(SETTLE_S)
    idle = judge(case(replace(REPORTED, state="idle"), seen=seen(), now=after(1.0)))
    assert idle.wake_at == NOW.after(600)


def test_a_window_that_a_clock_armed_which_was_set_back_since_ends_now():
    far = replace(LIMITED, limit=limit(until=NOW.wall + 300 * 86_400))
    ended = remember(case(far, seen=seen(reading=BANNER)))[0].limit
    assert (ended.until, ended.named) == (NOW.wall, 0.0)
    near = replace(far, limit=limit(until=NOW.wall + HORIZON_S))
    assert remember(case(near, seen=seen(reading=BANNER)))[0].limit == near.limit


def test_every_row_of_the_tables_is_named_in_these_tests():
    cases = test_each_row_takes_a_window_where_the_table_says.pytestmark[0].args[1]
    assert {row.why for row in WATCHED} == {c[3] for c in cases} - {None}
    assert {row.why for row in UNWATCHED} <= set(Why)


# --- the horizon ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "capped"), [(7.9, False), (30, True), (400, True)])
def test_no_window_is_longer_than_eight_days_and_the_date_is_told(days, capped):
    """T71."""
    banner = BANNER._replace(until=NOW.wall + days * 86_400)
    verdict = judge(case(HINTED, seen=seen(reading=banner)))
    made = verdict.memory.limit
    assert made.until == (NOW.wall + HORIZON_S if capped else banner.until + WD.limit_reset_slack)
    assert ("for 8 days" in verdict.shown.reason) is capped
    later = case(verdict.memory, seen=seen(reading=banner))
    assert transition(later, WATCHED).why is W.SHUT  # what it names moves nothing at the next look


# --- what a banner meant when it came ----------------------------------------------------------------

CLOCK = Backend("x", "x", active_re="busy", limit_re="limit")


@pytest.mark.parametrize("slack", [0.0, 45.0, 90.0, 600.0])
def test_a_time_of_day_is_not_tomorrows_once_it_has_passed(slack):
    """R153: whatever the slack, and whenever the watchdog was started again, one window and one probe."""
    wd = replace(WD, limit_reset_slack=slack)
    midnight = NOW.wall - NOW.wall % 86_400 + 86_400
    memory, probed, windows = READY, 0, set()
    for step in range(0, 2000, 20):
        now = NOW._replace(wall=midnight - 300 + step, steady=NOW.steady + step)
        words = read(CLOCK, "go\nlimit reached, resets 12:00am", now=now.wall, zone="UTC")
        look = seen(reading=words, pane=PANE._replace(activity=midnight - 400))
        judged = judge(case(memory, seen=look, now=now, watchdog=wd, backend=CLOCK))
        memory = judged.memory
        probed += sum(note.type == "agent.probed" for note in judged.notes)
        windows |= {memory.limit.until} if memory.limit else set()
        if probed:
            break
    assert windows == {midnight + slack}
    assert probed == 1
    assert now.wall >= midnight + slack


# --- who said it --------------------------------------------------------------------------------------

SPOKEN = BANNER._replace(spoken=True)
BAD = [s for s in ScreenState if s in {"limited", "wedged", "auth", "context", "error"}]


def weighed(memory=READY, **more):
    return weigh(case(memory, seen=seen(**more)))


@pytest.mark.parametrize("state", BAD)
def test_words_that_a_source_ascribes_to_the_model_accuse_nobody(state):
    own = weighed(reading=SPOKEN._replace(state=state), answered=True)
    assert (own.seen.reading.state, own.seen.reading.pattern) == ("idle", OWN)
    notice = weighed(reading=SPOKEN._replace(state=state))
    assert notice.seen.reading.state == state
    footer = weighed(reading=SPOKEN._replace(state=state, spoken=False), answered=True)
    assert footer.seen.reading.state == state  # no agent writes there


def test_words_wait_a_moment_for_the_source_that_says_the_turn_goes_on():
    early = weighed(reading=SPOKEN, working=True)
    assert (early.seen.reading.state, early.seen.reading.pattern) == ("working", EARLY)
    later = replace(early, now=NOW._replace(steady=NOW.steady + 60), seen=seen(reading=SPOKEN, working=True))
    assert weigh(later).seen.reading.state == "limited"


@pytest.mark.parametrize(
    ("heard", "state", "pattern"),
    [
        pytest.param(60.0, "working", EARLY, id="the next turn has just begun, and the screen is late"),
        pytest.param(60.0 - PATIENCE_S, "limited", "", id="the turn has gone on for long"),
        pytest.param(3600.0, "limited", "", id="the clock was set back"),
    ],
)
def test_old_words_wait_for_the_turn_that_a_source_has_just_seen_begin(heard, state, pattern):
    stood = weighed(reading=SPOKEN).memory
    look = seen(reading=SPOKEN, working=True, heard_at=NOW.after_wall(heard))
    begun = weigh(case(stood, seen=look, now=after(60.0)))
    assert (begun.seen.reading.state, begun.seen.reading.pattern) == (state, pattern)


@pytest.mark.parametrize(("ended", "own"), [(0.0, True), (-1.0, True), (-60.0, False)])
def test_words_that_were_the_models_own_stay_so_when_the_next_turn_begins(ended, own):
    """Unless the report is of an earlier turn: then the report of this one is awaited."""
    said = weighed(reading=SPOKEN, answered=True, heard_at=NOW.after_wall(ended))
    assert said.seen.reading.pattern == OWN
    interrupted = weigh(case(said.memory, seen=seen(reading=SPOKEN, working=False), now=after(60.0)))
    assert interrupted.seen.reading.state == ("idle" if own else "limited")


@pytest.mark.parametrize(
    ("story", "own"),
    [
        ("prompt_taken turn_ended answered", True),
        ("prompt_taken turn_failed turn_ended", False),
        ("prompt_taken limit_hit turn_ended asked", False),
        ("prompt_taken turn_ended answered prompt_taken", False),
        ("prompt_taken answered turn_ended", True),
        ("turn_ended", False),
    ],
)
def test_only_a_source_that_saw_the_model_end_the_turn_says_so(story, own):
    heard = Heard()
    for at, kind in enumerate(story.split(), 100):
        heard = fold(heard, [Report(ReportKind(kind), float(at), Witness.HOOK)])
    assert heard.own_words is own
    assert (heard.limit is not None) is ("limit_hit" in story)  # its menu is no other turn


# --- dealt with ---------------------------------------------------------------------------------------


def shown(text: str, *ours: str):
    return seen(reading=read(CLOCK, text, now=NOW.wall, zone="UTC", ours=ours))


OLD = "$ go\nlimit reached"
DONE = replace(weigh(case(LIMITED, seen=shown(OLD))).memory, limit=limit())


@pytest.mark.parametrize(
    ("screens", "counts"),
    [
        ([OLD], False),
        ([f"{OLD}\ndone"], False),
        ([f"busy\n{OLD}\nx", f"{OLD}\nx"], False),
        (["limit reached\ndone"], False),  # what stood above has scrolled away
        ([f"{OLD}\n$ more\nlimit reached"], True),  # said anew
        (["busy", OLD], True),  # it was gone
        ([f"{OLD}\ndone\nmore", OLD], True),  # at the bottom again
        (["$ go\nlimit reached, resets in 2h"], True),  # other words
    ],
)
def test_words_that_had_their_consequence_count_again_only_when_they_are_said_anew(screens, counts):
    memory = judge(case(replace(DONE, state="working"), seen=BUSY_WITH_OLD)).memory
    assert memory.limit is None
    for screen in screens:
        last = weigh(case(memory, seen=shown(screen)))
        memory = last.memory
    assert (last.seen.reading.state == "limited") is counts
    assert counts or last.seen.reading.pattern == DEALT


def test_the_same_answer_to_a_later_probe_is_said_anew():
    """Two windows, each ended by a probe: the screen may look the same below both."""

    def later(seconds: float) -> Moment:
        return Moment(NOW.steady + seconds, NOW.wall + seconds)

    answer = f"limit reached\n» {PROBE}\nlimit reached"
    first = weigh(case(LIMITED, seen=shown(answer, PROBE))).memory
    busy = shown(f"{answer}\nbusy", PROBE)
    memory = judge(case(replace(first, limit=limit(), state="working"), seen=busy)).memory
    assert memory.dealt
    again = shown(f"{answer}\nmore\nlimit reached", PROBE)
    memory = weigh(case(memory, seen=again, now=later(50))).memory
    said_anew = shown(f"more\n{answer}", PROBE)
    assert weigh(case(memory, seen=said_anew, now=later(61))).seen.reading.pattern == DEALT
    probed = replace(memory, said=(PROBE,), typed=(later(60).steady,))
    new = weigh(case(probed, seen=said_anew, now=later(61)))
    assert new.seen.reading.state == "limited"
    typed_again = replace(new.memory, typed=(later(90).steady,))
    for seconds in (91, 92):  # before the answer to that is there, and after
        kept = weigh(case(typed_again, seen=said_anew, now=later(seconds)))
        assert kept.seen.reading.state == "limited", "another text of ours makes no old words of them"
    settled = dealt_with(new.memory)
    assert weigh(case(settled, seen=said_anew, now=later(62))).seen.reading.pattern == DEALT


BUSY_WITH_OLD = shown(f"{OLD}\nbusy")


def test_a_reset_pardons_words_that_condemned_and_only_those():
    model = reading("error", pattern="model", line="There's an issue with the model", fix="correct `model`")
    told = judge(case(replace(READY, state="error", state_looks=2), seen=seen(reading=model)))
    assert told.memory.fatal
    pardoned = forget(told.memory, NOW.wall)
    assert judge(case(pardoned, seen=seen(reading=model))).memory.fatal == ""
    wedged = reading("wedged", line="broken")
    noted = forget(weigh(case(READY, seen=seen(reading=wedged))).memory, NOW.wall)
    assert weigh(case(noted, seen=seen(reading=wedged))).seen.reading.state == "wedged"


def test_a_refusal_that_a_source_told_before_the_reset_is_pardoned_with_it():
    refused = {"auth_failed": "no", "heard_at": NOW.wall - 5}
    assert judge(case(seen=seen(**refused))).memory.fatal
    assert not judge(case(forget(READY, NOW.wall), seen=seen(**refused))).memory.fatal
    again = seen(auth_failed="no", heard_at=NOW.wall + 5)
    assert judge(case(forget(READY, NOW.wall), seen=again)).memory.fatal


# --- where a limit may be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("screen", "limited"),
    [
        ("limit reached", True),
        ("  | limit reached |", True),
        ('{"error": "limit reached"}', True),
        ('error={"message":"your limit reached"}', True),
        ("it's a limit", True),
        ("> limit reached", False),
        ("❯ what is my limit", False),
        ('it said "your limit is reached" and stopped', False),
        ("see `limit` below", False),
        ("he wrote “the limit” again", False),
        (f"{PROBE} limit", False),
    ],
)
def test_what_is_quoted_or_typed_is_no_banner(screen, limited):
    """I6 T70."""
    found = read(CLOCK, f"x\n{screen}\n", now=NOW.wall, zone="UTC", ours=(f"{PROBE} limit", "other"))
    assert (found.state == "limited") is limited
