"""Open an agent's terminal.

Detach as in any tmux: C-b d. Works inside another tmux: on the same server the client switches,
otherwise the agent's terminal opens inside yours.

With --all every agent is shown in a tile, read-only: arrows choose, z zooms, n is the next window,
q leaves. With --write what you type reaches the chosen agent, and the keys follow C-b: C-b z, C-b
n, C-b d. The agents' windows keep their size. The view is on a tmux server of its own, which ends
when you leave.

Example: agents.py attach builder
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys

from fleet import bootstrap
from fleet.host.tmux import server, viewer
from fleet.host.tmux.client import not_installed
from fleet.verbs.arguments import flag, positional, session_of
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io

GROUP = "look"


ARGUMENTS = (
    positional("name", "an agent, a service or watchdog", nargs="?", metavar="NAME"),
    flag("-a --all", "show every agent, in tiles"),
    flag("-w --write", "with --all: type into the chosen agent"),
    flag("-r --read-only", "open the terminal read-only"),
    flag("--print", "print the command instead of running it"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Hand this terminal over to tmux."""
    if wrong := _misused(args):
        raise Fail(wrong, hint="agents.py attach --help", code=2)
    if args.all:
        return _all(args, io)
    fleet = running_fleet(args, io)
    session = session_of(fleet, args.name)
    outer = os.environ.get("TMUX", "")
    server.require_own_server(fleet.ground)
    command = server.attach_command(fleet.ground, session, outer=outer, read_only=args.read_only)
    if args.print and args.json:
        io.json({"name": args.name, "session": session, "command": command})
        return 0
    if args.print:
        io.print(shlex.join(command))
        return 0
    if server.is_there(fleet.ground, session) is False:
        raise Fail(f"{args.name} has no session {session} now", hint=f"agents.py up {args.name}")
    return _hand_over(command, io)


def _misused(args: argparse.Namespace) -> str:
    """What does not go together."""
    if args.all and args.name:
        return "--all shows every agent: leave NAME away"
    if not args.all and not args.name:
        return "which one? Give a NAME, or --all"
    if args.write and not args.all:
        return "--write goes with --all; a single session can be typed into unless -r is given"
    if args.write and args.read_only:
        return "--write and --read-only exclude each other"
    if args.all and (args.print or args.json):
        return "--all opens a view of this terminal: there is no command to print"
    return ""


def _hand_over(command: list[str], io: Io) -> int:
    io.flush()
    try:
        os.execvpe(command[0], command, server.environment(command))
    except FileNotFoundError:
        raise not_installed() from None


def _all(args: argparse.Namespace, io: Io) -> int:
    """Every agent in tiles."""
    bootstrap.enter(["libtmux"])
    from libtmux.exc import LibTmuxException

    if not (sys.stdin and sys.stdin.isatty()):
        raise Fail("--all needs a terminal", hint="agents.py status shows the same to a program")
    fleet = running_fleet(args, io)
    server.require_own_server(fleet.ground)
    sessions = {a.name: a.session for a in fleet.agents if a.enabled}
    if not any(server.is_there(fleet.ground, session) for session in sessions.values()):
        raise Fail("no agent is running", hint="agents.py up")
    viewer.sweep(fleet)
    size = shutil.get_terminal_size((160, 48))
    try:
        command = viewer.build(fleet, sessions, write=args.write, size=(size.columns, size.lines))
    except LibTmuxException as fault:
        raise Fail(f"the view could not be made: {fault}", hint="agents.py attach NAME") from None
    io.flush()
    try:
        return viewer.show(fleet, command)
    except FileNotFoundError:
        raise not_installed() from None
