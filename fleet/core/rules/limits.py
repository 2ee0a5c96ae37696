"""A usage limit shuts a window. Nothing is done to the agent before it opens; then one probe.

The banner is armed at its second look (a structured source needs only one), because a quoted
banner flickers by. What opens the window again early is the agent at work, not the clock.
"""

from __future__ import annotations

import re

from fleet.core.actions import Press, Start
from fleet.core.case import Case, Verdict
from fleet.core.memory import AgentMemory, Limit, Message
from fleet.core.model import AgentSpec
from fleet.core.record import replace
from fleet.core.rules.outbox import queue, withdrawn
from fleet.core.rules.stopping import begin
from fleet.core.seen import Reading, ScreenState
from fleet.core.state import Detail

BEGINNING = frozenset({"kickoff", "continue"})
OPERATOR = "operator"  # the source of a window that a person has ended
PROBE = "The pause is over. Please go on where you stopped."
LOUD_AT = 3  # the probe from which a limit without a reset time is reported as a problem
SETTLE_S = 8.0  # how long after a probe the old banner may still stand there
CLEAR_S = 2.0  # a banner must be gone this long before we believe it
MIN_AHEAD_S = 5.0
DAY_S = 86_400.0
PRESSES = 2
LOOKS = 2


def limits(case: Case) -> Verdict | None:
    """Arm, keep, probe and clear the window."""
    memory, seen = case.memory, case.seen
    if not isinstance(case.agent, AgentSpec) or seen.auth_failed:
        return None  # refused credentials are told whatever the window: no end of one mends them
    if memory.limit is None:
        return _arm(case) or _account(case)
    alive = seen.pane is not None and not seen.pane.dead
    if alive and _working(case):
        return _clear(case, "it is at work again")
    if case.now.wall < memory.limit.until:
        return _inside(case, memory.limit)
    if memory.fatal:
        return None
    watching = alive and memory.limit.probed  # what its own probe says is news for the whole account
    return (None if watching else _account(case)) or _at_the_end(case, memory.limit)


def noted(case: Case) -> Verdict | None:
    """The window of an agent that is not watched: nothing is typed into it, and nobody probes at its end.

    It is its account's window as well, so it must be known. Over, it stays on record as long as its banner
    stands there, or that would arm it once more.
    """
    memory, seen, limit = case.memory, case.seen, case.memory.limit
    if not isinstance(case.agent, AgentSpec):
        return None
    alive = seen.pane is not None and not seen.pane.dead
    if limit is not None and alive and _working(case):
        return _clear(case, "it is at work again")
    if limit is not None and case.now.wall < limit.until:
        return _inside(case, limit)
    stands = alive and memory.state == ScreenState.LIMITED
    if limit is not None and not stands:
        return Verdict("its window is over", memory=replace(memory, limit=None, limit_hint=0.0))
    if limit is None or seen.limit is not None or (seen.reading and not _is_same(seen.reading.line, limit)):
        return _arm(case) or _account(case)
    return _account(case)


def _working(case: Case) -> bool:
    return case.memory.state in {ScreenState.WORKING, ScreenState.RETRYING} or bool(case.seen.working)


def _arm(case: Case) -> Verdict | None:
    memory, reading, now = case.memory, case.seen.reading, case.now
    alive = case.seen.pane is not None and not case.seen.pane.dead
    if case.seen.limit is not None:
        told = case.seen.limit
        until = told.until if told.parsed else _named(case)  # the banner may say what the source does not
        return _armed(case, until, told.line, told.source, parsed=until is not None)
    if not alive or reading is None or reading.state is not ScreenState.LIMITED:
        if memory.limit_hint:
            return Verdict("the banner is gone", memory=replace(memory, limit_hint=0.0))
        return None
    if not memory.limit_hint:
        hinted = replace(memory, limit_hint=now.steady)
        text = f"a limit banner, looking once more: {reading.line}"
        return Verdict(text, hold=True, detail=Detail.LIMITED, memory=hinted, wake_at=now.steady + 0.5)
    if now.steady <= memory.limit_hint or not case.seen.fresh:
        return Verdict(
            "a limit banner, looking once more", hold=True, detail=Detail.LIMITED, wake_at=now.steady + 0.5
        )
    until = _named(case)
    return _armed(case, until, reading.line, "screen", parsed=until is not None)


def _named(case: Case) -> float | None:
    """The end that the banner names, if it shows one that is to come."""
    reading = case.seen.reading
    if reading is None or reading.state is not ScreenState.LIMITED or _passed(case, reading.until):
        return None
    return reading.until


def _passed(case: Case, until: float | None) -> bool:
    """A bare time of day means its next occurrence after the banner came, which may have been before today.

    Nobody armed a window while the agent was paused, or we were not there; its screen tells since when, and
    the terminal when it last printed anything: the banner is not younger than that.
    """
    shown = case.now.wall - (case.now.steady - case.memory.state_since)
    if case.seen.pane is not None and case.seen.pane.activity:
        shown = min(shown, case.seen.pane.activity)
    known = until is not None and case.memory.state == ScreenState.LIMITED
    return known and until is not None and shown <= until - DAY_S <= case.now.wall


def _armed(case: Case, until: float | None, line: str, source: str, *, parsed: bool) -> Verdict:
    wall = case.now.wall
    if until is not None and parsed and until > wall - case.watchdog.limit_reset_slack:
        end = max(until + case.watchdog.limit_reset_slack, wall + MIN_AHEAD_S)
    else:
        parsed, end = False, wall + case.watchdog.limit_probe_fallback
    old = case.memory.limit
    limit = Limit(wall, end, line, source, parsed, old.probes if old else 0, named=end if parsed else 0.0)
    memory = replace(withdrawn(case.memory), limit=limit, limit_hint=0.0)
    what = "until its reset" if parsed else "reset time unknown, probing at the fallback cadence"
    reason = f"usage limit ({source}), quiet {what}: {line}"
    return Verdict(
        reason,
        hold=True,
        detail=Detail.LIMITED,
        memory=memory,
        wake_at=_steady(case, end),
        events=(("agent.limited", reason),),
    )


def _account(case: Case) -> Verdict | None:
    if case.account_until <= case.now.wall or case.memory.fatal:
        return None
    reason = f"its account is limited (seen at {case.account_by})"
    return Verdict(
        reason, hold=True, detail=Detail.LIMITED, wake_at=_steady(case, case.account_until + case.stagger)
    )


def _inside(case: Case, limit: Limit) -> Verdict:
    memory, now = case.memory, case.now.steady
    pane, reading = case.seen.pane, case.seen.reading
    alive = pane is not None and not pane.dead
    told = case.seen.limit
    if told is not None and told.parsed and _moves(case, limit, told.until):
        return _armed(case, told.until, told.line, told.source, parsed=True)  # it knows better than a screen
    if alive and limit.source == "screen" and limit.parsed and reading and _banner_gone(case):
        if not limit.clear_seen:
            memory = replace(memory, limit=replace(limit, clear_seen=now))
            return _keep(case, memory, limit, "the banner is gone, looking once more", now + CLEAR_S)
        if now - limit.clear_seen >= CLEAR_S and case.seen.fresh:
            return _clear(case, "the banner is gone and it is at its prompt")
    elif limit.clear_seen:
        memory = replace(memory, limit=replace(limit, clear_seen=0.0))
    on_screen = alive and reading and reading.state is ScreenState.LIMITED and limit.source == "screen"
    if on_screen and reading and reading.until and limit.parsed:
        later = reading.until + case.watchdog.limit_reset_slack
        if later > limit.until + 60:
            return _armed(case, reading.until, reading.line, "screen", parsed=True)
    return _keep(case, memory, limit, limit.line or "usage limit", _steady(case, limit.until))


def _moves(case: Case, limit: Limit, until: float) -> bool:
    """Does this instant change a window that nobody has ended by hand?"""
    return limit.source != OPERATOR and abs(until + case.watchdog.limit_reset_slack - limit.until) > 1.0


def _banner_gone(case: Case) -> bool:
    return case.memory.state == ScreenState.IDLE


def _keep(case: Case, memory: AgentMemory, limit: Limit, why: str, wake_at: float) -> Verdict:
    kept = memory if memory is not case.memory else None
    return Verdict(
        f"limited: {why}",
        hold=True,
        detail=Detail.LIMITED,
        memory=kept,
        wake_at=min(wake_at, _steady(case, limit.until)),
    )


def _at_the_end(case: Case, limit: Limit) -> Verdict | None:
    """The window is over: start what died in it, answer its dialog, or type one probe."""
    agent, memory, now = case.agent, case.memory, case.now.steady
    pane, reading = case.seen.pane, case.seen.reading
    alive = pane is not None and not pane.dead
    if alive and memory.state == ScreenState.IDLE and any(m.kind in BEGINNING for m in memory.outbox):
        return _clear(case, "a new run begins after it")
    if alive and reading is not None and _is_another(case, limit, reading):
        if memory.state_looks < LOOKS:
            text = f"another limit banner, looking once more: {reading.line}"
            return Verdict(text, hold=True, detail=Detail.LIMITED, wake_at=now + 0.5)
        return _armed(case, reading.until, reading.line, "screen", parsed=True)
    if alive and any(m.kind in {"probe", "send"} for m in memory.outbox):
        return None  # the typing rule delivers it; a limited agent may be typed to now
    waits = isinstance(agent, AgentSpec) and not agent.resume_on_reset and limit.source != OPERATOR
    if waits and not limit.probed:
        text = "the window is over; resume_on_reset = false, so it waits for `send` or `reset`"
        return Verdict(text, hold=True, detail=Detail.LIMITED)
    if case.now.wall < limit.until + case.stagger and not limit.probes:
        return Verdict(
            "the window is over; waiting its turn",
            hold=True,
            detail=Detail.LIMITED,
            wake_at=now + case.stagger,
        )
    if pane is None or pane.dead:
        if case.seen.survivors is None:
            return Verdict(
                "the window is over; counting what is left of it",
                hold=True,
                detail=Detail.LIMITED,
                wake_at=now,
            )
        if case.seen.survivors:
            return begin(case, "its last run left processes behind", planned=True)
        cleared = replace(withdrawn(memory), limit=None)
        act = Start(agent.name, "its limit window is over", planned=True, replace=pane.ref if pane else None)
        return Verdict(
            act.cause,
            action=act,
            hold=True,
            detail=Detail.STARTING,
            memory=cleared,
            wake_at=now + 0.4,
            events=(("agent.resumed", act.cause),),
        )
    if reading is not None and reading.dialog:
        if reading.key and memory.presses < PRESSES:
            pressed = replace(memory, pressed=reading.dialog, presses=memory.presses + 1)
            act2 = Press(
                agent.name, pane.ref, (reading.key,), f"dialog {reading.dialog}: its one allowed key"
            )
            return Verdict(
                act2.cause, action=act2, hold=True, detail=Detail.LIMITED, memory=pressed, wake_at=now + 1
            )
        return Verdict(
            f"the window is over, but a dialog is open: {reading.fix or reading.dialog}",
            hold=True,
            detail=Detail.ASKING,
        )
    if not limit.probed:
        probe = Message(
            f"probe-{limit.since:.0f}-{limit.probes}", "probe", PROBE, tail=PROBE[-24:], queued=now
        )
        probed = replace(queue(memory, probe), limit=replace(limit, probed=now, probes=limit.probes + 1))
        return Verdict(
            "the window is over: one probe",
            memory=probed,
            wake_at=now,
            events=(("agent.probed", limit.line),),
        )
    stands = reading is not None and reading.state is ScreenState.LIMITED
    settled = limit.probed + (SETTLE_S if stands else CLEAR_S)
    if now < settled:
        return Verdict("probed; watching what it does", hold=True, detail=Detail.LIMITED, wake_at=settled)
    if reading is not None and stands:
        return _again(case, limit, reading.line, reading.until)
    return _clear(case, "the probe went through")


def _is_another(case: Case, limit: Limit, reading: Reading) -> bool:
    """It went on while nobody looked, or a person tried it, and met the next limit: that needs no probe."""
    named = reading.state is ScreenState.LIMITED and (reading.until or 0.0) > case.now.wall
    return named and limit.source != OPERATOR and not _is_same(reading.line, limit)


def _is_same(banner: str, limit: Limit) -> bool:
    """The same words, with or without the glyph that the screen puts before them, and as far as both go.

    One that named no end is another as soon as it goes on and names one.
    """
    one, other = (re.sub(r"^\W+", "", text) for text in (banner, limit.line))
    if not limit.parsed:
        return one == other
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _again(case: Case, limit: Limit, line: str, until: float | None) -> Verdict:
    """The banner stands after the probe: a new one is believed, an old one only if its time is to come."""
    same = _is_same(line, limit)
    if same and limit.named > case.now.wall:
        until = limit.named - case.watchdog.limit_reset_slack
    wall = case.now.wall
    fresh = until is not None and until > wall and (not same or limit.named > wall)
    verdict = _armed(case, until if fresh else None, line, "screen", parsed=fresh)
    if not fresh and limit.probes >= LOUD_AT:
        loud = ("agent.limit_without_reset", f"{limit.probes} probes without an end in sight: {line}")
        verdict = replace(verdict, events=(*verdict.events, loud))
    return verdict


def _clear(case: Case, why: str) -> Verdict:
    memory = replace(withdrawn(case.memory), limit=None, limit_hint=0.0, quiet_since=case.now.steady)
    # the screen of this look is older than the resumption: nothing else may follow from it
    return Verdict(
        f"limit over: {why}",
        hold=True,
        memory=memory,
        wake_at=case.now.steady + 1,
        events=(("agent.resumed", why),),
    )


def _steady(case: Case, wall: float) -> float:
    return case.now.steady + max(0.0, wall - case.now.wall)
