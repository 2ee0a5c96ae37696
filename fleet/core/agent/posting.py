"""Words by way of the CLI's own server: no composer, no draft in the way, and a receipt by name.

The server keeps what it was given under a name that follows from the message, so whether it has it can be
asked at any time, also by a watchdog that knows nothing but the record. A lost answer is therefore no reason
to say it twice: what was not confirmed is looked up before it is posted again. Only what the server certainly
refused is typed instead.
"""

from __future__ import annotations

from fleet.core.case import Case, Verdict, do
from fleet.core.effects import Post
from fleet.core.memory import Message
from fleet.core.queue import handed_in
from fleet.core.seen import Posted
from fleet.core.words import MessageState
from fleet.times.moment import later

LOOK_S = 0.2
AGAIN_S = 2.0
ATTEMPTS = 5
ANSWER_S = 3.0  # how long a first message waits for the server to be heard before it is typed


def goes_by_server(case: Case, message: Message) -> bool:
    """Does this one travel that way? What was refused there does not try again."""
    return case.seen.mailbox and not message.tries and bool(_address(case))


def awaits_server(case: Case, message: Message) -> bool:
    """It would, but the server has not been heard yet; for a moment that is worth waiting for."""
    young = case.now.since(message.queued) < ANSWER_S
    return young and not case.seen.mailbox and not message.tries and bool(_address(case))


def post(case: Case, message: Message) -> Verdict:
    """Hand it over; the memory of it is on disk before it goes."""
    pane, run, now = case.seen.pane, case.memory.run, case.now
    assert pane is not None
    assert run is not None
    submitted, enters = MessageState.SUBMITTED, message.enters + 1
    sent = message._replace(status=submitted, posted=True, at=now.steady, run=pane.ref.run, enters=enters)
    cause, address = f"post {message.kind} {message.id}", _address(case)
    act = Post(case.agent.name, pane.ref, message.id, address, run.conversation, cause, case.backend)
    return do(act, wake_at=now.after(LOOK_S), memory=handed_in(case.memory, sent, now))


def settled(case: Case, message: Message) -> Message | None:
    """The message with what its server said of it; None while that is not known."""
    outcome = dict(case.seen.posted).get(message.id)
    if outcome is Posted.TAKEN:
        return message._replace(status=MessageState.CONFIRMED, why="its server has it")
    if outcome is Posted.REFUSED:
        return message._replace(
            status=MessageState.QUEUED, posted=False, run="", enters=0, tries=message.tries + 1
        )
    if outcome is Posted.UNSURE and message.enters >= ATTEMPTS:
        return message._replace(status=MessageState.FAILED, why="not confirmed: its server does not answer")
    return None


def in_flight(case: Case, message: Message) -> Verdict:
    """Wait for the answer, or ask again: what has no answer may have been lost with an earlier watchdog."""
    now, outcome = case.now, dict(case.seen.posted).get(message.id)
    if outcome is Posted.UNDERWAY:
        return Verdict("posted; waiting for its server", wake_at=now.after(LOOK_S))
    if outcome is Posted.UNSURE and now.since(message.at) < AGAIN_S:
        return Verdict("posted; its server has not answered", wake_at=later(message.at, AGAIN_S))
    return post(case, message)


def _address(case: Case) -> str:
    run = case.memory.run
    if case.backend.message_delivery != "server" or run is None or not run.conversation:
        return ""
    return run.server or case.backend.server
