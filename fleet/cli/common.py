"""What every verb shares: a voice (Io), a way to fail (Fail) and the way to the fleet's file.

Output survives a reader that leaves: `up | head -1` goes on bringing the fleet up and exits with its
own verdict. Everything that came from outside is shown without control characters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from fleet import engine
from fleet.core.faults import Fault
from fleet.core.text import did_you_mean, escaped

if TYPE_CHECKING:
    import argparse

    from fleet.core.model import Fleet
    from fleet.core.outline import Outline
    from fleet.when import Asked
    from fleet.world.operator import Operator

COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
_PAINT = tuple(f"{code}m" for code in ("0", *COLOURS.values()))


class Fail(Fault):
    """A verb cannot do what was asked. The message says why, the hint what to do."""

    def __init__(self, message: str, *, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


class Desk:
    """How a verb gets at its fleet: the file, the hands, the time. The simulation has one of its own."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The caller's environment."""
        return os.environ

    def wall(self) -> float:
        """Now."""
        import time

        return time.time()

    def declared(self, args: argparse.Namespace, io: Io) -> tuple[Fleet, str]:
        """For a verb that starts: what the file says now, trusted, and its text."""
        fleet, text = declared_fleet(args, io)
        require_trust(fleet)
        return fleet, text

    def running(self, args: argparse.Namespace, io: Io, *, trust: bool | None) -> Fleet:
        """For a verb that looks or stops: the fleet in force. Not to be trusted is a fault, or a warning."""
        fleet = running_fleet(args, io)
        if trust:
            require_trust(fleet)
        elif trust is not None:
            warn_of_distrust(fleet, io)
        return fleet

    def require_ground(self, fleet: Fleet, text: str) -> None:
        """ConfigError for a loop that stands on nothing."""
        from fleet import config

        config.parse(text, fleet.config_path, ground=True)

    def keep(self, fleet: Fleet, text: str) -> None:
        """This declaration was taken in."""
        from fleet.world.standing import keep

        keep(fleet, text)

    def operator(self, fleet: Fleet) -> Operator:
        """Hands."""
        from fleet.world.operator import Operator

        return Operator(fleet)


class Io:
    """Where a verb speaks: facts on stdout, remarks on stderr; and the desk at which it works."""

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, desk: Desk | None = None
    ) -> None:
        self.desk = desk or Desk()
        self.out = out if out is not None else sys.stdout
        self.err = err if err is not None else sys.stderr
        self.gone = False  # nobody reads stdout any more
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
        import select

        try:
            poll = select.poll()
            poll.register(self.out.fileno(), 0)
            self.gone = any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
        except (OSError, ValueError, AttributeError):
            return

    def json(self, document: Any, *, indent: int | None = 2) -> None:
        """Facts for a program: one document, stable order as given; without indent it is one line."""
        import json

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

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Columns as wide as they need; on a terminal the last one is cut to fit."""
        from fleet.core.table import render

        limit = 0
        if self.out and self.out.isatty():
            with_room = os.get_terminal_size(self.out.fileno()).columns
            limit = max(with_room, 40) if with_room else 0
        for line in render([name.upper() for name in header], rows, limit=limit, paint=self.paint):
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
        lead = f"{word}: " if word else ""
        if lead and not os.environ.get("NO_COLOR") and self.err.isatty():
            lead = f"\x1b[{COLOURS[colour]}m{lead}\x1b[0m"
        try:
            self.flush()
            self.err.write(lead + escaped(engine.spoken(text), keep="\n") + "\n")
            self.err.flush()
        except OSError:
            self.err = None  # nobody listens; the exit code still tells


def moment(option: str, text: str, asked: Asked, *, now: float | None = None) -> float:
    """A moment as a person writes it, for an option. Before anything is done: it may start us anew."""
    import time

    from fleet import bootstrap, when

    now = time.time() if now is None else now

    try:
        try:
            return when.instant(text, asked, now=now)
        except when.NeedsLibrary:
            bootstrap.enter(["dateutil"])
            return when.instant(text, asked, now=now)
    except when.Unreadable as fault:
        raise Fail(f"{option} {text!r}: {fault}; expected a moment {when.EXAMPLES}", code=2) from None
    except bootstrap.CannotBuild as fault:
        raise Fail(
            f"{option} {text!r} needs python-dateutil, and {fault}",
            hint="an age such as 90m, or an ISO time such as 2026-11-16T08:00+01:00, needs no library",
        ) from None


def span(since: str, until: str) -> tuple[float, float | None]:
    """The past span that --since and --until name; without an end, None."""
    from fleet.when import Asked

    begin = moment("--since", since, Asked.SINCE) if since else 0.0
    end = moment("--until", until, Asked.UNTIL) if until else None
    if end is not None and end < begin:
        raise Fail(f"--until {until!r} is before --since {since!r}: nothing lies between them", code=2)
    return begin, end


def seconds(text: str) -> float:
    """A time to wait, as an argument."""
    import argparse

    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # nor is nan
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def count(text: str) -> int:
    """A number of lines, as an argument."""
    import argparse

    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _painted(text: str) -> str:
    """Lines without control characters, but with the colours that we put there ourselves."""
    head, *rest = text.split("\x1b[")
    out = escaped(head, keep="\n")
    for part in rest:
        out += ("\x1b[" if part.startswith(_PAINT) else "\\x1b[") + escaped(part, keep="\n")
    return out


def config_path(args: argparse.Namespace, io: Io) -> str:
    """Which file declares the fleet; says so when it is not the obvious one."""
    from fleet import config

    path, fallback = config.find(args.config, engine.BESIDE, config.here(args.config))
    if fallback:
        io.note(f"using {path} (there is no agents.toml here)")
    return path


def declared_fleet(args: argparse.Namespace, io: Io) -> tuple[Fleet, str]:
    """What the file says now and its text, for verbs that start. ConfigError with every problem."""
    from fleet import config
    from fleet.world.standing import borrowed_from, elsewhere

    path = config_path(args, io)
    text = config.text_of(path)
    fleet = config.parse(text, path)
    for warning in fleet.warnings:
        io.warn(warning)
    if (standing := elsewhere(fleet)) is not None:
        raise Fail(standing.sentence, hint="agents.py down, then agents.py up")
    if theirs := borrowed_from(fleet):
        raise Fail(
            f"{path}: log_dir {fleet.log_dir} holds the records of the fleet of {theirs}, which runs",
            hint="if it is a copy, remove it; else choose another log_dir",
        )
    return fleet, text


def running_fleet(args: argparse.Namespace, io: Io) -> Fleet:
    """The fleet in force, for verbs that look at it or stop it: a bad file locks nobody out."""
    from fleet.world.standing import attend

    standing = attend(_known_path(args) or config_path(args, io))
    for warning in standing.fleet.warnings:
        io.warn(warning)
    if standing.cause:
        io.warn(standing.sentence)
        io.aside = {"config": standing.facts}
    return standing.fleet


def _known_path(args: argparse.Namespace) -> str:
    """The agents.toml that was here, if it is gone and its fleet runs on; else empty."""
    from fleet import config

    if args.config is not None:
        return ""
    path = os.path.join(config.here(), config.FILE_NAME)
    if os.path.lexists(path):
        return ""
    from fleet.world.lastgood import recall
    from fleet.world.standing import alive

    record = recall(path)
    return path if record is not None and alive(record.ground) else ""


def require_trust(fleet: Fleet) -> None:
    """Refuse to act on what another user could have changed: the file, the state, what is run."""
    from fleet.world.needs import first_fault

    if found := first_fault(fleet):
        what, fault = found
        raise Fail(f"{what}: {fault}; nothing was done", hint=fault.fix, code=2)


def warn_of_distrust(fleet: Fleet, io: Io) -> None:
    """The same for a verb that only stops or shows: it goes on, and says so."""
    from fleet.world.needs import first_fault

    if found := first_fault(fleet):
        what, fault = found
        io.warn(f"{what}: {fault}; change that before the next up: {fault.fix}")


def session_of(fleet: Fleet | Outline, name: str) -> str:
    """The session of an agent, a service or the watchdog; an unknown name fails with the nearest one."""
    from fleet.core.model import WATCHDOG

    sessions: Mapping[str, str] = {
        **{a.name: a.session for a in fleet.agents},
        **{s.name: s.session for s in fleet.services},
        WATCHDOG: fleet.watchdog_session,
    }
    if name in sessions:
        return sessions[name]
    raise Fail(f"no agent or service is called {name!r}; {did_you_mean(name, sessions)}", code=2)
