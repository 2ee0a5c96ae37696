"""Open an agent's terminal. Detach as in any tmux: C-b d. With -r you can only look.

Works from inside another tmux too: on the same server the client switches, otherwise the fleet's
terminal opens inside yours.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess

from fleet.cli.common import Fail, Io, load_fleet, session_of, tmux_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which session, and how."""
    parser.add_argument("name", metavar="NAME", help="an agent, a service or watchdog")
    parser.add_argument("-r", "--read-only", action="store_true", help="look, do not touch")
    parser.add_argument("--print", action="store_true", help="print the command instead of running it")


def run(args: argparse.Namespace, io: Io) -> int:
    """Hand this terminal over to tmux."""
    fleet = load_fleet(args, io)
    session = session_of(fleet, args.name)
    tmux = tmux_command(fleet)
    outer = os.environ.get("TMUX", "")
    inside = bool(outer) and same_server(tmux, outer)
    command = [*tmux, *words(session, inside=inside, read_only=args.read_only)]
    if args.print:
        io.print(shlex.join(command))
        return 0
    environ = {k: v for k, v in os.environ.items() if inside or k not in {"TMUX", "TMUX_PANE"}}
    if there(tmux, session, environ) is False:
        raise Fail(f"{args.name} has no session {session} now", hint=f"agents.py up {args.name}")
    io.flush()
    try:
        os.execvpe(command[0], command, environ)
    except FileNotFoundError:
        raise Fail("tmux is not installed", hint="agents.py doctor --install-tmux") from None


def words(session: str, *, inside: bool, read_only: bool) -> list[str]:
    """The tmux command that shows a session."""
    verb = ["switch-client"] if inside else ["attach-session"]
    return [*verb, *(["-r"] if read_only else []), "-t", f"={session}:"]


def same_server(tmux: list[str], outer: str) -> bool:
    """Whether the tmux we run in is the fleet's own; TMUX names its socket first."""
    done = asked([*tmux, "display-message", "-p", "#{socket_path}"], None)
    mine = done.stdout.strip() if done else ""
    return bool(mine) and os.path.realpath(outer.partition(",")[0]) == os.path.realpath(mine)


def there(tmux: list[str], session: str, environ: dict[str, str]) -> bool | None:
    """Whether the session exists; None when tmux is missing or does not answer."""
    done = asked([*tmux, "has-session", "-t", f"={session}:"], environ)
    return None if done is None else done.returncode == 0


def asked(argv: list[str], environ: dict[str, str] | None) -> subprocess.CompletedProcess[str] | None:
    """One short question to tmux."""
    try:
        return subprocess.run(
            argv,
            env=environ,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
