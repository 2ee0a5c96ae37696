"""How often an agent may be brought back, and how often the whole fleet.

The first unplanned end of an agent that had been ready is free: it is healed at once. After that
each one waits twice as long, and five within a quarter of an hour make it FLAPPING: one try every
ten minutes for an hour, then one an hour. Half an hour of being ready, or `reset`, forgives all.
Clean exits have a tally of their own; our own stops have none.

`reset`, `up` and `restart` ask for a fresh try. The wish carries a number for each, memory the ones that were
heeded. A number that differs is heeded once, by the process that judges first; repeating it changes nothing.
"""

from __future__ import annotations

import hashlib

from fleet.core.case import Case
from fleet.core.decision import Note
from fleet.core.desired import Desired
from fleet.core.evidence import dealt_with
from fleet.core.memory import AgentMemory, FleetMemory
from fleet.core.words import EventType, MessageKind, Witness
from fleet.times.moment import NEVER, Moment, Steady, Wall, later

BASE_S = 10.0
CAP_S = 600.0
JITTER = 0.2
WINDOW_S = 900.0
WINDOW_ENDS = 5
DAY_S = 86_400.0
DAY_ENDS = 20
FLAPPING_STEP_S = 600.0
FLAPPING_HOUR_S = 3600.0
FORGIVEN_AFTER_S = 1800.0

FLEET_MINUTE = 10
FLEET_HOUR = 60
MINUTE_S, HOUR_S = 60.0, 3600.0


def count_end(memory: AgentMemory, now: Steady, *, clean: bool, run: str) -> tuple[AgentMemory, str]:
    """Tally one unplanned end; the second value says why it is flapping, when it just began to."""
    tally = memory.exits if clean else memory.deaths
    tally = (*(t for t in tally if now - t < DAY_S), now)[-2 * DAY_ENDS :]
    flapped = "" if memory.flapping else _too_many(tally, now)
    flapping = now if flapped else memory.flapping
    if flapping:
        delay = FLAPPING_STEP_S if now - flapping < FLAPPING_HOUR_S else FLAPPING_HOUR_S
    else:
        delay = back_off(len(tally) - bool(memory.ready), run)
    memory = memory._replace(exits=tally) if clean else memory._replace(deaths=tally)
    return memory._replace(flapping=flapping, retry_at=later(now, delay)), flapped


def _too_many(tally: tuple[Steady, ...], now: Steady) -> str:
    """How many ends within which time are too many; empty when they are not."""
    recent = sum(now - t < WINDOW_S for t in tally)
    if recent >= WINDOW_ENDS:
        return f"{recent} ends within 15 minutes"
    return f"{len(tally)} ends within 24 hours" if len(tally) >= DAY_ENDS else ""


def back_off(number: int, run: str) -> float:
    """Seconds before the number-th try that is not free; jitter drawn from the run's own id."""
    if number <= 0:
        return 0.0
    base = min(CAP_S, BASE_S * 2.0 ** min(number - 1, 10))
    draw = int.from_bytes(hashlib.blake2b(run.encode(), digest_size=4).digest()) / 0xFFFF_FFFF
    return base * (1 - JITTER + 2 * JITTER * draw)


def fleet_allows(heals: tuple[Steady, ...], now: Steady, agents: int, *, server_lost: bool) -> bool:
    """May the fleet make one more unplanned start at this moment?"""
    if len(heals) < FLEET_MINUTE:
        return True
    minute = sum(now - t < MINUTE_S for t in heals)
    if server_lost:
        return minute < max(FLEET_MINUTE, agents // 5)
    return minute < FLEET_MINUTE and sum(now - t < HOUR_S for t in heals) < FLEET_HOUR


def after_heal(memory: FleetMemory, now: Moment) -> FleetMemory:
    """One more unplanned start."""
    recent = (t for t in memory.heals if now.since(t) < HOUR_S)
    return memory._replace(heals=(*recent, now.steady))


def forgiven(memory: FleetMemory, desired: Desired) -> FleetMemory:
    """The restarts of the last hour are forgotten when the operator says so, once each time."""
    if desired.amnesty == memory.amnesty:
        return memory
    return memory._replace(heals=(), amnesty=desired.amnesty)


def pardon(case: Case) -> tuple[AgentMemory, tuple[Note, ...]]:
    """The memory after what the operator wanted forgotten, and what of that is news."""
    wish, memory = case.seen.wish, case.memory
    reset = wish.resets != memory.resets
    if case.seen.blind or not (reset or wish.tries != memory.tries):
        return memory, ()
    after = forget(memory, case.now.wall, window=reset)
    same = after._replace(pardoned=memory.pardoned, pardoned_at=memory.pardoned_at) == memory
    heeded = after._replace(tries=wish.tries, resets=wish.resets)
    said = Note(EventType.AGENT_RESET, "the operator asked for it")
    return heeded, (said,) if reset or not same else ()


def forget(memory: AgentMemory, wall: Wall, *, window: bool = True) -> AgentMemory:
    """As if it had never failed. With `window` a limit window ends now too: `up` and `restart` keep it.

    It is ended, not forgotten: its old banner would arm it again.
    """
    limit = memory.limit
    if limit is not None and window:
        waiting = any(m.kind is MessageKind.PROBE for m in memory.outbox)  # then that is the one probe
        limit = limit._replace(
            until=wall, probed=limit.probed if waiting else NEVER, probes=0, source=Witness.OPERATOR
        )
    if memory.fatal:
        memory = dealt_with(memory)  # the words that condemned it may still stand there
    return memory._replace(
        deaths=(), exits=(), flapping=NEVER, retry_at=NEVER, fatal="", fix="", pardoned=memory.over,
        pardoned_at=wall, limit=limit, limit_hint=NEVER, bad_resumes=0, presses=0, pressed="", kept="",
    )  # fmt: skip
