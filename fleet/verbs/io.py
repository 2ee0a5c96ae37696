"""How a verb speaks: its output (Io), and a way to fail (Fail).

Output survives a reader that leaves: `up | head -1` goes on bringing the fleet up and exits with its
own verdict. Everything that came from outside is shown without control characters.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from fleet import engine
from fleet.core.decision import Fault
from fleet.host.clock import RealClock
from fleet.text import escaped, render, wrapped

if TYPE_CHECKING:
    from fleet.ports import Clock
    from fleet.verbs.fleets import Fleets

COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
WEEK_S = 6 * 86_400.0
_PAINT = tuple(f"{code}m" for code in ("0", *COLOURS.values()))


class Fail(Fault):
    """A verb cannot do what was asked. The message says why, the hint what to do."""

    def __init__(self, message: str, *, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


class Io:
    """Where a verb speaks: facts on stdout, remarks on stderr. Holds the clock of the verb, too."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        fleets: Fleets | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.fleets = fleets  # the simulation's; see fleets.py
        self.clock = clock or RealClock()
        self.out = out if out is not None else sys.stdout
        self.err = err if err is not None else sys.stderr
        self.gone = False  # the reader of stdout has left
        self.lost = ""  # output that could not be written, and why
        self.aside: dict[str, Any] = {}  # what every document of this verb says besides its own facts

    @cached_property
    def colour(self) -> bool:
        """Only for a person at a terminal who did not say no."""
        dumb = os.environ.get("TERM") == "dumb"
        return not os.environ.get("NO_COLOR") and not dumb and bool(self.out and self.out.isatty())

    def print(self, text: str = "") -> None:
        """A line of facts for a person: what came from outside moves no cursor."""
        text = engine.spoken(text)
        self.write((text if text.isprintable() else _painted(text)) + "\n")

    def write(self, text: str) -> None:
        """Facts without a line end of their own."""
        if self.gone or self.out is None:
            return
        try:
            self.out.write(text)
        except BrokenPipeError:
            self.hang_up()
        except OSError as fault:
            self.lost = fault.strerror or str(fault)
            self.hang_up()

    def flush(self) -> None:
        """Let a reader see what was said so far."""
        self.write("")
        if not self.gone and self.out is not None:
            try:
                self.out.flush()
            except BrokenPipeError:
                self.hang_up()
            except OSError as fault:
                self.lost = fault.strerror or str(fault)
                self.hang_up()

    def check(self) -> None:
        """Notice a reader that left while we had nothing to say: a follower must not outlive its pipe."""
        if self.out is None or self.gone:
            return
        try:
            poll = select.poll()
            poll.register(self.out.fileno(), 0)
            self.gone = any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
        except (OSError, ValueError, AttributeError):
            return

    def json(self, document: Any, *, indent: int | None = 2) -> None:
        """Facts for a program: one document, stable order as given; without indent it is one line."""
        if self.aside and indent is not None and isinstance(document, dict):
            document = self.aside | document
        # A stdout that cannot spell a letter would show it as Python does, and that is no JSON.
        spelt = "utf" in (getattr(self.out, "encoding", None) or "utf-8").lower()
        self.write(json.dumps(document, indent=indent, ensure_ascii=not spelt) + "\n")

    def warn(self, text: str) -> None:
        """Something is odd; we go on."""
        self._remark("warning", "yellow", text)

    def note(self, text: str) -> None:
        """Something worth knowing, for a person."""
        self._remark("", "", text)

    def error(self, text: str, hint: str = "") -> None:
        """What went wrong, and what to do."""
        self._remark("error", "red", f"{text} (try: {hint})" if hint else text)

    def paint(self, text: str, colour: str) -> str:
        """A text in colour, if colours are wanted."""
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and self.colour else text

    @cached_property
    def room(self) -> int:
        """How many columns a line of facts may have; 0 for any number, where no terminal shows it."""
        return _room(self.out)

    def paragraph(self, text: str, lead: str = "", colour: str = "") -> None:
        """A sentence behind a lead in colour. On a terminal its lines end between words."""
        indent = " " * max(len(lead), 2)
        first, *rest = wrapped(text, self.room, lead, indent) if self.room else (lead + text,)
        for line in (self.paint(lead, colour) + first[len(lead) :], *rest):
            self.print(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]], spare: Sequence[str] = ()) -> None:
        """Columns as wide as they need. On a terminal they are made to fit; those in `spare` go first."""
        names, first = [name.upper() for name in header], [name.upper() for name in spare]
        for line in render(names, rows, limit=self.room, paint=self.paint, spare=first):
            self.print(line)

    def hang_up(self) -> None:
        """The reader left. Point stdout at nothing, so that the interpreter's own flush stays quiet."""
        self.gone = True
        if self.out is sys.stdout and self.out is not None:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.out.fileno())
            os.close(null)

    def close(self, code: int) -> int:
        """The last flush; output that was lost is a failure, a reader that left is not."""
        self.flush()
        if self.lost:
            self.error(f"the output could not be written: {self.lost}")
            return code or 1
        return code

    def _remark(self, word: str, colour: str, text: str) -> None:
        if self.err is None:
            return
        lead, room = f"{word}: " if word else "", _room(self.err)
        whole = lead + escaped(engine.spoken(text), keep="\n")
        if room:
            lines = (line for part in whole.split("\n") for line in wrapped(part, room, indent="  "))
            whole = "\n".join(lines)
        if lead and not os.environ.get("NO_COLOR") and self.err.isatty():
            whole = f"\x1b[{COLOURS[colour]}m{lead}\x1b[0m{whole[len(lead) :]}"
        try:
            self.flush()
            self.err.write(whole + "\n")
            self.err.flush()
        except OSError:
            self.err = None  # stderr is closed; the exit code remains


def _room(stream: TextIO | None) -> int:
    """The columns of the terminal behind a stream, but 40; 0 where there is none."""
    if stream is None or not stream.isatty():
        return 0
    columns = os.get_terminal_size(stream.fileno()).columns
    return max(columns, 40) if columns else 0


def day_and_time(wall: float, now: float) -> str:
    """A moment to come, for people: weekday and time, with the date where a weekday could be another one."""
    return time.strftime("%a %H:%M" if wall - now < WEEK_S else "%a %Y-%m-%d %H:%M", time.localtime(wall))


def _painted(text: str) -> str:
    """Lines without control characters, but with the colours that we put there ourselves."""
    head, *rest = text.split("\x1b[")
    out = escaped(head, keep="\n")
    for part in rest:
        out += ("\x1b[" if part.startswith(_PAINT) else "\\x1b[") + escaped(part, keep="\n")
    return out
