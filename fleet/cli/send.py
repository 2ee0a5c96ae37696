"""Type a message into an agent and wait for the receipt. Exit 1, with the reason, when it did not arrive.

Each TEXT is one word of the command line, so quote it. It is delivered exactly; `-` reads it from
standard input. A TEXT that is the name of an agent is refused, as it is more likely a forgotten text;
send that by standard input. With --all every agent that is up gets the one TEXT.

A message is text, never a command of the CLI: `/compact` and `!ls` arrive as words that the model reads, or
are refused with the reason. Commands are given by hand: `agents.py attach NAME`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from fleet.cli.ask import ask
from fleet.cli.common import Fail, Io, seconds, session_of
from fleet.cli.desk import desk_of
from fleet.core.words import RequestKind

if TYPE_CHECKING:
    from fleet.core.model import Fleet

STDIN = "-"
FORM = 'agents.py send NAME "TEXT" [NAME "TEXT" ...]'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """To whom, and what."""
    parser.add_argument(
        "words", nargs="+", metavar="NAME TEXT", help="an agent and its text, or - for standard input"
    )
    parser.add_argument(
        "--all", action="store_true", help="to every agent that is up; then only TEXT is given"
    )
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="how long to wait for the receipt"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    desk = desk_of(io)
    fleet = desk.running(args, io, trust=True)
    operator = desk.operator(fleet)
    desired = operator.house.desired.load()
    if args.all:
        text = whole(args.words)
        texts = {a.name: text for a in fleet.agents if desired.wants_up(a.name)}
    else:
        _is_agent(fleet, args.words[0])
        texts = pairs(args.words, {a.name for a in fleet.agents})
    texts = _read(texts)
    operator.make_room()
    receipts: dict[str, dict[str, Any]] = {}
    if not args.all:
        gone = [n for n in texts if not desired.wants_up(n)]
        live = operator.live(gone) if gone else {}
        receipts = {
            n: {"ok": False, "text": f"it is down; `agents.py up {n}` first"} for n in gone if n not in live
        }
    asked = {name: {"text": text} for name, text in texts.items() if name not in receipts}
    receipts |= ask(operator, RequestKind.SEND, asked, args.timeout) if asked else {}
    return _report(texts, receipts, io, as_json=args.json)


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
            hint = f"{FORM}; to send that very word: printf %s {text} | agents.py send {name} -"
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


def _report(texts: Collection[str], receipts: dict[str, dict[str, Any]], io: Io, *, as_json: bool) -> int:
    fine = bool(receipts) and all(r.get("ok") for r in receipts.values())
    rows = {name: receipts[name] for name in texts}
    if as_json:
        said = {n: {"ok": r.get("ok"), "text": r.get("text")} for n, r in rows.items()}
        io.json({"ok": fine, "receipts": said})
    elif not rows:
        io.error("nobody is up", hint="agents.py up")
    else:
        for name, receipt in rows.items():
            word = "delivered" if receipt.get("ok") else "NOT delivered"
            io.print(f"{name}: {word}: {receipt.get('text', '')}")
    return 0 if fine else 1


def _input() -> str:
    """All of standard input, which may be closed; a byte that is no text becomes half a character."""
    if sys.stdin is None:
        return ""
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    return raw.decode("utf-8", "surrogateescape")
