"""The observer: looks at tmux and the process table ten times a second, by its own code, and writes it down.

    python observer.py SOCKET CANARY PREFIX CONFIG HISTORY

One JSON object a line. It shares nothing with the product, so that no mistake can be made twice: it asks
tmux by a process of its own and reads procfs itself. It ends when its standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time

EVERY_S = 0.1
SELDOM = 10  # looks between two at the user's own server
PATIENCE_S = 1.0
YOUNG_S = 3.0  # a process may still become another one, with another environment
TICK = os.sysconf("SC_CLK_TCK")
FIELDS = ("pid", "session_name", "pane_id", "pane_pid", "pane_dead", "@ao_run", "@ao_project")
FORMAT = "\t".join(f"#{{{field}}}" for field in FIELDS)


def ask(socket: str) -> list[list[str]] | None:
    """Rows of all panes; nothing at all when there is no server; None when it did not answer."""
    words = ["tmux", "-S", socket, "list-panes", "-a", "-F", FORMAT]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    return [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == FORMAT.count("\t")]


class Processes:
    """Whose process is which: by the marks in its environment, read once it has settled."""

    def __init__(self, prefix: str, config: str) -> None:
        self._prefix = prefix
        self._config = config.encode()
        self._known: dict[tuple[int, str], tuple[str, str, bool]] = {}

    def look(self) -> tuple[dict[str, dict[str, list[int]]], list[int]]:
        """(session: run: pids), and the watchdogs that are not stopped in place."""
        runs: dict[str, dict[str, list[int]]] = {}
        dogs = []
        known = {}
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        for name in os.listdir("/proc"):
            if not name.isdecimal():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    cells = file.read().rpartition(b")")[2].split()
                state, start = cells[0].decode(), cells[19].decode()
                if state in {"Z", "X"}:
                    continue
                key = (int(name), start)
                if key not in self._known or uptime - int(start) / TICK < YOUNG_S:
                    known[key] = self._read(name)
                else:
                    known[key] = self._known[key]
            except OSError:
                continue
            session, run, dog = known[key]
            if run:
                runs.setdefault(session, {}).setdefault(run, []).append(int(name))
            if dog and state not in {"T", "t"}:
                dogs.append(int(name))
        self._known = known
        return runs, dogs

    def _read(self, name: str) -> tuple[str, str, bool]:
        with open(f"/proc/{name}/environ", "rb") as file:
            env = dict(e.partition(b"=")[::2] for e in file.read().split(b"\0"))
        with open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        session = env.get(b"AO_SESSION", b"").decode(errors="replace")
        run = env.get(b"AO_RUN_ID", b"").decode(errors="replace") if session.startswith(self._prefix) else ""
        runs_it = any(w.endswith(b"agents.py") for w in words[:4]) and b"watchdog" in words
        return session, run, runs_it and self._config in words and b"tmux" not in words[0]


def main() -> int:
    """Look until nobody wants it any more."""
    socket, canary, prefix, config, history = sys.argv[1:]
    processes = Processes(prefix, config)
    last, guests, look = "", None, 0
    with open(history, "w", encoding="utf-8") as file:
        while not select.select([sys.stdin], [], [], EVERY_S)[0]:
            began = time.time()
            rows = ask(socket)
            guests = ask(canary) if look % SELDOM == 0 else guests
            look += 1
            runs, dogs = processes.look()
            facts = {
                "server": int(rows[0][0]) if rows else (None if rows is None else 0),
                "panes": [r[1:] for r in rows or ()],
                "canary": sorted(r[3] for r in guests) if guests is not None else None,
                "runs": runs,
                "dogs": dogs,
            }
            line = json.dumps(facts, separators=(",", ":"))
            same = line == last
            file.write(json.dumps({"t": began, "same": True} if same else {"t": began, **facts}) + "\n")
            file.flush()
            last = line
    return 0


if __name__ == "__main__":
    sys.exit(main())
