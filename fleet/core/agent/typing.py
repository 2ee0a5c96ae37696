"""Typing is a protocol with a receipt: queued, typed, submitted, confirmed, or failed with the reason.

Text first, Enter separately and later, then proof that it left the composer. Enter may be pressed
again, the text is never typed twice. Nothing goes into a shell, a dead pane, a dialog, a composer that
runs commands, a program that has not come up, an agent at work (unless its profile says that it queues),
or onto a line where a person has begun to write.

A screen may show our text otherwise than we typed it. It is ours all the same if the composer was empty
before and no one else has typed since. By the same proof it may be taken back when it cannot be submitted,
so that the input line is free again. Where the CLI itself reports the prompts it takes, only its word is a
receipt.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fleet.core.agent.posting import awaits_server, goes_by_server, in_flight, post, settled
from fleet.core.case import Case, Verdict
from fleet.core.decision import Note
from fleet.core.effects import Paste, Press
from fleet.core.memory import AgentMemory, Message
from fleet.core.queue import OWN, advance, handed_in
from fleet.core.seen import PaneView, Reading, ScreenState
from fleet.core.wording import canonical, is_plain, same
from fleet.core.words import EventType, MessageKind, MessageState
from fleet.times.moment import LONG_AGO, later

GAP_S = 0.2  # less, and the Enter arrives in the same read as the text: a newline
SHOWN_S = 2.0  # how long the text may take to show up
LOADING_S = 20.0  # and how long in a program that draws nothing at all
AGAIN_S = 1.5
ENTERS = 3
TRIES = 3
GIVE_UP_S = 6.0
LONGEST_S = 30.0  # between two looks whether a waiting message can go
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
CLEARS = 12  # tries to take a text back
LINE_CLEARS = 2  # times the keys are pressed for each line of it: one takes the words, one the line's end
PROOF_S = 10.0  # how long a CLI that reports its prompts may take to report one
BUSY_PROOF_S = 45.0  # and while it works, when it may only queue it
HEAD = 60  # characters by which a prompt is told from another
SHOWN_HEAD = 24  # and by which one is known in a list of those that wait
CUT = 400  # a source may cut a prompt off after this many


def receipts(case: Case) -> Verdict | None:
    """Go on with a message that has been typed."""
    message = next(
        (m for m in case.memory.outbox if m.status in {MessageState.TYPED, MessageState.SUBMITTED}), None
    )
    if message is None:
        return None
    if message.posted:
        verdict = _answered(case, message)
    elif message.status is MessageState.TYPED:
        verdict = _submit(case, message)
    else:
        verdict = _confirm(case, message)
    return verdict if verdict.finished else replace(verdict, explains=True)


def typing(case: Case) -> Verdict | None:
    """Begin the oldest waiting message, if the agent can take it now."""
    memory, now = case.memory, case.now
    waiting = [m for m in memory.outbox if m.status is MessageState.QUEUED]
    if not waiting or any(m.posted or m.status is MessageState.SUBMITTED for m in memory.outbox):
        return None
    for message in waiting:
        lasts = EXPIRES_S.get(message.kind)
        if lasts is not None and now.since(message.queued) > lasts:
            return _finish(
                case, replace(message, status=MessageState.FAILED, why=f"not deliverable for {lasts:.0f} s")
            )
    message = _first(case, waiting)
    why_not = _not_now(case, message)
    if why_not:
        # at first often, then less: a message may have to wait for hours, and each look costs one
        patience = min(LONGEST_S, max(2.0, now.since(message.queued) / 10))
        return Verdict(f"{message.kind} waits: {why_not}", explains=True, wake_at=now.after(patience))
    if message.why and now.since(message.at) < RETRY_S:  # a verb that waits for it wakes us all the time
        return Verdict(
            f"{message.kind} could not be typed: {message.why}",
            explains=True,
            wake_at=later(message.at, RETRY_S),
        )
    if not case.seen.fresh:
        return Verdict(
            f"{message.kind} waits for a look at the screen", explains=True, wake_at=now.after(0.05)
        )
    if awaits_server(case, message):
        return Verdict(
            f"{message.kind} waits for a word of its server", explains=True, wake_at=now.after(GAP_S)
        )
    pane, reading = case.seen.pane, case.seen.reading
    assert pane is not None
    assert reading is not None
    typed = replace(message, at=now.steady, at_wall=now.wall, run=pane.ref.run, enters=0, pasted=False)
    typed = replace(typed, clean=reading.draft == "", clears=0)
    if _is_ours(case, message, reading.draft):
        changed = advance(memory, replace(typed, status=MessageState.TYPED))
        return Verdict(
            "our own text already stands in the composer", hold=True, memory=changed, wake_at=now.after(GAP_S)
        )
    rated = replace(
        memory, typed=(*(t for t in memory.typed if now.since(t) < HOUR_S), now.steady)[-HOURLY * 2 :]
    )
    if goes_by_server(case, message):
        return post(replace(case, memory=rated), typed)
    changed = advance(rated, replace(typed, status=MessageState.TYPED))
    backend, cause = case.backend, f"{message.kind} {message.id}"
    act = Paste(case.agent.name, pane.ref, message.id, cause, backend.process_name, backend.texts)
    return Verdict(
        f"typing {message.kind} {message.id}", action=act, hold=True, memory=changed, wake_at=now.after(GAP_S)
    )


def _first(case: Case, waiting: list[Message]) -> Message:
    """What already stands in the composer goes before anything else; a limited agent is only probed.

    What must wait for the end of a turn lets those pass that need not.
    """
    draft = case.seen.reading.draft if case.seen.reading is not None else None
    standing = next((m for m in waiting if _is_ours(case, m, draft)), None)
    probe = next((m for m in waiting if _probes(case, m)), None) if case.memory.limit is not None else None
    works = case.memory.state == ScreenState.WORKING
    return standing or probe or next((m for m in waiting if not (m.idle and works)), waiting[0])


def _probes(case: Case, message: Message) -> bool:
    """May it be typed to a limited agent?

    The probe may; once the window is over, so may a person's words and what stands in the composer already.
    """
    limit, reading = case.memory.limit, case.seen.reading
    if message.kind is MessageKind.PROBE or limit is None or reading is None:
        return message.kind is MessageKind.PROBE
    return case.now.wall >= limit.until and (
        message.kind is MessageKind.SEND or _is_ours(case, message, reading.draft)
    )


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
    if _is_stranger(case):
        return "another program is in the pane"
    if not posts and (early := _too_early(case, reading)):
        return early
    state = memory.state
    able = {ScreenState.IDLE, ScreenState.ERROR}
    if case.backend.queues_input and not message.idle:
        able = able | {ScreenState.WORKING}
    probes = _probes(case, message)
    if probes:
        able = able | {ScreenState.LIMITED}
    if state not in able:
        return f"it is {state or 'not read yet'}"
    if memory.limit is not None and not probes:
        return "it is limited"
    if case.account_until > case.now.wall:
        return "its account is limited"
    if not posts and (taken := _taken(case, message, pane, reading)):
        return taken
    if message.kind in OWN:
        last = memory.typed[-1] if memory.typed else LONG_AGO
        if case.now.since(last) < case.ping_gap:
            return f"typed to it less than {case.ping_gap:.0f} s ago"
        if sum(case.now.since(t) < 60 * case.ping_gap for t in memory.typed) >= HOURLY:
            return "typed to it too often in the last hour"
    return ""


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
    if reading.draft and not _is_ours(case, message, reading.draft):
        return "the input line holds unsent text"
    return ""


def _is_ours(case: Case, message: Message, draft: str | None) -> bool:
    """Does the composer hold what we typed, or the end of it, and no other text?"""
    if not draft or not message.tail:
        return False
    flat, tail, text = (canonical(words) for words in (draft, message.tail, message.text))
    folded = case.backend.folded
    if message.folds and folded and re.search(folded, draft):
        left = canonical(re.sub(folded, "", draft))
        if not left or not text or left in text:
            return True  # otherwise the text itself may hold such words
    if tail and flat.endswith(tail) and (not text or text.endswith(flat)):
        return True
    return not is_plain(message.text or message.tail) and _is_alone(case, message)


def _is_alone(case: Case, message: Message) -> bool:
    """Can the composer hold only our text? It was empty before we typed, and has had no other key since."""
    pane = case.seen.pane
    typed = pane is None or pane.typed_at > message.at_wall - 1.0  # tmux counts whole seconds
    return message.clean and message.pasted and not typed


def _is_receipt(message: Message, arrived: str) -> bool:
    """Is the prompt that arrived this message? A source that does not tell its words is taken at its time."""
    said, meant = canonical(arrived), canonical(message.text)
    if not arrived.strip():
        return True
    if message.text:
        return said[:HEAD] == meant[:HEAD]
    return said.endswith(canonical(message.tail)) or len(arrived) >= CUT


def _reported(case: Case, message: Message) -> str | None:
    """The words of this message as the CLI reports to have taken them; None when it reports none of it."""
    newest = (case.seen.receipt, case.seen.receipt_text)
    for at, words in (*case.seen.prompts, newest):
        if at > message.at_wall > 0 and _is_receipt(message, words):
            return words
    return None


def _reports(case: Case) -> bool:
    """Does this CLI report the prompts it takes? In this run it has."""
    return case.seen.receipt > 0


def _taken_by_report(case: Case, message: Message, words: str) -> Verdict:
    """The CLI has it: as it was sent, or as something else, and then that is said."""
    altered = bool(words.strip() and message.text) and len(words) < CUT and not same(words, message.text)
    if altered:
        why = "it arrived, but not as it was sent: the CLI changed some of its characters"
        return _finish(case, replace(message, status=MessageState.FAILED, why=why))
    return _finish(case, replace(message, status=MessageState.CONFIRMED, why="the CLI reported it"))


def _is_stranger(case: Case) -> bool:
    """Is it another program than the agent that would get what is typed?"""
    proc = case.seen.proc
    return proc.shell_only or bool(proc.other and not proc.expected)


def _holds(case: Case, message: Message, draft: str) -> bool:
    """Is our text anywhere in the composer, be it twice or within other text?"""
    tail = canonical(message.tail)
    return _is_ours(case, message, draft) or bool(tail and tail in canonical(draft))


def _submit(case: Case, message: Message) -> Verdict:
    now, pane, reading = case.now, case.seen.pane, case.seen.reading
    lost = _lost(case, message)
    if lost is not None:
        return lost
    assert pane is not None
    if _is_stranger(case):
        return Verdict(
            "typed; another program is in the pane, so it is not submitted", wake_at=now.after(2.0)
        )
    if now.since(message.at) < GAP_S:
        return Verdict("typed; letting it settle", hold=True, wake_at=later(message.at, GAP_S))
    if reading is None or not case.seen.fresh:
        return Verdict("typed; looking for it on the screen", hold=True, wake_at=now.after(GAP_S))
    if message.clears:
        return _take_back(case, message, message.why)
    if case.memory.state == ScreenState.ASKING:
        return Verdict("typed; a dialog opened, so it is not submitted", wake_at=now.after(2.0))
    limit = case.memory.limit
    shut = case.now.wall < limit.until if limit is not None else case.memory.state == ScreenState.LIMITED
    if shut and message.kind is not MessageKind.PROBE:
        return Verdict("typed; it is limited now, so it is not submitted", wake_at=now.after(LONGEST_S))
    if reading.draft is None and case.backend.declares_composer:
        return Verdict(
            "typed; its composer is not to be seen, so it is not submitted", wake_at=now.after(GAP_S)
        )
    if reading.commands:
        return _take_back(case, message, "its composer took it for a command, so it was not submitted")
    if message.idle and case.memory.state == ScreenState.WORKING:
        return Verdict(
            "typed; it began to work, so it is not submitted before that ends", wake_at=now.after(1.0)
        )
    shown = reading.draft is None or _is_ours(case, message, reading.draft)
    moves = (
        now.since(case.memory.still_since) < SHOWN_S and now.since(message.at) < LONGEST_S
    )  # it takes a while
    if not shown and (now.since(message.at) < SHOWN_S or moves):
        return Verdict("typed; not on the screen yet", hold=True, wake_at=now.after(GAP_S))
    if not shown and reading.draft:
        return _take_back(case, message, "the composer holds something else than what was typed")
    silent = pane.activity <= message.at_wall  # not a character since: it may be loading, and read it later
    silent = silent and message.pasted  # a predecessor may have died before it typed: then it is typed now
    if not shown and silent and now.since(message.at) < LOADING_S:
        return Verdict("typed; it has not drawn anything since", hold=True, wake_at=now.after(1.0))
    if not shown and (silent or message.tries + 1 >= TRIES):
        return _finish(
            case, replace(message, status=MessageState.FAILED, why="the text never showed up in the composer")
        )
    if not shown:
        # the composer is there and empty, and no Enter was pressed: it was never typed
        back = replace(message, status=MessageState.QUEUED, run="", tries=message.tries + 1)
        return Verdict(
            "it never showed up; typing it anew",
            memory=advance(case.memory, back),
            hold=True,
            wake_at=now.steady,
        )
    return _press(case, message, pane.ref.run)


def _take_back(case: Case, message: Message, why: str) -> Verdict:
    """It cannot be submitted: out with it, if nothing but ours stands there, so that others can pass."""
    now, pane, reading = case.now, case.seen.pane, case.seen.reading
    assert pane is not None
    assert reading is not None
    failed = replace(message, status=MessageState.FAILED, why=why)
    if message.clears and reading.draft == "":
        return _finish(case, replace(failed, why=f"{why}; it was taken out again"))
    keys = case.backend.clear_keys
    if not keys or not reading.draft or not _is_alone(case, message):
        return _finish(case, failed)
    if message.clears >= CLEARS:
        return _finish(case, replace(failed, why=f"{why}; it still stands there"))
    cleared = replace(message, status=MessageState.TYPED, at=now.steady, clears=message.clears + 1, why=why)
    keys *= LINE_CLEARS * len(reading.draft.split("\n"))
    act = Press(case.agent.name, pane.ref, keys, f"take back {message.id}", expects=case.backend.process_name)
    changed = advance(case.memory, cleared)
    return Verdict(act.cause, action=act, hold=True, memory=changed, wake_at=now.after(GAP_S))


def _press(case: Case, message: Message, run: str) -> Verdict:
    pane, now = case.seen.pane, case.now
    assert pane is not None
    assert pane.ref.run == run
    sent = replace(message, status=MessageState.SUBMITTED, at=now.steady, enters=message.enters + 1)
    act = Press(
        case.agent.name,
        pane.ref,
        (case.backend.submit_key,),
        f"submit {message.kind} {message.id}",
        message.id,
        case.backend.process_name,
    )
    changed = handed_in(case.memory, sent, case.now)
    return Verdict(act.cause, action=act, hold=True, memory=changed, wake_at=now.after(GAP_S))


def _confirm(case: Case, message: Message) -> Verdict:
    now, reading = case.now, case.seen.reading
    lost = _lost(case, message)
    if lost is not None:
        return lost
    words = _reported(case, message)
    if words is not None:
        return _taken_by_report(case, message, words)
    if reading is None or not case.seen.fresh:
        return Verdict("submitted; looking for the receipt", hold=True, wake_at=now.after(GAP_S))
    if _left(case, message, reading):
        if _reports(case):
            return _await_report(case, message, reading)
        proof = (
            "it left the composer"
            if reading.draft is not None
            else "typed and submitted; no composer to prove it by"
        )
        return _finish(case, replace(message, status=MessageState.CONFIRMED, why=proof))
    waited = now.since(message.at)
    unread = reading.draft is None and case.backend.declares_composer
    again = message.enters < ENTERS and case.memory.state != ScreenState.ASKING
    if again and waited >= AGAIN_S and not unread and not _is_stranger(case):
        if reading.draft is not None and not _is_ours(case, message, reading.draft):
            if _reports(case) and waited < PROOF_S:
                return Verdict("submitted; the CLI has not reported it yet", wake_at=now.after(GAP_S))
            return _take_back(case, message, "another text is in the input line")
        pane = case.seen.pane
        assert pane is not None
        return _press(case, message, pane.ref.run)
    if waited >= GIVE_UP_S:
        why = f"it still stands in the composer after {message.enters} times {case.backend.submit_key}"
        if unread:
            why = "it was submitted, and then the composer was not to be seen any more: no receipt"
            return _finish(case, replace(message, status=MessageState.FAILED, why=why))
        return _take_back(case, message, why)
    return Verdict("submitted; waiting for it to leave the composer", hold=True, wake_at=now.after(GAP_S))


def _await_report(case: Case, message: Message, reading: Reading) -> Verdict:
    """It left the composer. Whether as a message or as a command, only the CLI's own word tells."""
    now, works = case.now, case.memory.state == ScreenState.WORKING
    head = canonical(message.text.strip().split("\n")[0])[:SHOWN_HEAD]
    if head and head in canonical(reading.queued):
        return _finish(
            case, replace(message, status=MessageState.CONFIRMED, why="it stands in the CLI's queue")
        )
    if now.since(message.at) < (BUSY_PROOF_S if works else PROOF_S):
        waits = now.since(message.at) < GIVE_UP_S
        return Verdict("submitted; the CLI has not reported it yet", hold=waits, wake_at=now.after(GAP_S))
    why = "it left the composer, and the CLI has not reported it as a message: it may have been a command"
    return _finish(case, replace(message, status=MessageState.FAILED, why=why))


def _answered(case: Case, message: Message) -> Verdict:
    """Go on with a message that was posted."""
    lost = _lost(case, message)
    if lost is not None:
        return lost
    words = _reported(case, message)
    if words is not None:
        return _taken_by_report(case, message, words)
    answer = settled(case, message)
    if answer is None:
        return in_flight(case, message)
    if answer.status is MessageState.QUEUED:
        refused = advance(case.memory, answer)
        return Verdict("its server refused it; typing it instead", memory=refused, wake_at=case.now.steady)
    return _finish(case, answer)


def _left(case: Case, message: Message, reading: Reading) -> bool:
    if reading.draft is not None:
        theirs = not _holds(case, message, reading.draft) and not _is_alone(case, message)
        return not reading.draft or (theirs and case.memory.state == ScreenState.WORKING)
    if case.backend.declares_composer:  # then only a screen that can be read is a proof
        return case.memory.state not in {None, ScreenState.UNKNOWN, ScreenState.SHELL, ScreenState.STARTING}
    # there is no composer: the agent at work, or a while without our text, is all the proof there is
    return case.memory.state == ScreenState.WORKING or case.now.since(message.at) >= 1.0


def _lost(case: Case, message: Message) -> Verdict | None:
    """The pane is gone or another run sits in it: what was typed is void, not delivered."""
    pane = case.seen.pane
    if pane is not None and not pane.dead and pane.ref.run == message.run:
        return None
    if message.status is MessageState.SUBMITTED and message.kind is MessageKind.SEND:
        # a person's words may have been read, and may even be why it ended: never say them twice
        why = "it was submitted, and then the agent ended before there was a receipt"
        return _finish(case, replace(message, status=MessageState.FAILED, why=why))
    back = replace(message, status=MessageState.QUEUED, enters=0, run="", posted=False)
    return Verdict("the run it was typed into is gone", memory=advance(case.memory, back))


def _finish(case: Case, message: Message) -> Verdict:
    memory: AgentMemory = advance(case.memory, message)
    event = (
        EventType.MESSAGE_CONFIRMED if message.status is MessageState.CONFIRMED else EventType.MESSAGE_FAILED
    )
    reason = f"{message.kind} {message.id}: {message.why}"
    return Verdict(
        reason, memory=memory, wake_at=case.now.steady, notes=(Note(event, reason),), finished=(message,)
    )
