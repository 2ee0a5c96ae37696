"""A program in a pane that does what a plan says: an agent of which every line is known.

The plan is a JSON file named by PUPPET: `start` is done at once, `line` for every line that is typed. A step
is one of {"print": text}, {"draw": text} on an empty screen, {"work": seconds}, {"hook": {...}} as claude's
hooks leave one, and {"registry": status} as claude's registry holds one. In a text {+3} is the time in three
seconds.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path


def say(text: str) -> None:
    def when(found: re.Match[str]) -> str:
        return f"{datetime.fromtimestamp(time.time() + int(found[1]), UTC):%Y-%m-%dT%H:%M:%SZ}"

    sys.stdout.write(re.sub(r"\{\+(\d+)\}", when, text))
    sys.stdout.flush()


def hook(said: dict[str, object]) -> None:
    spool = Path(os.environ["AO_SIGNALS"])
    made = spool / f".{time.monotonic_ns()}"
    made.write_text(json.dumps({"session_id": "s", **said}))
    made.rename(spool / f"hook-{made.name[1:]}.json")


def registry(status: str) -> None:
    home = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "sessions"
    home.mkdir(parents=True, exist_ok=True)
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    now = int(time.time() * 1000)
    entry = {"pid": os.getpid(), "procStart": start, "sessionId": "s", "startedAt": now, "status": status}
    (home / f"{os.getpid()}.json").write_text(
        json.dumps(entry | {"statusUpdatedAt": now, "waitingFor": "dialog open"})
    )


def do(step: dict[str, object]) -> None:
    ((what, value),) = step.items()
    if what == "print":
        say(f"{value}\n")
    elif what == "draw":
        say(f"\x1b[2J\x1b[H{value}")
    elif what == "work":
        say("working, esc to interrupt")
        time.sleep(float(str(value)))
        say("\r\x1b[2K")
    elif what == "hook":
        assert isinstance(value, dict)
        hook(value)
    elif what == "registry":
        registry(str(value))


def main() -> None:
    plan = json.loads(Path(os.environ["PUPPET"]).read_text())
    for step in plan.get("start", ()):
        do(step)
    for _ in sys.stdin:
        for step in plan.get("line", ()):
            do(step)


main()
