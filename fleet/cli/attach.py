"""Open an agent's terminal. Detach as in any tmux: C-b d. With -r you can only look.

Works from inside another tmux too: on the same server the client switches, otherwise the fleet's
terminal opens inside yours.
"""

from __future__ import annotations

import argparse
import os
import shlex

from fleet.cli.common import Fail, Io, load_fleet, session_of
from fleet.world import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which session, and how."""
    parser.add_argument("name", metavar="NAME", help="an agent, a service or watchdog")
    parser.add_argument("-r", "--read-only", action="store_true", help="look, do not touch")
    parser.add_argument("--print", action="store_true", help="print the command instead of running it")


def run(args: argparse.Namespace, io: Io) -> int:
    """Hand this terminal over to tmux."""
    fleet = load_fleet(args, io)
    session = session_of(fleet, args.name)
    outer = os.environ.get("TMUX", "")
    command = terminal.attach_command(fleet, session, outer=outer, read_only=args.read_only)
    if args.print and args.json:
        io.json({"name": args.name, "session": session, "command": command})
        return 0
    if args.print:
        io.print(shlex.join(command))
        return 0
    if terminal.is_there(fleet, session) is False:
        raise Fail(f"{args.name} has no session {session} now", hint=f"agents.py up {args.name}")
    io.flush()
    try:
        os.execvpe(command[0], command, terminal.environment(command))
    except FileNotFoundError:
        raise Fail("tmux is not installed", hint="agents.py doctor --install-tmux") from None
