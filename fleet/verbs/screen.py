"""Show what a captured screen is read as.

FILE is a captured screen, - is standard input. The profile is the project's own where an
agents.toml stands here, otherwise the shipped one. --save AGENT keeps the live screen of an agent
as a fixture, with what it was read as: correct the label by eye, and it proves a pattern.

Example: agents.py screen --backend claude shot.txt
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from fleet.backends import profiles
from fleet.backends.screen_reader import read
from fleet.core.model import Backend
from fleet.core.seen import Reading
from fleet.host.env import host_zone
from fleet.host.tmux.server import server_of
from fleet.ports import Unavailable
from fleet.text import escaped
from fleet.times.iso import instant
from fleet.times.moment import Wall
from fleet.verbs.arguments import option, positional
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.version import answer

GROUP = "look"


ARGUMENTS = (
    positional("files", "captured screens; - is standard input", nargs="*", metavar="FILE"),
    option("--backend NAME", "the backend that the screens are of, such as claude"),
    option("--zone ZONE", "time zone of times without one (default: the host's)"),
    option("--at TIME", "ISO time when the screens were captured (default: now)"),
    option("--save AGENT", "keep this agent's live screen as a fixture"),
    option("--into DIR", "directory for --save (default: <log_dir>/screens)"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the reading of each file, or save a live screen."""
    if args.save:
        return save(args, io)
    if not args.files or not args.backend:
        example = "agents.py screen --backend claude shot.txt"
        raise Fail("screen needs FILE and --backend", hint=example, code=2)
    backend = backend_named(args, io, args.backend)
    now, zone = moment(args.at, io), _zone(args.zone)
    rows = [(name, read(backend, text_of(name), now=now, zone=zone)) for name in args.files]
    if args.json:
        io.json([{"file": name, "backend": backend.name, **plain(reading)} for name, reading in rows])
        return 0
    for name, reading in rows:
        show(io, name, reading)
    return 0


def backend_named(args: argparse.Namespace, io: Io, name: str) -> Backend:
    """The project's own backend where there is a project here, the shipped one otherwise."""
    if args.config or os.path.exists("agents.toml"):
        fleet = running_fleet(args, io)
        found = next((b for b in fleet.backends if b.name == name), None)
        if found:
            return found
    if name not in profiles.names():
        raise Fail(f"there is no backend {name!r}", hint=f"one of {', '.join(profiles.names())}", code=2)
    return profiles.load(name)


def text_of(name: str) -> str:
    """A captured screen; bytes that are no text are shown as such, not refused."""
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8", "replace")
        with open(name, "rb") as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except OSError as error:
        raise Fail(f"{name} cannot be read: {error.strerror}", code=2) from None


def moment(stamp: str | None, io: Io) -> Wall:
    """The instant a screen was captured."""
    if not stamp:
        return io.clock.wall()
    when = instant(stamp)
    if when is None:
        raise Fail(f"--at {stamp} is not a time", hint="--at 2026-11-16T04:30:00Z", code=2)
    return Wall(when)


def _zone(given: str | None) -> str:
    """The zone that was asked for, which must exist, or that of this machine."""
    if not given:
        return host_zone()
    try:
        ZoneInfo(given)
    except (KeyError, ValueError, OSError):
        raise Fail(f"there is no zone {given!r}", hint="--zone Europe/Berlin", code=2) from None
    return given


def plain(reading: Reading) -> dict[str, Any]:
    """For programs: instants both as epoch seconds and as text."""
    marker = reading.marker
    return {
        "state": str(reading.state),
        "pattern": reading.pattern,
        "line": reading.line,
        "until": reading.until,
        "until_at": iso(reading.until),
        "dialog": reading.dialog,
        "key": reading.key,
        "fix": reading.fix,
        "draft": reading.draft,
        "marker": marker and {"until": marker.until, "until_at": iso(marker.until), "text": marker.text},
        "content_hash": reading.content_hash,
    }


def iso(when: float | None) -> str | None:
    """An instant as people write it."""
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds") if when is not None else None


def show(io: Io, name: str, reading: Reading) -> None:
    """For people: the verdict on one line, what speaks for it below."""
    head = [f"{escaped(name)}: {reading.state}"]
    head += [f"until {iso(reading.until)}"] if reading.until is not None else []
    head += [f"(pattern {reading.pattern})"] if reading.pattern else ["(nothing matched)"]
    io.print(" ".join(head))
    if reading.line:
        io.print(f"    saw     {escaped(reading.line)}")
    if reading.dialog:
        allowed = f"may press {reading.key}" if reading.key else "no key is allowed"
        io.print(f"    dialog  {reading.dialog}; {allowed}")
    if reading.fix:
        io.print(f"    to do   {reading.fix}")
    if reading.draft:
        io.print(f"    draft   {escaped(reading.draft.splitlines()[0])}")
    if reading.marker:
        io.print(f"    marker  {escaped(reading.marker.text)}")


def save(args: argparse.Namespace, io: Io) -> int:
    """Keep an agent's live screen, with where it came from and what it was read as."""
    fleet = running_fleet(args, io)
    agent = fleet.agent(args.save)
    if agent is None:
        known = ", ".join(a.name for a in fleet.agents)
        raise Fail(f"no agent is called {args.save!r}", hint=f"one of {known}", code=2)
    backend = fleet.backend_of(agent)
    server = server_of(fleet.ground)
    try:
        panes = [p for p in server.listing().panes if p.ref.session == agent.session]
        screens = server.capture([panes[0].ref]) if panes else {}
    except Unavailable as error:
        raise Fail(f"tmux did not answer: {error}") from None
    if agent.session not in screens:
        raise Fail(f"{agent.name} has no screen", hint=f"agents.py up {agent.name}")
    now, zone = io.clock.wall(), _zone(args.zone)
    text = "\n".join(line.rstrip(" ") for line in screens[agent.session].split("\n")).rstrip("\n") + "\n"
    reading = read(backend, text, now=now, zone=zone)
    path = keep(args.into or os.path.join(fleet.log_dir, "screens"), backend, text, reading, now, zone)
    if args.json:
        io.json({"file": path, "backend": backend.name, **plain(reading)})
    else:
        show(io, path, reading)
        io.print(f"saved; check it, and correct its label in {os.path.dirname(path)}/captures.toml")
    return 0


def keep(directory: str, backend: Backend, text: str, reading: Reading, now: float, zone: str) -> str:
    """Write one capture and its label; returns where."""
    folder = os.path.join(directory, backend.name)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    taken = datetime.fromtimestamp(int(now), UTC)
    name = f"{taken:%Y%m%dT%H%M%SZ}-{reading.state}"
    path = os.path.join(folder, f"{name}.txt")
    label = [f"\n[{name}]", f'state = "{reading.state}"']
    label += [f'dialog = "{reading.dialog}"'] if reading.dialog else []
    label += [f"until = {iso(reading.until)}"] if reading.until is not None else []
    label += [f"draft = {toml_string(reading.draft)}"] if reading.draft else []
    label += [f'cli = "{version_of(backend)}"', f"taken = {iso(int(now))}", f'zone = "{zone}"', ""]
    for file, content, mode in ((path, text, "w"), (f"{folder}/captures.toml", "\n".join(label), "a")):
        with open(file, mode, opener=_private) as out:
            out.write(content)
    return path


def _private(path: str, flags: int) -> int:
    """Only for the user: a screen shows what an agent works on."""
    return os.open(path, flags, 0o600)


def version_of(backend: Backend) -> str:
    """What the installed CLI calls itself; a capture without its release proves little."""
    found = re.search(r"\d+\.\d+[\w.-]*", answer([backend.bin, "--version"]))
    version = found[0] if found else "of unknown version"
    return f"{backend.name} {version}"


def toml_string(text: str) -> str:
    """A basic string; JSON's escapes are TOML's too."""
    return json.dumps(text, ensure_ascii=False)
