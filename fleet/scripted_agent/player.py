"""The running program: its screen, its ears, its records, and the part it plays.

One thread, one loop (`pause`): paint what changed, wait for input or the next instant, take the input in.
Actions call it whenever they wait, so the screen lives and keys are heard whatever the script is doing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import NoReturn

from fleet.scripted_agent.actions import ACTIONS, Ended, Interrupted, Step
from fleet.scripted_agent.face import View, load_face, render
from fleet.scripted_agent.script import Script, ScriptError, action_of, directives, fill
from fleet.scripted_agent.terminal import Keys, Stroke, Terminal

KEPT_LINES = 4000
FRAME_S = 0.1
POLL_S = 0.05
SHOWN_LINES = 6  # of a long text, as CLIs fold it
BUSY = frozenset({"working", "retrying"})


class Agent:
    """The running program: its screen, its ears, and the part it plays."""

    def __init__(self, script: Script, flags: dict[str, str], record: str) -> None:
        env = os.environ
        self.script = script
        self.face = load_face(flags.get("--face") or env.get("AO_SCRIPT_FACE") or script.face)
        self.speed = float(env.get("AO_SCRIPT_SPEED") or 1.0) * script.speed
        self.record = record
        self.conversation = flags.get("--resume") or flags.get("--session-id") or _new_id()
        self.slots: dict[str, str] = {
            "agent": env.get("AO_AGENT", "agent"),
            "session": env.get("AO_SESSION", ""),
            "model": flags.get("--model", "scripted-1"),
            "dir": os.getcwd(),
            "id": self.conversation,
            "resume": flags.get("--resume", ""),
            "pid": str(os.getpid()),
        }
        self.lines = [fill(line, self.slots) for line in self.face.header]
        self.mode = "bare"
        self.text = "Working"
        self.since = 0.0
        self.retry_at = 0.0
        self.attempt = 0
        self.draft = ""
        self.shell = False
        self.question: list[str] = []
        self.options: list[str] = []
        self.choice = 0
        self.answer = -1
        self.queue: list[str] = []
        self.footer: list[str] | None = None
        self.deaf = False  # ignores what is typed
        self.hung = False  # does not even read
        self.interrupted = False
        self._quit_asked = float("-inf")
        self._frame = 0
        self._hidden = 0
        self._keys = Keys(self.face.paste_gap)
        self.terminal = Terminal(alternate=self.face.alternate, bracketed_paste=self.face.bracketed_paste)

    # Time and the screen

    def real(self, seconds: float) -> float:
        """Script seconds as real ones."""
        return seconds / self.speed

    def pause(
        self, seconds: float | None, until: Callable[[], object] = lambda: False, poll: float = 3600.0
    ) -> bool:
        """Live on for that many script seconds, or until the condition holds; True if it did.

        The condition is looked at after every input, and every `poll` seconds.
        """
        deadline = None if seconds is None else time.monotonic() + self.real(seconds)
        while True:
            self.paint()
            if until():
                return True
            left = poll if deadline is None else min(deadline - time.monotonic(), poll)
            if left <= 0:
                return False
            self.listen(min(left, FRAME_S) if self.mode in BUSY else left)

    def busy(self, seconds: float | None, until: Callable[[], object], mode: str, text: str) -> bool:
        """Show the spinner meanwhile; True when the condition ended it."""
        self.mode, self.text, self.since, self.interrupted = mode, text, time.monotonic(), False
        met = self.pause(seconds, until=lambda: self.interrupted or until(), poll=POLL_S)
        self.mode = "idle"
        if self.interrupted:
            raise Interrupted
        return met

    def listen(self, timeout: float) -> None:
        """Wait for input, at most so long, and take it in."""
        if self.hung:
            time.sleep(timeout)
            return
        try:
            data = self.terminal.read(timeout)
        except InterruptedError:
            return
        self._frame += 1
        if data:
            self.note_bytes(data)
            for key in self._keys.feed(data, time.monotonic()):
                self.press(key)

    def paint(self) -> None:
        """Show what there is to show."""
        if self.hung:
            return
        columns, rows = self.terminal.size()
        spinner = self.face.spinner
        now = time.monotonic()
        slots = self.slots | {
            "glyph": spinner[self._frame % len(spinner)],
            "text": self.text,
            "elapsed": str(int((now - self.since) * self.speed)),
            "left": str(max(int((self.retry_at - now) * self.speed), 0)),
            "attempt": str(self.attempt),
        }
        view = View(
            self.lines,
            self.draft,
            self.mode,
            slots,
            self.question,
            self.options,
            self.choice,
            self.queue,
            self.footer,
            self.shell,
        )
        picture = render(self.face, view, columns, rows)
        while not self.face.alternate and picture.hidden > self._hidden and picture.content:
            step = min(picture.hidden - self._hidden, picture.content)
            self.terminal.scroll(step)
            self._hidden += step
        self._hidden = picture.hidden
        self.terminal.paint(picture.rows, picture.cursor)

    def resized(self) -> None:
        """The window has another size: draw all of it again."""
        self.terminal.forget()
        self.paint()

    def show(self, prefix: str, rest: str, text: str) -> None:
        """Add a block of content."""
        first, *others = text.split("\n") or [""]
        if self.lines and self.lines[-1] and prefix != self.face.output:
            self.lines.append("")
        self.lines += [prefix + first, *(rest + line for line in others)]
        if len(self.lines) > KEPT_LINES:
            cut = len(self.lines) - KEPT_LINES
            del self.lines[:cut]
            self._hidden = max(self._hidden - cut, 0)

    # What is typed

    def press(self, key: Stroke) -> None:
        """One key."""
        if self.deaf:
            return
        if self.mode == "asking":
            self._press_dialog(key)
        elif key.name == "text":
            self._write(key.text)
        elif key.name == "newline":
            self.draft += "\n" if self.draft else ""
        elif key.name == "backspace":
            self.shell = self.shell and bool(self.draft)
            self.draft = self.draft[:-1]
        elif key.name == "ctrl-u":
            above, end, line = self.draft.rpartition("\n")
            self.draft = above + (end if line else "")  # the line, then its end, as editors of lines do
        elif key.name == "escape":
            self.interrupted = self.mode in BUSY
        elif key.name == "enter":
            self._submit()
        elif key.name in {"ctrl-c", "ctrl-d"}:
            self._leave(key.name)

    def _write(self, text: str) -> None:
        if not self.draft and not self.shell and self.face.shell and text.startswith(self.face.shell):
            self.shell, text = True, text.removeprefix(self.face.shell)
        self.draft += text

    def _press_dialog(self, key: Stroke) -> None:
        if key.name in {"up", "down"}:
            self.choice = (self.choice + (1 if key.name == "down" else -1)) % len(self.options)
        elif key.name == "text" and key.text.isdigit() and 0 < int(key.text) <= len(self.options):
            self.answer = int(key.text)
        elif key.name == "enter":
            self.answer = self.choice + 1
        elif key.name == "escape":
            self.answer = 0

    def _submit(self) -> None:
        text, self.draft = self.draft.rstrip(), ""
        if not text.strip():
            return
        if self.shell or (self.face.commands and text[0] in self.face.commands):
            self.shell = False
            self.note("command", text)
            return
        busy = self.mode in BUSY
        if busy and not self.face.queues:
            self.note("lost", text)
            return
        self.note("queued" if busy else "message", text)
        self.queue.append(text)

    def _leave(self, name: str) -> None:
        """Ctrl-C clears the draft or stops the work; twice, it ends the program. Ctrl-D ends it at once."""
        if self.draft and name == "ctrl-c":
            self.draft = ""
        elif self.mode in BUSY:
            self.interrupted = True
        elif name == "ctrl-d" or time.monotonic() - self._quit_asked < 1.0:
            raise Ended(0)
        else:
            self._quit_asked = time.monotonic()

    # Records

    def note(self, kind: str, text: str) -> None:
        """Write down a text that was received."""
        line = json.dumps({"at": round(time.time(), 3), "pid": os.getpid(), "kind": kind, "text": text})
        self._append("messages.jsonl", line.encode() + b"\n")

    def note_bytes(self, data: bytes) -> None:
        """Write down exactly what came."""
        self._append("bytes", data)

    def _append(self, name: str, data: bytes) -> None:
        if not self.record:
            return
        with contextlib.suppress(OSError):
            fd = os.open(f"{self.record}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)

    # The part it plays

    def hear(self, seconds: float | None = None) -> str | None:
        """The next message, waiting at the prompt for it; None when the time is over."""
        self.mode = "idle"
        if not self.pause(seconds, until=lambda: self.queue or self.terminal.closed) or not self.queue:
            if self.terminal.closed and not self.queue:
                raise Ended(0)
            return None
        text = self.queue.pop(0)
        self.slots["message"] = text
        self.show(self.face.user, self.face.user_rest, _folded(text))
        return text

    def perform(self, steps: list[Step]) -> None:
        """Carry steps out, one after the other."""
        for step in steps:
            name = action_of(step)
            filled = fill(step, self.slots)
            ACTIONS[name].act(self, filled[name], filled)

    def react(self, kind: str, text: str) -> None:
        """Do what the script says about a text."""
        try:
            steps = directives(text)
            if steps is None:
                steps = self._steps_for(kind, text)
            self.perform(steps)
        except ScriptError as error:
            self.show(self.face.said, self.face.said_rest, str(error))
        except Interrupted:
            self.show(self.face.output, self.face.output_rest, "Interrupted by the user")
        self.interrupted = False
        self.mode = "idle"

    def _steps_for(self, kind: str, text: str) -> list[Step]:
        for reaction in self.script.on:
            slots = reaction.match(kind, text, self.slots["resume"])
            if slots is not None:
                reaction.ran += 1
                self.slots |= slots
                return reaction.steps
        return self.script.steps if kind == "kickoff" else self.script.idle

    def play(self, kickoff: str) -> NoReturn:
        """From the first screen until something ends it."""
        if self.script.boot:
            self.lines.append("Starting…")
            self.pause(self.script.boot)
            self.lines.pop()
        self.mode = "idle"
        self.perform(self.script.start)
        if kickoff:
            self.note("kickoff", kickoff)
            self.show(self.face.user, self.face.user_rest, _folded(kickoff))
        text = kickoff or self.hear() or ""
        self.slots |= {"kickoff": text, "message": text}
        self.react("kickoff", text)
        while True:
            self.react("message", self.hear() or "")


def _folded(text: str) -> str:
    """As CLIs show a long text: its head, and how much more there is."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= SHOWN_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:SHOWN_LINES], f"… +{len(lines) - SHOWN_LINES} lines"])


def _new_id() -> str:
    h = os.urandom(16).hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}"
