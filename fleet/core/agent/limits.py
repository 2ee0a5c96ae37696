"""A usage limit is a window. Inside it nothing is done to the agent; at its end, one probe.

The window is always in one of five stages. What a look shows decides, by the tables at the end, into which
one it goes and what is done on the way. The first row of its stage that holds is taken.

         a report, or            its end           one probe, when             it was
         a banner twice          has come          nothing is in its way       handed in
    OPEN --------------> ARMED ----------> OVER -----------------------> PROBED ---------> SETTLING
     ^                   ^ |                                                                  |  |
     |                   | +- at work, or the banner is gone -+                               |  |
     |                   +--- the banner again ---------------|-------------------------------+  |
     +--------------------------------------------------------+--- at work, or no banner --------+

  OPEN      There is no window. One look at a banner is only a hint, because a quoted one flickers by. A CLI
            that reports its limit itself is believed at once.
  ARMED     The window is shut: until the end that was named and the slack, for eight days at most. An end
            counts as it was meant when the banner came; no later look moves it to another day. One that lies
            farther ahead is tried after eight days, a banner that names none at the fallback pace. A report
            comes before the screen is drawn anew: work that it shows counts 8 s after a reported limit. A
            turn that a source reports counts at once.
  OVER      The end has come. What died inside is started, a menu is closed with the one key that its profile
            allows, agents of one account go one by one. `resume_on_reset = false` waits for a person.
  PROBED    The probe, or a person's words in its place, is on its way: the typing rule has it.
  SETTLING  It was handed in, and what the agent does now decides. Work ends the window. A banner said anew
            shuts it again. So does the old one with nothing below it, for the fallback.

What ends a window is never the clock alone: at its end the agent is tried. A banner whose window is over has
been dealt with, and evidence.py keeps it from counting a second time. Everything that is remembered of a
window is `AgentMemory.limit`, `limit_hint` and `words`; the stage follows from it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from fleet.core.agent.stopping import begin
from fleet.core.case import SEEN_ONCE, Case, Verdict, do, hold
from fleet.core.decision import Note
from fleet.core.effects import Press, Start
from fleet.core.evidence import answered_below, bare, dealt_with, same_words
from fleet.core.memory import AgentMemory, Limit
from fleet.core.queue import PROBE, own, queue, withdrawn
from fleet.core.remember import HORIZON_S
from fleet.core.seen import Reading, ScreenState
from fleet.core.words import Detail, EventType, MessageKind, Witness
from fleet.times.moment import NEVER, UNNAMED, Steady, Wall, later, utc

TRIES_IT = frozenset({MessageKind.PROBE, MessageKind.SEND})  # what may be typed to a limited agent at its end
LOUD_AT = 3  # the probe from which a limit without a reset time is reported as a problem
SETTLE_S = 8.0  # how long a screen may lag: the old banner after a probe, the old turn after a reported limit
CLEAR_S = 2.0  # a banner must be gone this long before we believe it
AGAIN_S = 0.5
MIN_AHEAD_S = 5.0
SAME_S = 60.0  # banners name minutes
PRESSES = 2
LOOKS = 2


class Stage(StrEnum):
    """Where a window stands."""

    OPEN = "open"
    ARMED = "armed"
    OVER = "over"
    PROBED = "probed"
    SETTLING = "settling"


class Why(StrEnum):
    """What took a window into its next stage, or keeps it where it is."""

    REPORTED = "a structured source reported a limit"
    HINTED = "a banner was seen once"
    SHOWN = "a banner was seen twice"
    FLICKERED = "the hint of a banner is gone"
    ACCOUNT = "an agent of the same account is limited"
    AT_WORK = "the agent is at work"
    MOVED = "a better end is known"
    FADING = "the banner is gone, seen once"
    GONE = "the banner is gone, seen twice"
    SHUT = "its end has not come"
    CONDEMNED = "it failed for good"
    BEGUN_ANEW = "a new run begins after it"
    ANOTHER = "another banner names an end to come"
    UNDERWAY = "the probe is on its way"
    FORBIDDEN = "resume_on_reset is false"
    QUEUED = "its mates go first"
    UNCOUNTED = "it died, and its processes are not counted yet"
    LEFTOVERS = "it died and left processes behind"
    RESTARTED = "it died, and is started again"
    MENU = "a dialog is open that one key closes"
    QUESTION = "a dialog is open that only a person may answer"
    PROBED = "one probe"
    WATCHED = "what the probe does is not to be seen yet"
    REFUSED = "the banner stands there after the probe"
    WENT_THROUGH = "no banner stands there after the probe"
    UNWATCHED = "it is not watched, and its banner is gone"


class Transition(NamedTuple):
    """One transition: in these stages, if `when` holds, `do` it and be in stage `to`."""

    stages: frozenset[Stage]
    why: Why
    when: Callable[[Case], bool]
    do: Callable[[Case], Verdict | None]
    to: Stage | None = None  # None: it stays where it is


def limits(case: Case) -> Verdict | None:
    """Arm, keep, probe and clear the window of an agent that is watched."""
    if not case.agent.has_screen or case.seen.auth_failed:
        return None  # refused credentials are told whatever the window: no end of one fixes them
    row = transition(case, WATCHED)
    return row.do(case) if row else None


def noted(case: Case) -> Verdict | None:
    """The window of an agent that is not watched: it is its account's as well, so it must be known."""
    if not case.agent.has_screen:
        return None
    row = transition(case, UNWATCHED)
    return row.do(case) if row else None


def transition(case: Case, table: tuple[Transition, ...]) -> Transition | None:
    """The row of the table that this look asks for."""
    stage = stage_of(case)
    return next((row for row in table if stage in row.stages and row.when(case)), None)


def stage_of(case: Case) -> Stage:
    """Where the window stands: it follows from what is remembered and from the clock."""
    limit = case.memory.limit
    if limit is None:
        return Stage.OPEN
    if case.now.wall < limit.until:
        return Stage.ARMED
    if _alive(case) and any(m.kind in TRIES_IT for m in case.memory.outbox):
        return Stage.PROBED
    return Stage.SETTLING if _alive(case) and limit.probed else Stage.OVER


# --- what a look shows ------------------------------------------------------------------------------


def _alive(case: Case) -> bool:
    return case.seen.pane is not None and not case.seen.pane.dead


def _works(case: Case) -> bool:
    """An open question is no work, least of all the limit's own menu.

    Nor is a turn that the limit has ended: one that a source saw begin before the window did, or one that a
    screen still shows just after a source reported the limit.
    """
    limit = case.memory.limit
    since = limit.since if limit is not None else UNNAMED
    told = bool(case.seen.working) and not case.seen.asked and case.seen.heard_at >= since
    return _alive(case) and (told or (_shows_work(case) and not _is_redrawing(case)))


def _shows_work(case: Case) -> bool:
    return case.memory.state in {ScreenState.WORKING, ScreenState.RETRYING}


def _is_redrawing(case: Case) -> bool:
    """Was the limit reported so lately that the screen may still show the turn which it ended?"""
    limit = case.memory.limit
    if limit is None or limit.source in {Witness.SCREEN, Witness.OPERATOR} or case.now.wall >= limit.until:
        return False
    return 0.0 <= case.now.since_wall(limit.since) < SETTLE_S  # below zero: the clock was set back since


def _banner(case: Case) -> Reading | None:
    reading = case.seen.reading
    return reading if _alive(case) and reading and reading.state is ScreenState.LIMITED else None


def _stands(case: Case) -> bool:
    return _alive(case) and case.memory.state == ScreenState.LIMITED


def _named(case: Case) -> Wall | None:
    """The end that the banner names, if it shows one that is to come."""
    banner = _banner(case)
    if banner is None or banner.until is None:
        return None
    return banner.until if banner.until > case.now.after_wall(-case.watchdog.limit_reset_slack) else None


def _is_seen_twice(case: Case) -> bool:
    hint = case.memory.limit_hint
    return _banner(case) is not None and bool(hint) and case.now.steady > hint and case.seen.fresh


def _is_moved(case: Case) -> bool:
    """Does a source that knows better, or a later banner, change a window that no operator has ended?"""
    limit, told, banner = _limit(case), case.seen.limit, _banner(case)
    if limit.source is Witness.OPERATOR:
        return False
    if told is not None and told.parsed and abs(_meant(case, told.until) - _named_end(limit)) > 1.0:
        return True
    if limit.source is not Witness.SCREEN or not limit.parsed or banner is None or banner.until is None:
        return False
    return _meant(case, banner.until) > _named_end(limit) + SAME_S


def _is_fading(case: Case) -> bool:
    """Only a banner that named an end says by its absence that the limit is over."""
    limit = _limit(case)
    read = _alive(case) and case.seen.reading is not None and case.memory.state == ScreenState.IDLE
    return read and limit.source is Witness.SCREEN and limit.parsed


def _is_gone(case: Case) -> bool:
    seen = _limit(case).clear_seen
    return _is_fading(case) and bool(seen) and case.now.since(seen) >= CLEAR_S and case.seen.fresh


def _is_held_by_mates(case: Case) -> bool:
    """What its own probe says is news for the whole account: then windows of other agents do not count."""
    limit = case.memory.limit
    watching = limit is not None and _alive(case) and bool(limit.probed) and case.now.wall >= limit.until
    return case.account_until > case.now.wall and not case.memory.fatal and not watching


def _begins_anew(case: Case) -> bool:
    idle = _alive(case) and case.memory.state == ScreenState.IDLE
    return idle and any(m.kind is MessageKind.KICKOFF for m in case.memory.outbox)


def _is_another(case: Case) -> bool:
    """It went on between two looks, or a person tried it, and met the next limit: that needs no probe."""
    limit, banner = _limit(case), _banner(case)
    if banner is None or limit.source is Witness.OPERATOR:
        return False
    return (banner.until or UNNAMED) > case.now.wall and not _is_same(banner.line, limit)


def _is_same(banner: str, limit: Limit) -> bool:
    """The same words; but one that named no end is another as soon as it goes on and names one."""
    return same_words(banner, limit.line) if limit.parsed else bare(banner) == bare(limit.line)


def _is_new_words(case: Case) -> bool:
    banner = _banner(case)
    return banner is not None and not _is_same(banner.line, _limit(case))


def _is_forbidden(case: Case) -> bool:
    limit = _limit(case)
    return not case.agent.resume_on_reset and limit.source is not Witness.OPERATOR and not limit.probed


def _is_in_queue(case: Case) -> bool:
    limit = _limit(case)
    return case.now.wall < limit.until + case.stagger and not limit.probes


def _has_menu(case: Case) -> bool:
    reading = case.seen.reading
    return _alive(case) and bool(reading and reading.dialog and reading.key) and case.memory.presses < PRESSES


def _has_question(case: Case) -> bool:
    return _alive(case) and bool(case.seen.reading and case.seen.reading.dialog)


def _settles_at(case: Case) -> Steady:
    return later(_limit(case).probed, SETTLE_S if _banner(case) else CLEAR_S)


def _is_refused(case: Case) -> bool:
    """A banner stands there. The old one, with an answer below it, says nothing any more."""
    banner = _banner(case)
    return banner is not None and not answered_below(case.memory, banner)


# --- what is done on the way ------------------------------------------------------------------------


def _limit(case: Case) -> Limit:
    assert case.memory.limit is not None
    return case.memory.limit


def _meant(case: Case, until: Wall) -> Wall:
    return later(until, case.watchdog.limit_reset_slack)


def _named_end(limit: Limit) -> Wall:
    return limit.named or limit.until


def _held(case: Case, why: str, wake_at: Steady | None = None, memory: AgentMemory | None = None) -> Verdict:
    return hold(why, Detail.LIMITED, wake_at, memory if memory is not case.memory else None)


def _arm(case: Case, until: Wall | None, line: str, source: Witness) -> Verdict:
    """Shut the window: until the end that was named, at most for the horizon; else for the fallback."""
    now, slack = case.now, case.watchdog.limit_reset_slack
    parsed = until is not None and until > now.after_wall(-slack)
    if until is not None and parsed:
        named = max(later(until, slack), now.after_wall(MIN_AHEAD_S))
        end = min(named, now.after_wall(HORIZON_S))
        what = "until its reset"
        if end < named:
            what = f"for 8 days and then tried, though it names {utc(named)}"
    else:
        named, end = UNNAMED, now.after_wall(case.watchdog.limit_probe_fallback)
        what = f"for the fallback, {now.ahead_wall(end):.0f} s, because it names no end that is to come"
    probes = case.memory.limit.probes if case.memory.limit else 0
    limit = Limit(now.wall, end, line, source, parsed, probes, named=named)
    memory = withdrawn(case.memory)._replace(limit=limit, limit_hint=NEVER)
    reason = f"usage limit ({source}), quiet {what}: {line}"
    return hold(reason, Detail.LIMITED, now.until(end), memory, (Note(EventType.AGENT_LIMITED, reason),))


def _arm_reported(case: Case) -> Verdict:
    told = case.seen.limit
    assert told is not None
    until = told.until if told.parsed else _named(case)  # the banner may say what the source does not
    return _arm(case, until, told.line, told.source)


def _arm_shown(case: Case) -> Verdict:
    banner = _banner(case)
    assert banner is not None
    return _arm(case, _named(case), banner.line, Witness.SCREEN)


def _arm_moved(case: Case) -> Verdict:
    told = case.seen.limit
    return _arm_reported(case) if told is not None and told.parsed else _arm_shown(case)


def _arm_another(case: Case) -> Verdict:
    banner = _banner(case)
    assert banner is not None
    if case.memory.state_looks < LOOKS:
        text = f"another limit banner, {SEEN_ONCE}: {banner.line}"
        return _held(case, text, case.now.after(AGAIN_S))
    return _arm_shown(case)


def _arm_refused(case: Case) -> Verdict:
    """After the probe a new banner is believed; an old one only if the end that it named is to come."""
    banner, limit, wall = _banner(case), _limit(case), case.now.wall
    assert banner is not None
    until = _named(case)
    if _is_same(banner.line, limit):
        until = later(limit.named, -case.watchdog.limit_reset_slack) if limit.named > wall else None
    verdict = _arm(case, until, banner.line, Witness.SCREEN)
    if until is None and limit.probes >= LOUD_AT:
        said = f"{limit.probes} probes without an end in sight: {banner.line}"
        loud = Note(EventType.AGENT_LIMIT_WITHOUT_RESET, said)
        verdict = verdict._replace(notes=(*verdict.notes, loud))
    return verdict


def _hint(case: Case) -> Verdict:
    banner = _banner(case)
    assert banner is not None
    text = f"a limit banner, {SEEN_ONCE}: {banner.line}"
    hinted = case.memory if case.memory.limit_hint else case.memory._replace(limit_hint=case.now.steady)
    return _held(case, text, case.now.after(AGAIN_S), hinted)


def _unhint(case: Case) -> Verdict:
    return Verdict("the banner is gone", memory=case.memory._replace(limit_hint=NEVER))


def _wait_for_mates(case: Case) -> Verdict:
    at = case.now.until(later(case.account_until, case.stagger))
    memory = case.memory._replace(limit_hint=NEVER) if case.memory.limit_hint else case.memory
    return _held(case, f"its account is limited (seen at {case.account_by})", at, memory)


def _fade(case: Case) -> Verdict:
    limit, now = _limit(case), case.now
    if not limit.clear_seen:
        limit = limit._replace(clear_seen=now.steady)
    at = min(now.after(CLEAR_S), now.until(limit.until))
    text = f"limited: the banner is gone, {SEEN_ONCE}"
    return _held(case, text, at, case.memory._replace(limit=limit))


def _keep_shut(case: Case) -> Verdict:
    limit = _limit(case)
    memory = case.memory._replace(limit=limit._replace(clear_seen=NEVER)) if limit.clear_seen else case.memory
    end = limit.until
    if _shows_work(case) and _is_redrawing(case):  # what it shows then is work
        end = min(end, later(limit.since, SETTLE_S))
    return _held(case, f"limited: {limit.line or 'usage limit'}", case.now.until(end), memory)


def _clear(why: str) -> Callable[[Case], Verdict]:
    def clear(case: Case) -> Verdict:
        memory = dealt_with(withdrawn(case.memory))
        memory = memory._replace(limit=None, limit_hint=NEVER, quiet_since=case.now.steady)
        # the screen of this look is older than the resumption: nothing else may follow from it
        note = Note(EventType.AGENT_RESUMED, why)
        return hold(f"limit over: {why}", wake_at=case.now.after(1), memory=memory, notes=(note,))

    return clear


def _drop(case: Case) -> Verdict:
    return Verdict("its window is over", memory=case.memory._replace(limit=None, limit_hint=NEVER))


def _hold_for(why: str, after: float | None = None) -> Callable[[Case], Verdict]:
    def hold(case: Case) -> Verdict:
        return _held(case, why, None if after is None else case.now.after(after))

    return hold


def _wait_turn(case: Case) -> Verdict:
    return _held(case, "the window is over; waiting its turn", case.now.after(case.stagger))


def _sweep(case: Case) -> Verdict:
    return begin(case, "its last run left processes behind", planned=True)


def _restart(case: Case) -> Verdict:
    pane = case.seen.pane
    why = "its limit window is over"
    act = Start(case.agent.name, why, planned=True, replace=pane.ref if pane else None)
    memory = withdrawn(case.memory)._replace(limit=None)
    return do(act, Detail.STARTING, case.now.after(0.4), memory, (Note(EventType.AGENT_RESUMED, why),))


def _press(case: Case) -> Verdict:
    pane, reading, memory = case.seen.pane, case.seen.reading, case.memory
    assert pane is not None
    assert reading is not None
    act = Press(case.agent.name, pane.ref, (reading.key,), f"dialog {reading.dialog}: its one allowed key")
    pressed = memory._replace(pressed=reading.dialog, presses=memory.presses + 1)
    return do(act, Detail.LIMITED, case.now.after(1), pressed)


def _ask(case: Case) -> Verdict:
    reading = case.seen.reading
    assert reading is not None
    return hold(f"the window is over, but a dialog is open: {reading.fix or reading.dialog}", Detail.ASKING)


def _probe(case: Case) -> Verdict:
    limit, now = _limit(case), case.now
    message = own(MessageKind.PROBE, f"{limit.since:.0f}-{limit.probes}", PROBE, now)
    probed = limit._replace(probed=now.steady, probes=limit.probes + 1)
    memory = queue(case.memory, message)._replace(limit=probed)
    why = "the window is over: one probe"
    return Verdict(why, memory=memory, wake_at=now.steady, notes=(Note(EventType.AGENT_PROBED, limit.line),))


def _watch(case: Case) -> Verdict:
    return _held(case, "probed; watching what it does", _settles_at(case))


def _leave(_: Case) -> None:
    """Another rule has the word."""


# --- the table --------------------------------------------------------------------------------------

_OPEN, _ARMED, _OVER, _PROBED, _SETTLING = (frozenset({stage}) for stage in Stage)
_ENDED = _OVER | _PROBED | _SETTLING

_ARMING = (
    Transition(_OPEN, Why.REPORTED, lambda c: c.seen.limit is not None, _arm_reported, Stage.ARMED),
    Transition(_OPEN, Why.SHOWN, _is_seen_twice, _arm_shown, Stage.ARMED),
    Transition(_OPEN, Why.HINTED, lambda c: _banner(c) is not None, _hint),
)
_INSIDE = (
    Transition(_ARMED, Why.MOVED, _is_moved, _arm_moved, Stage.ARMED),
    Transition(_ARMED, Why.GONE, _is_gone, _clear("the banner is gone and it is at its prompt"), Stage.OPEN),
    Transition(_ARMED, Why.FADING, _is_fading, _fade),
    Transition(_ARMED, Why.SHUT, lambda _: True, _keep_shut),
)
_AT_WORK = Transition(_ARMED | _ENDED, Why.AT_WORK, _works, _clear("it is at work again"), Stage.OPEN)
_MATES = Transition(_OPEN | _ENDED, Why.ACCOUNT, _is_held_by_mates, _wait_for_mates)
_FLICKERED = Transition(_OPEN, Why.FLICKERED, lambda c: bool(c.memory.limit_hint), _unhint)
_WAITS = "the window is over; resume_on_reset = false, so it waits for `send` or `reset`"

WATCHED: tuple[Transition, ...] = (
    *_ARMING,
    _AT_WORK,
    *_INSIDE,
    Transition(_ENDED, Why.CONDEMNED, lambda c: bool(c.memory.fatal), _leave),
    _MATES,
    _FLICKERED,
    Transition(_ENDED, Why.BEGUN_ANEW, _begins_anew, _clear("a new run begins after it"), Stage.OPEN),
    Transition(_ENDED, Why.ANOTHER, _is_another, _arm_another, Stage.ARMED),
    Transition(_PROBED, Why.UNDERWAY, lambda _: True, _leave),
    Transition(_OVER, Why.FORBIDDEN, _is_forbidden, _hold_for(_WAITS)),
    Transition(_OVER, Why.QUEUED, _is_in_queue, _wait_turn),
    Transition(
        _OVER,
        Why.UNCOUNTED,
        lambda c: not _alive(c) and c.seen.survivors is None,
        _hold_for("the window is over; counting what is left of it", 0.0),
    ),
    Transition(_OVER, Why.LEFTOVERS, lambda c: not _alive(c) and bool(c.seen.survivors), _sweep),
    Transition(_OVER, Why.RESTARTED, lambda c: not _alive(c), _restart, Stage.OPEN),
    Transition(_OVER | _SETTLING, Why.MENU, _has_menu, _press),
    Transition(_OVER | _SETTLING, Why.QUESTION, _has_question, _ask),
    Transition(_OVER, Why.PROBED, lambda _: True, _probe, Stage.PROBED),
    Transition(_SETTLING, Why.WATCHED, lambda c: c.now.steady < _settles_at(c), _watch),
    Transition(_SETTLING, Why.REFUSED, _is_refused, _arm_refused, Stage.ARMED),
    Transition(_SETTLING, Why.WENT_THROUGH, lambda _: True, _clear("the probe went through"), Stage.OPEN),
)

# Nothing is typed into an agent that is not watched, so no probe follows its window. Over, the window stays
# on record as long as its banner stands there.
UNWATCHED: tuple[Transition, ...] = (
    _AT_WORK,
    *_INSIDE,
    Transition(_ENDED, Why.UNWATCHED, lambda c: not _stands(c), _drop, Stage.OPEN),
    Transition(_ENDED, Why.REPORTED, lambda c: c.seen.limit is not None, _arm_reported, Stage.ARMED),
    Transition(_ENDED, Why.SHOWN, lambda c: _is_new_words(c) and _is_seen_twice(c), _arm_shown, Stage.ARMED),
    Transition(_ENDED, Why.HINTED, _is_new_words, _hint),
    *_ARMING,
    _MATES,
    _FLICKERED,
)
