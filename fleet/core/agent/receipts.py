"""Go on with a message that was typed or posted: submit it, then find the proof that it was taken.

Enter may be pressed again, the text is never typed twice. A screen may show our text otherwise than we typed
it. It is ours all the same if the composer was empty before and has had no other key since. By the same proof
it may be taken back when it cannot be submitted, so that the input line is free again. Where the CLI itself
reports the prompts it takes, only its word is a receipt.
"""

from __future__ import annotations

import math
import re

from fleet.core.agent.posting import in_flight, settled
from fleet.core.case import Case, Verdict, do, hold
from fleet.core.decision import Note
from fleet.core.effects import Press
from fleet.core.memory import Message
from fleet.core.queue import advance, handed_in
from fleet.core.seen import PaneView, Reading, ScreenState
from fleet.core.wording import canonical, is_plain, same
from fleet.core.words import EventType, MessageKind, MessageState
from fleet.times.moment import later

GAP_S = 0.2  # less, and the Enter arrives in the same read as the text: a newline
SHOWN_S = 2.0  # how long the text may take to show up
LOADING_S = 20.0  # and how long in a program that draws nothing at all
AGAIN_S = 1.5
ENTERS = 3
TRIES = 3
GIVE_UP_S = 6.0
LONGEST_S = 30.0  # between two looks whether a waiting message can go
CLEARS = 12  # tries to take a text back
LINE_CLEARS = 2  # times the keys are pressed for each line of it: one takes the words, one the line's end
PROOF_S = 10.0  # how long a CLI that reports its prompts may take to report one
BUSY_PROOF_S = 45.0  # and while it works, when it may only queue it
HEAD = 60  # characters by which a prompt is told from another
SHOWN_HEAD = 24  # and by which one is known in a list of those that wait
CUT = 400  # a source may cut a prompt off after this many
UNREADABLE = frozenset({None, ScreenState.UNKNOWN, ScreenState.SHELL, ScreenState.STARTING})


def receipts(case: Case) -> Verdict | None:
    """Go on with a message that has been typed."""
    under_way = {MessageState.TYPED, MessageState.SUBMITTED}
    message = next((m for m in case.memory.outbox if m.status in under_way), None)
    if message is None:
        return None
    verdict = _lost(case, message) or _next_step(case, message)
    return verdict if verdict.finished else verdict._replace(explains=True)


def _lost(case: Case, message: Message) -> Verdict | None:
    """The pane is gone or another run sits in it: what was typed is void, not delivered."""
    pane = case.seen.pane
    if pane is not None and not pane.dead and pane.ref.run == message.run:
        return None
    if message.status is MessageState.SUBMITTED and message.kind is MessageKind.SEND:
        # a person's words may have been read, and may even be why it ended: never say them twice
        return failed(case, message, "it was submitted, and then the agent ended before there was a receipt")
    back = message._replace(status=MessageState.QUEUED, enters=0, run="", posted=False)
    return Verdict("the run it was typed into is gone", memory=advance(case.memory, back))


def _next_step(case: Case, message: Message) -> Verdict:
    if message.status is MessageState.TYPED:
        return _submit(case, message)
    words = _reported(case, message)
    if words is not None:
        return _taken_by_report(case, message, words)
    return _answered(case, message) if message.posted else _confirm(case, message)


# --- typed: submit it ---------------------------------------------------------------------------------


def _submit(case: Case, message: Message) -> Verdict:
    now, pane, reading, state = case.now, case.seen.pane, case.seen.reading, case.memory.state
    assert pane is not None
    if is_stranger(case):
        text = "typed; another program is in the pane, so it is not submitted"
        return Verdict(text, wake_at=now.after(2.0))
    if now.since(message.at) < GAP_S:
        return hold("typed; letting it settle", wake_at=later(message.at, GAP_S))
    if reading is None or not case.seen.fresh:
        return hold("typed; looking for it on the screen", wake_at=now.after(GAP_S))
    if message.clears:
        return _take_back(case, message, message.why)
    if state == ScreenState.ASKING:
        return Verdict("typed; a dialog opened, so it is not submitted", wake_at=now.after(2.0))
    if _is_shut(case) and message.kind is not MessageKind.PROBE:
        return Verdict("typed; it is limited now, so it is not submitted", wake_at=now.after(LONGEST_S))
    if reading.draft is None and case.backend.declares_composer:
        text = "typed; its composer is not to be seen, so it is not submitted"
        return Verdict(text, wake_at=now.after(GAP_S))
    if reading.commands:
        return _take_back(case, message, "its composer took it for a command, so it was not submitted")
    if message.idle and state == ScreenState.WORKING:
        text = "typed; it began to work, so it is not submitted before that ends"
        return Verdict(text, wake_at=now.after(1.0))
    if reading.draft is None or is_ours(case, message, reading.draft):
        return _press(case, message)
    return _not_shown(case, message, pane, reading.draft)


def _is_shut(case: Case) -> bool:
    """Is it in a usage window, or does its screen say so?"""
    limit = case.memory.limit
    return case.memory.state == ScreenState.LIMITED if limit is None else case.now.wall < limit.until


def _not_shown(case: Case, message: Message, pane: PaneView, draft: str) -> Verdict:
    """The composer does not hold what was typed: wait, take back what stands there, or type it anew."""
    now, waited = case.now, case.now.since(message.at)
    moves = now.since(case.memory.still_since) < SHOWN_S and waited < LONGEST_S  # it takes a while
    if waited < SHOWN_S or moves:
        return hold("typed; not on the screen yet", wake_at=now.after(GAP_S))
    if draft:
        return _take_back(case, message, "the composer holds something else than what was typed")
    # not a character since: it may be loading, and read it later. A watchdog that died before it typed leaves
    # `pasted` False: then it is typed now
    silent = message.pasted and pane.activity <= message.at_wall
    if silent and waited < LOADING_S:
        return hold("typed; it has not drawn anything since", wake_at=now.after(1.0))
    if silent or message.tries + 1 >= TRIES:
        return failed(case, message, "the text never showed up in the composer")
    # the composer is there and empty, and no Enter was pressed: it was never typed
    back = message._replace(status=MessageState.QUEUED, run="", tries=message.tries + 1)
    return hold("it never showed up; typing it anew", wake_at=now.steady, memory=advance(case.memory, back))


def _press(case: Case, message: Message) -> Verdict:
    pane, now, backend = case.seen.pane, case.now, case.backend
    assert pane is not None
    sent = message._replace(status=MessageState.SUBMITTED, at=now.steady, enters=message.enters + 1)
    cause, keys = f"submit {message.kind} {message.id}", (backend.submit_key,)
    act = Press(case.agent.name, pane.ref, keys, cause, message.id, backend.process_name)
    return do(act, wake_at=now.after(GAP_S), memory=handed_in(case.memory, sent, now))


def _take_back(case: Case, message: Message, why: str) -> Verdict:
    """It cannot be submitted: out with it, if nothing but ours stands there, so that others can pass."""
    now, pane, reading, keys = case.now, case.seen.pane, case.seen.reading, case.backend.clear_keys
    assert pane is not None
    assert reading is not None
    if message.clears and reading.draft == "":
        return failed(case, message, f"{why}; it was taken out again")
    if not keys or not reading.draft or not _is_alone(case, message):
        return failed(case, message, why)
    if message.clears >= CLEARS:
        return failed(case, message, f"{why}; it still stands there")
    cleared = message._replace(status=MessageState.TYPED, at=now.steady, clears=message.clears + 1, why=why)
    keys *= LINE_CLEARS * len(reading.draft.split("\n"))
    act = Press(case.agent.name, pane.ref, keys, f"take back {message.id}", expects=case.backend.process_name)
    return do(act, wake_at=now.after(GAP_S), memory=advance(case.memory, cleared))


# --- submitted: was it taken? -------------------------------------------------------------------------


def _confirm(case: Case, message: Message) -> Verdict:
    now, reading = case.now, case.seen.reading
    if reading is None or not case.seen.fresh:
        return hold("submitted; looking for the receipt", wake_at=now.after(GAP_S))
    if _left(case, message, reading):
        return _proved(case, message, reading)
    waited = now.since(message.at)
    unread = reading.draft is None and case.backend.declares_composer
    again = message.enters < ENTERS and case.memory.state != ScreenState.ASKING
    if again and waited >= AGAIN_S and not unread and not is_stranger(case):
        return _once_more(case, message, reading)
    if waited < GIVE_UP_S:
        return hold("submitted; waiting for it to leave the composer", wake_at=now.after(GAP_S))
    if unread:
        why = "it was submitted, and then the composer was not to be seen any more: no receipt"
        return failed(case, message, why)
    why = f"it still stands in the composer after {message.enters} times {case.backend.submit_key}"
    return _take_back(case, message, why)


def _left(case: Case, message: Message, reading: Reading) -> bool:
    """Has our text left the composer?"""
    if reading.draft is not None:
        theirs = not _holds(case, message, reading.draft) and not _is_alone(case, message)
        return not reading.draft or (theirs and case.memory.state == ScreenState.WORKING)
    if case.backend.declares_composer:  # then only a screen that can be read is a proof
        return case.memory.state not in UNREADABLE
    # there is no composer: the agent at work, or a while without our text, is all the proof there is
    return case.memory.state == ScreenState.WORKING or case.now.since(message.at) >= 1.0


def _proved(case: Case, message: Message, reading: Reading) -> Verdict:
    """It left the composer. Where a CLI reports its prompts, only that tells a message from a command."""
    now, works = case.now, case.memory.state == ScreenState.WORKING
    if not _reports(case):
        seen = reading.draft is not None
        proof = "it left the composer" if seen else "typed and submitted; no composer to prove it by"
        return _confirmed(case, message, proof)
    head = canonical(message.text.strip().split("\n")[0])[:SHOWN_HEAD]
    if head and head in canonical(reading.queued):
        return _confirmed(case, message, "it stands in the CLI's queue")
    waited = now.since(message.at)
    if waited < (BUSY_PROOF_S if works else PROOF_S):
        text, again = "submitted; the CLI has not reported it yet", now.after(GAP_S)
        return Verdict(text, hold=waited < GIVE_UP_S, wake_at=again)
    why = "it left the composer, and the CLI has not reported it as a message: it may have been a command"
    return failed(case, message, why)


def _once_more(case: Case, message: Message, reading: Reading) -> Verdict:
    """Press Enter again, unless another text than ours stands there."""
    if reading.draft is None or is_ours(case, message, reading.draft):
        return _press(case, message)
    if _reports(case) and case.now.since(message.at) < PROOF_S:
        return Verdict("submitted; the CLI has not reported it yet", wake_at=case.now.after(GAP_S))
    return _take_back(case, message, "another text is in the input line")


def _answered(case: Case, message: Message) -> Verdict:
    """Go on with a message that was posted."""
    answer = settled(case, message)
    if answer is None:
        return in_flight(case, message)
    if answer.status is MessageState.QUEUED:
        refused = advance(case.memory, answer)
        return Verdict("its server refused it; typing it instead", memory=refused, wake_at=case.now.steady)
    return _finish(case, answer)


# --- what the CLI reports -----------------------------------------------------------------------------


def _reports(case: Case) -> bool:
    """Does this CLI report the prompts it takes? In this run it has."""
    return bool(case.seen.prompts)


def _reported(case: Case, message: Message) -> str | None:
    """The words of this message as the CLI reports to have taken them; None when it reports none of it."""
    since = message.at_wall or math.inf
    found = (words for at, words in case.seen.prompts if at > since and _is_receipt(message, words))
    return next(found, None)


def _is_receipt(message: Message, arrived: str) -> bool:
    """Is the prompt that arrived this message? A source that does not tell its words is taken at its time."""
    said, meant = canonical(arrived), canonical(message.text)
    if not arrived.strip():
        return True
    if message.text:
        return said[:HEAD] == meant[:HEAD]
    return said.endswith(canonical(message.tail)) or len(arrived) >= CUT


def _taken_by_report(case: Case, message: Message, words: str) -> Verdict:
    """The CLI has it: as it was sent, or as something else, and then that is said."""
    altered = bool(words.strip() and message.text) and len(words) < CUT and not same(words, message.text)
    if altered:
        why = "it arrived, but not as it was sent: the CLI changed some of its characters"
        return failed(case, message, why)
    return _confirmed(case, message, "the CLI reported it")


# --- whose text stands there --------------------------------------------------------------------------


def is_ours(case: Case, message: Message, draft: str | None) -> bool:
    """Does the composer hold what we typed, or the end of it, and no other text?"""
    if not draft or not message.tail:
        return False
    flat, tail, text = (canonical(words) for words in (draft, message.tail, message.text))
    if message.folds and _is_folded(case.backend.folded, draft, text):
        return True
    if tail and flat.endswith(tail) and (not text or text.endswith(flat)):
        return True
    return not is_plain(message.text or message.tail) and _is_alone(case, message)


def _is_folded(folded: str, draft: str, text: str) -> bool:
    """Does a placeholder stand for our text, beside nothing but a part of it?"""
    if not folded or not re.search(folded, draft):
        return False
    left = canonical(re.sub(folded, "", draft))
    return not left or not text or left in text


def _is_alone(case: Case, message: Message) -> bool:
    """Can the composer hold only our text? It was empty before we typed, and has had no other key since."""
    pane = case.seen.pane
    typed = pane is None or pane.typed_at > message.at_wall - 1.0  # tmux counts whole seconds
    return message.clean and message.pasted and not typed


def _holds(case: Case, message: Message, draft: str) -> bool:
    """Is our text anywhere in the composer, be it twice or within other text?"""
    tail = canonical(message.tail)
    return is_ours(case, message, draft) or bool(tail and tail in canonical(draft))


def is_stranger(case: Case) -> bool:
    """Is it another program than the agent that would get what is typed?"""
    proc = case.seen.proc
    return proc.shell_only or bool(proc.other and not proc.expected)


# --- the end of a message -----------------------------------------------------------------------------


def _confirmed(case: Case, message: Message, proof: str) -> Verdict:
    return _finish(case, message._replace(status=MessageState.CONFIRMED, why=proof))


def failed(case: Case, message: Message, why: str) -> Verdict:
    """It is not delivered, and not tried again."""
    return _finish(case, message._replace(status=MessageState.FAILED, why=why))


def _finish(case: Case, message: Message) -> Verdict:
    taken = message.status is MessageState.CONFIRMED
    event = EventType.MESSAGE_CONFIRMED if taken else EventType.MESSAGE_FAILED
    note = Note(event, f"{message.kind} {message.id}: {message.why}")
    memory = advance(case.memory, message)
    return Verdict(note.reason, memory=memory, wake_at=case.now.steady, notes=(note,), finished=(message,))
