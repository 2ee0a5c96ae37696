"""Typing is a protocol with a receipt: queued, typed, submitted, confirmed, or failed with the reason.

Here a message is begun. Text first, Enter separately and later, then proof that it was taken: receipts.py.
Nothing goes into a shell, a dead pane, a dialog, a screen that no pattern describes, a composer that runs
commands, a program that has not come up, an agent at work (unless its profile says that it queues), or onto a
line where a person has begun to write.
"""

from __future__ import annotations

from fleet.core.agent.posting import awaits_server, goes_by_server, post
from fleet.core.agent.receipts import GAP_S, LONGEST_S, failed, is_ours, is_stranger
from fleet.core.case import Case, Verdict, do, hold
from fleet.core.effects import Paste
from fleet.core.memory import Message
from fleet.core.queue import OWN, advance
from fleet.core.seen import PaneView, Reading, ScreenState
from fleet.core.words import MessageKind, MessageState
from fleet.times.moment import LONG_AGO, Steady, later

PERSON_S = 20.0  # a person typed this recently: leave the line to them
PERSON_WAKE_S = 60.0
EXPIRES_S = {
    MessageKind.PING: 4 * 3600.0,
    MessageKind.WAKE: 3600.0,
    MessageKind.MARKER: 3600.0,
    MessageKind.NUDGE: 3600.0,
}
RETRY_S = 1.0  # between two tries of what the pane would not take
HOURLY = 20
HOUR_S = 3600.0


def typing(case: Case) -> Verdict | None:
    """Begin the oldest waiting message, if the agent can take it now."""
    outbox = case.memory.outbox
    waiting = [m for m in outbox if m.status is MessageState.QUEUED]
    if not waiting or any(m.posted or m.status is MessageState.SUBMITTED for m in outbox):
        return None
    for message in waiting:
        lasts = EXPIRES_S.get(message.kind)
        if lasts is not None and case.now.since(message.queued) > lasts:
            return failed(case, message, f"not deliverable for {lasts:.0f} s")
    message = _first(case, waiting)
    return _waits(case, message) or _begin(case, message)


def _first(case: Case, waiting: list[Message]) -> Message:
    """What already stands in the composer goes before anything else; a limited agent is only probed.

    What must wait for the end of a turn lets those pass that need not.
    """
    draft = case.seen.reading.draft if case.seen.reading is not None else None
    standing = next((m for m in waiting if is_ours(case, m, draft)), None)
    probe = next((m for m in waiting if _probes(case, m)), None) if case.memory.limit is not None else None
    works = case.memory.state == ScreenState.WORKING
    return standing or probe or next((m for m in waiting if not (m.idle and works)), waiting[0])


def _waits(case: Case, message: Message) -> Verdict | None:
    """Why it is not begun at this look, and when the next look is; None: it can be."""
    kind, now = message.kind, case.now
    why_not = _not_now(case, message)
    if why_not:
        # at first often, then less: a message may have to wait for hours, and each look costs one
        patience = min(LONGEST_S, max(2.0, now.since(message.queued) / 10))
        return _later(f"{kind} waits: {why_not}", now.after(patience))
    if message.why and now.since(message.at) < RETRY_S:  # a verb that waits for it wakes us all the time
        return _later(f"{kind} could not be typed: {message.why}", later(message.at, RETRY_S))
    if not case.seen.fresh:
        return _later(f"{kind} waits for a look at the screen", now.after(0.05))
    if awaits_server(case, message):
        return _later(f"{kind} waits for a word of its server", now.after(GAP_S))
    return None


def _later(why: str, wake_at: Steady) -> Verdict:
    return Verdict(why, explains=True, wake_at=wake_at)


def _begin(case: Case, message: Message) -> Verdict:
    """Paste it, or hand it to the CLI's server; the memory of it is on disk before that."""
    memory, now, pane, reading = case.memory, case.now, case.seen.pane, case.seen.reading
    assert pane is not None
    assert reading is not None
    begun = message._replace(at=now.steady, at_wall=now.wall, run=pane.ref.run, enters=0, pasted=False,
        clean=reading.draft == "", clears=0,
    )  # fmt: skip
    typed = begun._replace(status=MessageState.TYPED)
    if is_ours(case, message, reading.draft):
        text, again = "our own text already stands in the composer", now.after(GAP_S)
        return hold(text, wake_at=again, memory=advance(memory, typed))
    recent = (t for t in memory.typed if now.since(t) < HOUR_S)
    memory = memory._replace(typed=(*recent, now.steady)[-HOURLY * 2 :])
    if goes_by_server(case, message):
        return post(case.with_memory(memory), begun)
    backend, cause = case.backend, f"{message.kind} {message.id}"
    act = Paste(case.agent.name, pane.ref, message.id, cause, backend.process_name, backend.texts)
    verdict = do(act, wake_at=now.after(GAP_S), memory=advance(memory, typed))
    return verdict._replace(reason=f"typing {cause}")


# --- when not -----------------------------------------------------------------------------------------


def _not_now(case: Case, message: Message) -> str:
    """Why this message cannot be typed at this moment; empty if it can."""
    pane, reading, memory = case.seen.pane, case.seen.reading, case.memory
    posts = goes_by_server(case, message)
    if pane is None or pane.dead:
        return "it is not running"
    if pane.in_mode and not posts:
        return "the pane is in copy mode"
    if reading is None:
        return "its screen has not been read"
    if reading.dialog:
        return f"a dialog is open ({reading.dialog})"
    if reading.state is ScreenState.UNKNOWN and not posts:
        return "no pattern of the profile matches its screen"
    if is_stranger(case):
        return "another program is in the pane"
    if not posts and (early := _too_early(case, reading)):
        return early
    if memory.state not in _able(case, message):
        return f"it is {memory.state or 'not read yet'}"
    if memory.limit is not None and not _probes(case, message):
        return "it is limited"
    if case.account_until > case.now.wall:
        return "its account is limited"
    if not posts and (taken := _taken(case, message, pane, reading)):
        return taken
    return _too_often(case) if message.kind in OWN else ""


def _able(case: Case, message: Message) -> set[ScreenState]:
    """The states in which its CLI takes this message."""
    able = {ScreenState.IDLE, ScreenState.ERROR}
    if case.backend.queues_input and not message.idle:
        able.add(ScreenState.WORKING)
    if _probes(case, message):
        able.add(ScreenState.LIMITED)
    return able


def _probes(case: Case, message: Message) -> bool:
    """May it be typed to a limited agent?

    The probe may; once the window is over, so may a person's words and what stands in the composer already.
    """
    limit, reading = case.memory.limit, case.seen.reading
    if message.kind is MessageKind.PROBE or limit is None or reading is None:
        return message.kind is MessageKind.PROBE
    return case.now.wall >= limit.until and (
        message.kind is MessageKind.SEND or is_ours(case, message, reading.draft)
    )


def _too_early(case: Case, reading: Reading) -> str:
    """Why nothing takes a message yet; that a program has come up only a screen known as idle tells."""
    if reading.commands:
        return "its composer is in a mode that runs what is typed there as commands"
    if case.seen.preparing:
        return "its preamble runs"
    up_for = case.now.since(max(case.memory.alive_since, case.seen.launched))
    delay = case.backend.connect_delay
    if case.backend.declares_idle or up_for >= delay:
        return ""
    return f"its screen has {delay - up_for:.0f} s left of the {delay:.0f} s it may take to come up"


def _taken(case: Case, message: Message, pane: PaneView, reading: Reading) -> str:
    """Why the composer is not free; empty if it is."""
    person = PERSON_WAKE_S if message.kind is MessageKind.WAKE else PERSON_S
    if pane.typed_at and case.now.since_wall(pane.typed_at) < person:
        return "a person is typing there"
    if reading.draft and not is_ours(case, message, reading.draft):
        return "the input line holds unsent text"
    return ""


def _too_often(case: Case) -> str:
    """Why the watchdog adds nothing of its own now; empty if it may."""
    typed, now = case.memory.typed, case.now
    if now.since(typed[-1] if typed else LONG_AGO) < case.ping_gap:
        return f"typed to it less than {case.ping_gap:.0f} s ago"
    often = sum(now.since(t) < 60 * case.ping_gap for t in typed) >= HOURLY
    return "typed to it too often in the last hour" if often else ""
