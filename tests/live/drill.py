"""One real CLI put through its paces: which lines of its profile still hold?

Start, work, a tool, a queue, a long text, a retry, an error, a question, a limit, a resume and an end, each
against the scripted model server, each judged by the profile alone. `agents.py selftest --live NAME` prints
the outcome; the live tests want all of it. When a CLI has changed, the failing step names the pattern.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE)), HERE]

from rig import Home, Panes, installed  # noqa: E402  the path was just made
from server import Server  # noqa: E402

from fleet.backends import profiles  # noqa: E402
from fleet.backends.corpus import Trial  # noqa: E402
from fleet.backends.screen_reader import read  # noqa: E402
from fleet.core.seen import Reading  # noqa: E402
from tests.deadlines import patience  # noqa: E402

START_S = 90.0  # opencode takes its time, and longer still on a busy machine
TURN_S = 60.0
WINDOW_S = 7200


def said(**behaviour: object) -> str:
    """A directive for the model server, to be put into a prompt."""
    return f"%%{json.dumps(behaviour)}%%"


def limit(cli: str) -> dict[str, object]:
    """How the provider of this CLI refuses when a usage window is used up."""
    reset = int(time.time()) + WINDOW_S
    if cli == "claude":
        unified = "anthropic-ratelimit-unified"
        headers = {f"{unified}-status": "rejected", f"{unified}-reset": str(reset)}
        headers[f"{unified}-representative-claim"] = "five_hour"
        return {
            "status": 429,
            "headers": headers,
            "error": {"type": "rate_limit_error", "message": "no more"},
        }
    error = {"type": "usage_limit_reached", "message": "no more", "plan_type": "plus", "resets_at": reset}
    return {"status": 429, "error": error}


@dataclass(frozen=True, slots=True)
class Ways:
    """What differs between the CLIs: how to start them, what their tools are called, what fails how."""

    start: tuple[str, ...]
    asking: tuple[str, ...]
    asking_env: dict[str, str]
    tool: tuple[str, str]  # name, and the argument that holds a command
    ask_tool: dict[str, object]
    busy: dict[str, object]  # a turn during which the screen shows work
    error: dict[str, object]
    retry: dict[str, object]
    has_limit: bool = True
    quit: tuple[str, ...] = ("C-c", "C-c")


WAYS = {
    "claude": Ways(
        start=("--dangerously-skip-permissions",),
        asking=("--permission-mode", "default"),
        asking_env={},
        tool=("Bash", "command"),
        ask_tool={"name": "Bash", "input": {"command": "curl -s http://127.0.0.1:1/", "description": "try"}},
        busy={"text": "slow words that take their time to come", "delay": 1.0},
        error={"status": 400, "error": {"type": "invalid_request_error", "message": "as asked"}},
        retry={"status": 529, "headers": {"retry-after": "4"}, "error": {"type": "overloaded_error"}},
    ),
    "codex": Ways(
        start=("--dangerously-bypass-approvals-and-sandbox",),
        asking=("-a", "on-request", "-s", "read-only"),
        asking_env={},
        tool=("exec_command", "cmd"),
        ask_tool={
            "name": "exec_command",
            "input": {
                "cmd": "touch /nowhere/x",
                "sandbox_permissions": "require_escalated",
                "justification": "try",
            },
        },
        busy={"ttfb": 4, "text": "at last"},
        error={"status": 400, "error": {"type": "invalid_request_error", "message": "as asked"}},
        retry={"status": 500, "error": {"type": "api_error", "message": "as asked"}},
    ),
    "opencode": Ways(
        quit=("C-c",),
        start=(),
        asking=(),
        asking_env={"OPENCODE_CONFIG_CONTENT": json.dumps({"permission": {"bash": "ask"}})},
        tool=("bash", "command"),
        ask_tool={"name": "bash", "input": {"command": "echo hi > x.txt", "description": "try"}},
        busy={"text": "slow words that take their time to come", "delay": 1.0},
        error={"status": 401, "error": {"type": "authentication_error", "message": "no such key"}},
        retry={
            "status": 429,
            "headers": {"retry-after": "5"},
            "error": {"type": "rate_limit_error", "message": "slow"},
        },
        has_limit=False,
    ),
}


class Drill:
    """One CLI, one temporary home, one private tmux server."""

    def __init__(self, cli: str, binary: str, root: str, server: Server) -> None:
        self.cli, self.binary, self.server = cli, binary, server
        self.backend = profiles.load(cli)
        self.ways = WAYS[cli]
        self.home = Home(root, server.url)
        self.home.prepare()
        self.panes = Panes()
        self.env = self.home.environment(subscription=True) | {
            "CLAUDE_CODE_MAX_RETRIES": "2",
            "TZ": "Europe/Berlin",
        }
        self.seen = ""  # the last verdict, for the report

    # --- hands and eyes ---------------------------------------------------------------------------

    def start(self, pane: str, *words: str, env: dict[str, str] | None = None) -> None:
        self.panes.start(pane, [self.binary, *words], self.env | (env or {}), self.home.work)

    def reading(self, pane: str) -> Reading:
        return read(self.backend, self.panes.screen(pane), now=time.time(), zone="Europe/Berlin")

    def becomes(self, pane: str, true: Callable[[Reading], object], timeout: float = TURN_S) -> bool:
        """Does a look within this time satisfy?"""
        end = time.monotonic() + patience(timeout)
        while True:
            reading = self.reading(pane)
            self.seen = f"{reading.state} ({reading.pattern or 'nothing matched'})"
            if true(reading):
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.15)

    def is_state(self, pane: str, state: str, timeout: float = TURN_S) -> bool:
        return self.becomes(pane, lambda reading: reading.state == state, timeout)

    def say(self, text: str, pane: str = "main") -> None:
        """Type as the supervisor does: paste, see it, submit, and submit once more if it still stands."""
        self.panes.paste(pane, text)
        self.becomes(pane, lambda reading: reading.draft, 5)
        self.panes.press(pane, "Enter")
        if not self.becomes(pane, lambda reading: not reading.draft, 2):
            self.panes.press(pane, "Enter")

    def arrived(self, text: str) -> int:
        """How often the model was asked this, as a prompt of its own."""
        with self.server.script.lock:
            turns = {(text in r["user"], len(r["said"])) for r in self.server.script.log if not r["side"]}
        return sum(1 for found, _ in turns if found)

    # --- the steps ----------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        yield "starts unattended and is idle", self.comes_up
        yield "is seen at work, then idle", self.works
        yield "runs a tool", self.runs_a_tool
        yield "takes a message while busy, once", self.queues
        yield "takes 20 kB of many lines exactly", self.takes_long_text
        yield "leaves a draft recognisable", self.shows_a_draft
        yield "retries by itself", self.retries
        yield "ends a turn in an error", self.fails
        yield "asks before a dangerous tool", self.asks
        if self.ways.has_limit:
            yield "hits its usage limit", self.hits_limit
        yield "quits", self.quits
        yield "resumes its conversation", self.resumes

    def comes_up(self) -> bool:
        self.start("main", *self.ways.start)
        return self.is_state("main", "idle", START_S)

    def works(self) -> bool:
        self.say("first " + said(**self.ways.busy))
        return (
            self.is_state("main", "working") and self.is_state("main", "idle") and self.arrived("first ") == 1
        )

    def runs_a_tool(self) -> bool:
        name, argument = self.ways.tool
        command = {argument: "sleep 3; echo made > made.txt", "description": "make a file"}
        self.say(
            "tool " + said(text="I will.", tool={"name": name, "input": command}, after={"text": "made it"})
        )
        seen = self.is_state("main", "working") and self.is_state("main", "idle")
        return seen and os.path.exists(os.path.join(self.home.work, "made.txt"))

    def queues(self) -> bool:
        self.say("slow " + said(**self.ways.busy))
        if not self.is_state("main", "working"):
            return False
        self.say("and the queued one")
        return self.is_state("main", "idle") and self.waits_for(
            lambda: self.arrived("and the queued one") == 1
        )

    def waits_for(self, true: Callable[[], bool], timeout: float = TURN_S) -> bool:
        end = time.monotonic() + patience(timeout)
        while not true():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def takes_long_text(self) -> bool:
        text = (
            "\n".join(f"line {n} of a long text; 'quoted' $HOME `x` \\" + "." * 40 for n in range(240))
            + "\nend"
        )
        self.say(text)
        return self.waits_for(lambda: self.arrived(text) == 1) and self.is_state("main", "idle")

    def shows_a_draft(self) -> bool:
        self.panes.paste("main", "half a thought")
        shown = self.becomes("main", lambda reading: reading.draft == "half a thought", 5)
        self.panes.press("main", *["BSpace"] * len("half a thought"))
        return shown and self.becomes("main", lambda reading: reading.draft == "", 5)

    def retries(self) -> bool:
        self.say("retry " + said(**self.ways.retry))
        seen = self.becomes("main", lambda reading: reading.state == "retrying")
        for _ in range(2):
            self.panes.press("main", "Escape")
            time.sleep(0.4)
        return seen and self.becomes("main", lambda reading: reading.state in {"idle", "error", "unknown"})

    def fails(self) -> bool:
        self.becomes("main", lambda reading: reading.state in {"idle", "error"}, 20)
        if self.reading("main").draft:  # an interrupted prompt may be put back into the composer
            self.panes.press("main", "C-c")
            self.becomes("main", lambda reading: reading.draft == "", 5)
        self.say("fail " + said(**self.ways.error))
        return self.is_state("main", "error")

    def asks(self) -> bool:
        self.start("asking", *self.ways.asking, env=self.ways.asking_env)
        if not self.is_state("asking", "idle", START_S):
            return False
        self.say("dare " + said(tool=self.ways.ask_tool), "asking")
        return self.becomes("asking", lambda r: r.state == "asking" and r.dialog and not r.key)

    def hits_limit(self) -> bool:
        before = time.time()
        self.say("limited " + said(**limit(self.cli)))

        def right(reading: Reading) -> bool:
            late = (reading.until or 0) - before - WINDOW_S
            return reading.state == "limited" and abs(late) < 120  # banners drop the seconds

        if not self.becomes("main", right):
            return False
        reading = self.reading("main")
        if reading.dialog:
            self.panes.press("main", reading.key)
        return self.becomes("main", lambda r: r.state == "limited" and not r.dialog, 5)

    def quits(self) -> bool:
        for _ in range(2):  # the first key may only call off what it would do by itself after the limit
            for key in self.ways.quit:
                self.panes.press("main", key)
                time.sleep(0.3)
            if self.becomes("main", self.is_over, 8):
                return True
        return False

    def is_over(self, reading: Reading) -> bool:
        # tmux 3.3a may miss that a child ended until another one of its own does.
        self.panes.tmux("run-shell", "-b", "true")
        return reading.state in {"dead", "shell"}

    def resumes(self) -> bool:
        identity = self.conversation()
        if not identity:
            self.seen = "no conversation id was found"
            return False
        self.start(
            "again",
            *self.ways.start,
            *self.backend.resume_flag.replace("'", "").replace("{id}", identity).split(),
        )
        if not self.becomes(
            "again", lambda r: r.state in {"idle", "limited", "error", "unknown"} and r.draft == "", START_S
        ):
            return False
        self.say("do you remember", "again")
        return self.waits_for(
            lambda: any("first " in t for r in self.asked("do you remember") for t in r["said"])
        )

    def asked(self, text: str) -> list[dict[str, object]]:
        with self.server.script.lock:
            return [r for r in self.server.script.log if text in str(r["user"]) and not r["side"]]

    def conversation(self) -> str:
        """As each CLI keeps it."""
        found = [
            os.path.join(folder, name)
            for base in (".claude/projects", ".codex/sessions")
            for folder, _, names in os.walk(os.path.join(self.home.root, base))
            for name in names
            if name.endswith(".jsonl")
        ]
        mine = []
        for path in sorted(found, key=os.path.getmtime, reverse=True):
            with open(path, encoding="utf-8", errors="replace") as file:
                if "and the queued one" in file.read():
                    mine.append(os.path.basename(path)[:-6])
        if self.cli == "opencode":
            return self.newest_of_opencode()
        return mine[0][-36:] if mine else ""

    def newest_of_opencode(self) -> str:
        import sqlite3
        from contextlib import closing

        path = os.path.join(self.home.root, ".local/share/opencode/opencode.db")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            row = base.execute(
                "select id from session where parent_id is null order by time_created limit 1"
            ).fetchone()
        return str(row[0]) if row else ""

    def show(self, step: str) -> None:
        """What stood there when a step failed: the end of it here, the whole in AO_LIVE_KEEP."""
        keep = os.environ.get("AO_LIVE_KEEP")
        for pane in ("main", "asking", "again"):
            screen = self.panes.screen(pane)
            if not screen.strip():
                continue
            tail = [line.rstrip() for line in screen.splitlines() if line.strip()][-12:]
            print(f"-- {self.cli}, pane {pane}:", *tail, sep="\n   ", file=sys.stderr)
            if keep:
                os.makedirs(keep, exist_ok=True)
                name = f"{self.cli}-{step}-{pane}.txt".replace(" ", "-")
                with open(os.path.join(keep, name), "w", encoding="utf-8") as file:
                    file.write(screen)

    def close(self) -> None:
        self.panes.close()
        self.home.close()


def run(cli: str, report: Callable[[Trial], None] = lambda _: None) -> list[Trial]:
    """Every step in order; a step that fails does not stop the rest."""
    binary = installed(cli)
    if binary.startswith("no "):
        return [Trial(cli, "an installed CLI", f"skipped: {binary}", ok=True)]
    results = []
    with (
        tempfile.TemporaryDirectory(prefix="ao-live-", ignore_cleanup_errors=True) as root,
        Server() as server,
    ):
        drill = Drill(cli, binary, root, server)
        try:
            for name, step in drill.steps():
                begin = time.monotonic()
                ok = step()
                took = f"{time.monotonic() - begin:.1f} s"
                result = Trial(f"{cli} {name}", name, f"{took}, last seen {drill.seen}", ok=ok)
                results.append(result)
                report(result)
                if not ok:
                    drill.show(name)
        finally:
            drill.close()
    return results


if __name__ == "__main__":
    outcome = [
        r
        for name in sys.argv[1:] or WAYS
        for r in run(name, lambda r: print("ok  " if r.ok else "FAIL", r.name, "|", r.got, flush=True))
    ]
    sys.exit(any(not r.ok for r in outcome))
