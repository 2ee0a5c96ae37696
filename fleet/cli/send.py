"""Type a message into an agent and wait for the receipt. Exit 1, with the reason, when it did not arrive.

TEXT is delivered exactly; `-` reads it from standard input. With --all every agent that is up gets it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from fleet.cli.common import Fail, Io, load_fleet, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """To whom, and what."""
    parser.add_argument(
        "words", nargs="+", metavar="NAME TEXT", help="the agent and the text, or - for standard input"
    )
    parser.add_argument(
        "--all", action="store_true", help="to every agent that is up; then only TEXT is given"
    )
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S", help="how long to wait for the receipt"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """The verb."""
    from fleet.cli.ask import ask
    from fleet.cli.common import session_of
    from fleet.world.operator import Operator

    receipts: dict[str, dict[str, Any]]
    fleet = load_fleet(args, io)
    operator = Operator(fleet)
    words = list(args.words)
    desired = operator.house.desired.load()
    if args.all:
        names = [a.name for a in fleet.agents if desired.wants_up(a.name)]
    else:
        names = [words.pop(0)]
        session_of(fleet, names[0])
        if fleet.agent(names[0]) is None:
            raise Fail(f"{names[0]} is not an agent: only agents can be written to", code=2)
    if not words:
        raise Fail(
            "there is no text to send", hint="agents.py send NAME TEXT, or - for standard input", code=2
        )
    text = _input() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise Fail("the text is empty", code=2)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Fail("the text is not valid UTF-8", hint="iconv -t UTF-8", code=2)
    operator.make_room()
    if len(names) == 1 and not desired.wants_up(names[0]) and not operator.live(names):
        receipts = {names[0]: {"ok": False, "text": f"it is down; `agents.py up {names[0]}` first"}}
    else:
        receipts = ask(operator, "send", names, {"text": text}, args.timeout) if names else {}
    fine = bool(receipts) and all(r.get("ok") for r in receipts.values())
    if args.json:
        io.json(
            {
                "ok": fine,
                "receipts": {n: {"ok": r.get("ok"), "text": r.get("text")} for n, r in receipts.items()},
            }
        )
    elif not receipts:
        io.error("nobody is up", hint="agents.py up")
    else:
        for name, receipt in receipts.items():
            word = "delivered" if receipt.get("ok") else "NOT delivered"
            io.print(f"{name}: {word}: {receipt.get('text', '')}")
    return 0 if fine else 1


def _input() -> str:
    """All of standard input, which may be closed; a byte that is no text becomes half a character."""
    if sys.stdin is None:
        return ""
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    return raw.decode("utf-8", "surrogateescape")
