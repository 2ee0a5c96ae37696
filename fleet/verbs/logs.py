"""Print what a session printed.

Terminal control sequences are removed; --raw keeps them. With --json it prints one document, with
--json -f one JSON string per line.

Example: agents.py logs builder -f
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import BinaryIO

from fleet.reading import Ident, Tail, ident_of
from fleet.text import for_display
from fleet.verbs.arguments import count, flag, option, positional, session_of
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io

GROUP = "look"

BLOCK = 1 << 16
POLL = 0.2


ARGUMENTS = (
    positional("name", "an agent, a service or watchdog", metavar="NAME"),
    flag("-f --follow", "keep printing new output"),
    option("-n --lines N", "how many lines (default: 100)", type=count, default=100),
    flag("--raw", "keep terminal control sequences"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """The tail of the log; a session that never wrote one is not as desired."""
    fleet = running_fleet(args, io)
    path = os.path.join(fleet.log_dir, "logs", f"{session_of(fleet, args.name)}.log")
    show = decoded if args.raw else plain
    try:
        with open(path, "rb") as file:
            last = tail(file, args.lines)
            end = Tail(path, ident_of(os.fstat(file.fileno())), file.tell())
    except FileNotFoundError:
        raise Fail(f"{args.name} has no log yet: {path}", hint=f"agents.py up {args.name}") from None
    if args.json and not args.follow:
        io.json({"name": args.name, "path": path, "lines": _lines(show(last))})
        return 0
    _tell(io, show, last, as_json=args.json)
    if args.follow:
        follow(end, io, lambda data: _tell(io, show, data, as_json=args.json))
    return 0


def _tell(io: Io, show: Callable[[bytes], str], data: bytes, *, as_json: bool) -> None:
    """Some whole lines, for a person or for a program."""
    if as_json:
        for line in _lines(show(data)):
            io.json(line, indent=None)
    else:
        io.write(show(data))
    io.flush()


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def tail(file: BinaryIO, lines: int) -> bytes:
    """The last lines, read from the end in blocks; leaves the file at its end."""
    end = place = file.seek(0, os.SEEK_END)
    found = b""
    while place and found.count(b"\n") <= lines:
        step = min(BLOCK, place)
        place = file.seek(place - step)
        found = file.read(step) + found
    file.seek(end)
    whole = found.removesuffix(b"\n").split(
        b"\n"
    )  # splitlines would also cut at what a terminal redraws with
    return b"".join(line + b"\n" for line in whole[-lines:]) if found and lines else b""


def follow(tail: Tail, io: Io, tell: Callable[[bytes], None]) -> None:
    """Print whole lines as they come, also when the log was truncated, or renamed for a new one."""
    path = tail.path
    while not io.gone:
        there = _ident(path)
        tail.path = path if there == tail.ident else f"{path}.1"
        tail.read(lambda lines, end, _at: tell(bytes(lines[:end])), again=False)
        if there not in {None, tail.ident}:
            tail = Tail(path, there)
            continue
        io.check()
        io.clock.sleep(POLL)


def _ident(path: str) -> Ident | None:
    try:
        return ident_of(os.stat(path))
    except FileNotFoundError:
        return None


def decoded(data: bytes) -> str:
    """Bytes of a terminal as text; what is not UTF-8 stays visible."""
    return data.decode("utf-8", "replace")


def plain(data: bytes) -> str:
    """Lines as a person would have read them: no control sequences, and nothing that was overwritten."""
    shown = []
    for line in decoded(data).removesuffix("\n").split("\n") if data else ():
        written = [part for part in line.split("\r") if part]
        shown.append(for_display(written[-1]).rstrip() + "\n" if written else "\n")
    return "".join(shown)
