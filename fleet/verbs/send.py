"""Type a message into agents and wait for the receipts.

Exits 1, with the reason, when a message was not delivered. Each TEXT is one word of the command
line, so quote it. It is delivered exactly; `-` reads it from standard input. A TEXT that is the
name of an agent is refused, because it is more likely a forgotten text; send it by standard input.

A message is text, never a command of the CLI: `/compact` and `!ls` arrive as text that the model
reads, or are refused with the reason. To give such a command, use `agents.py attach NAME`.

Example: agents.py send builder "Read TODO.md and start."
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fleet.core.memory import Message
from fleet.core.model import Fleet
from fleet.core.queue import admitted, tail_of
from fleet.core.words import FINAL, EventType, MessageKind, MessageState
from fleet.ports import Held
from fleet.store.wishes import read_view
from fleet.supervisor.deputy import stand_in
from fleet.supervisor.operator import Operator
from fleet.supervisor.tick import Supervisor
from fleet.text import escaped
from fleet.verbs.arguments import flag, positional, session_of, timeout
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Fail, Io
from fleet.verbs.last_view import row_of

GROUP = "run"

DECIDED = FINAL - {MessageState.WITHDRAWN}
POLL_S = (0.05, 0.5)  # often at first; a wait of minutes need not look twenty times a second
STDIN = "-"
FORM = 'agents.py send NAME "TEXT" [NAME "TEXT" ...]'


ARGUMENTS = (
    positional(
        "words", "an agent and the text for it; - reads the text from standard input", nargs="+",
        metavar="NAME TEXT",
    ),
    flag("--all", "send one TEXT to every agent that is up; no NAME is given then"),
    flag("--later", "return at once with the id; `agents.py messages` shows the rest"),
    timeout(60, "for the receipts"),
)  # fmt: skip


def run(args: argparse.Namespace, io: Io) -> int:
    """Put the messages down, then wait for their receipts unless --later is given."""
    fleets = fleets_of(io)
    fleet = fleets.running(args, io, trust=True)
    operator = fleets.operator(fleet)
    desired = operator.house.desired.load()
    if args.all:
        text = whole(args.words)
        texts = {a.name: text for a in fleet.agents if desired.wants_up(a.name)}
    else:
        _is_agent(fleet, args.words[0])
        texts = pairs(args.words, {a.name for a in fleet.agents})
    texts = _read(texts)
    operator.make_room()
    gone = [] if args.all else [n for n in texts if not desired.wants_up(n)]
    live = operator.live(gone, operator.listing()) if gone else {}
    down = {n: _down(n) for n in gone if n not in live}
    sent = {n: _sent(operator, n, text) for n, text in texts.items() if n not in down}
    waiting = {n: m for n, m in sent.items() if m.status is MessageState.QUEUED}
    if args.later:
        operator.locks.nudge()
    elif waiting:
        sent |= _receipts(operator, waiting, args.timeout)
    receipts = {n: _receipt(n, m, args) for n, m in (down | sent).items()}
    return _report({n: receipts[n] for n in texts}, io, args)


def _sent(operator: Operator, name: str, text: str) -> Message:
    """The message in the outbox, on record; one that its CLI cannot be given is FAILED and not put there."""
    agent = operator.fleet.agent(name)
    assert agent is not None, "checked before"
    outbox, events = operator.house.outbox, operator.house.events
    message = Message(outbox.new_id(), MessageKind.SEND, text, tail=tail_of(text))
    message = admitted(message, operator.fleet.backend_of(agent))
    if message.status is MessageState.FAILED:
        events.record(EventType.MESSAGE_FAILED, agent=name, reason=f"send {message.id}: {message.why}")
        return message
    outbox.put(name, message)
    events.record(EventType.MESSAGE_QUEUED, agent=name, reason=f"send {message.id}")
    return message


def _down(name: str) -> Message:
    why = f"it is down; `agents.py up {name}` first"
    return Message("", MessageKind.SEND, status=MessageState.FAILED, why=why)


def _receipt(name: str, message: Message, args: argparse.Namespace) -> dict[str, Any]:
    fine = message.status is MessageState.CONFIRMED
    text = message.why
    if args.later and message.status is MessageState.QUEUED:
        fine, text = True, f"agents.py messages {name} shows what becomes of it"
    elif message.status not in FINAL or message.status is MessageState.WITHDRAWN:
        text = "; ".join(filter(None, (f"not done within {args.timeout:.0f} s", message.why)))
    return {"ok": fine, "id": message.id, "state": str(message.status), "text": text}


def pairs(words: Sequence[str], agents: Collection[str]) -> dict[str, str]:
    """Name to text. Anything that may be meant otherwise is refused: a wrong guess types words into a CLI."""
    name, rest = words[0], list(words[1:])
    if not rest:
        raise Fail(f"there is no text to send to {name}", hint=f"{FORM}, or - for standard input", code=2)
    found: dict[str, str] = {}
    for at in range(0, len(words), 2):
        name = words[at]
        if at and name not in agents:
            raise _odd(words, f"{name!r} stands where the next agent's name belongs")
        if at + 1 == len(words):
            raise _odd(words, f"there is no text for {name}")
        text = words[at + 1]
        if text in agents:
            hint = f"{FORM}; to send exactly that text: printf %s {text} | agents.py send {name} -"
            raise Fail(f"the text for {name} is {text!r}, which is an agent's name", hint=hint, code=2)
        if name in found:
            raise Fail(f"{name} is named twice", hint="one text for each agent, or a second send", code=2)
        found[name] = text
    return found


def _odd(words: Sequence[str], said: str) -> Fail:
    joined = shlex.join(["agents.py", "send", words[0], " ".join(words[1:])])
    return Fail(said, hint=f"{FORM}; for one text of several words: {joined}", code=2)


def whole(words: Sequence[str]) -> str:
    """The one text that goes to all."""
    if len(words) > 1:
        joined = shlex.join(["agents.py", "send", "--all", " ".join(words)])
        raise Fail(f"--all takes one text, not {len(words)} words", hint=f"quote it: {joined}", code=2)
    return words[0]


def _is_agent(fleet: Fleet, name: str) -> None:
    session_of(fleet, name)  # fails with the nearest name
    if fleet.agent(name) is None:
        raise Fail(f"{name} is not an agent: only agents can be written to", code=2)


def _read(texts: dict[str, str]) -> dict[str, str]:
    """The texts themselves, each of which can be typed; all that come from standard input are the same."""
    piped = [name for name, text in texts.items() if text == STDIN]
    texts = texts | dict.fromkeys(piped, _input() if piped else "")
    for name, words in texts.items():
        if not words.strip():
            raise Fail(f"the text is empty: {name}", code=2)
        if any("\ud800" <= letter <= "\udfff" for letter in words):
            raise Fail(f"the text is not valid UTF-8: {name}", hint="iconv -t UTF-8", code=2)
    return texts


def _report(rows: dict[str, dict[str, Any]], io: Io, args: argparse.Namespace) -> int:
    fine = bool(rows) and all(r["ok"] for r in rows.values())
    if args.json:
        io.json({"ok": fine, "receipts": rows})
    elif not rows:
        io.error("no agent is up", hint="agents.py up")
    else:
        for name, row in rows.items():
            word = "delivered" if row["ok"] else "NOT delivered"
            if row["ok"] and row["state"] == MessageState.QUEUED:
                word = f"queued as {row['id']}"
            io.paragraph(escaped(f"{name}: {word}: {row['text']}"))
    return 0 if fine else 1


def _input() -> str:
    """All of standard input, which may be closed; a byte that is no text becomes half a character."""
    if sys.stdin is None:
        return ""
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    return raw.decode("utf-8", "surrogateescape")


# --- receipts: wait for the watchdog; where none runs, be it for that long -----------------------------


def _receipts(operator: Operator, sent: Mapping[str, Message], timeout: float) -> dict[str, Message]:
    """Agent to its message, as far as it got. One that is late is taken back, with why it had waited."""
    outbox, clock = operator.house.outbox, operator.world.clock
    deadline = clock.mono() + timeout
    found: dict[str, Message] = {}
    step = _Stepper(operator, sent)
    step.asked()
    try:
        while len(found) < len(sent):
            step.wait()
            for name, message in sent.items():
                now = outbox.read(name, message.id) if name not in found else None
                if now is not None and now.status in FINAL:
                    found[name] = now
            if clock.mono() >= deadline:
                break
        late = {name: message for name, message in sent.items() if name not in found}
        why = {name: _why_waiting(operator, name) for name in late}  # once it is taken back nothing waits
        for name, message in late.items():
            outbox.withdraw(name, message.id)
        if late:
            step.asked()
            step.wait()
        for name, message in late.items():
            now = outbox.read(name, message.id) or message
            found[name] = now if now.status in DECIDED else now._replace(why=why[name])
        return found
    finally:
        step.close()


class _Stepper:
    """Waits for a running watchdog, or ticks one of its own for these agents."""

    def __init__(self, operator: Operator, names: Collection[str]) -> None:
        self._operator = operator
        self._dog: Supervisor | None = None
        self._began = operator.world.clock.mono()
        self._lock = operator.locks.lead()
        try:
            self._lock.acquire()
        except Held:
            return
        self._dog = stand_in(operator.fleet, names, operator.world, operator.helpers)

    def asked(self) -> None:
        """Something new is to be seen."""
        if self._dog is None:
            self._operator.locks.nudge()

    def wait(self) -> None:
        """A moment, in which the watchdog may look."""
        clock = self._operator.world.clock
        if self._dog is not None:
            clock.sleep(min(self._dog.tick(), 0.2))
            return
        soon, late = POLL_S
        clock.sleep(min(max(soon, (clock.mono() - self._began) / 20), late))

    def close(self) -> None:
        """Let the next one watch."""
        if self._dog is not None:
            self._dog.close("the verb is done")
            self._lock.release()


def _why_waiting(operator: Operator, name: str) -> str:
    """What the watchdog last said of it."""
    row = row_of(read_view(operator.house.state_dir, operator.world.disk.read) or {}, name)
    return f"it is {row['detail']}: {row['reason']}" if row else ""
