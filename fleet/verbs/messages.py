"""List the messages to agents and their receipts.

Oldest first: what `send`, the loop, wakes and probes put into the outbox, with id, state and age. A
message that was delivered, failed or was withdrawn is listed for a day; the newest 200 are kept.

Example: agents.py messages builder
"""

from __future__ import annotations

import argparse
from typing import Any

from fleet.core.memory import Message
from fleet.core.words import FINAL
from fleet.host.disk import RealDisk
from fleet.store.outbox import Outbox
from fleet.text import ago
from fleet.verbs.arguments import positional, session_of
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Io

GROUP = "look"

BEGINNING = 60  # characters of a text that are shown


ARGUMENTS = (positional("name", "only those to this agent (default: all)", nargs="?", metavar="NAME"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Read the documents; nothing is asked of the watchdog."""
    fleet = running_fleet(args, io)
    if args.name:
        session_of(fleet, args.name)
    clock = io.clock
    outbox = Outbox(RealDisk(), f"{fleet.log_dir}/state", clock.wall)
    found = [(agent, m) for agent, m in outbox.listed() if args.name in {None, agent}]
    now = clock.wall()
    if args.json:
        io.json({"messages": [_facts(agent, message) for agent, message in found]})
        return 0
    if not found:
        io.note("no messages")
        return 0
    rows = [
        (agent, str(m.kind), str(m.status), ago(now - m.asked), m.id, m.why or _beginning(m))
        for agent, m in found
    ]
    io.table(("agent", "kind", "state", "age", "id", "reason or text"), rows)
    return 0


def _facts(agent: str, message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "agent": agent,
        "kind": str(message.kind),
        "about": str(message.about) if message.about else None,
        "phase": message.phase or None,
        "state": str(message.status),
        "final": message.status in FINAL,
        "asked": message.asked,
        "ended": message.ended or None,
        "reason": message.why,
        "text": _beginning(message),
    }


def _beginning(message: Message) -> str:
    line = " ".join(message.text.split())
    return line if len(line) <= BEGINNING else f"{line[: BEGINNING - 1]}…"
