"""Which tmux servers there are for a fleet, and how a person's terminal reaches a session of it."""

from __future__ import annotations

import os
import subprocess

from fleet import reading
from fleet.core.outline import Ground
from fleet.core.seen import Listing
from fleet.host.tmux.client import TmuxServer, check_socket, require_tmux, resolve_socket
from fleet.ports import Unavailable

RECORDED = "socket"  # in the state directory: where the server really is, as the first `up` found it


class RealServers:
    """The Servers port."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def require_tmux(self) -> None:
        require_tmux()

    def ours(self) -> TmuxServer:
        return server_of(self._ground)

    def socket(self) -> str:
        return resolve_socket(self._ground.tmux_socket)

    def users_listing(self) -> Listing:
        if not os.path.exists(resolve_socket("default")):
            return Listing(None)  # most machines: no process needs to be started to learn that
        try:
            return _server(self._ground, "default").listing()
        except Unavailable:
            return Listing(None)


def server_of(ground: Ground) -> TmuxServer:
    """The fleet's tmux server, spoken to by processes."""
    return _server(ground, ground.tmux_socket, _elsewhere(ground))


def _server(ground: Ground, socket: str, path: str = "") -> TmuxServer:
    return TmuxServer(socket, ground.project_id, ground.log_dir, socket_path=path)


def recorded_socket(ground: Ground) -> str:
    """Where the server really is, as the first `up` found it; empty before that."""
    try:
        return reading.read(os.path.join(ground.log_dir, "state", RECORDED), 4096).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _elsewhere(ground: Ground) -> str:
    """The recorded socket, if the server's name would lead to another one now."""
    path = recorded_socket(ground)
    return "" if path == resolve_socket(ground.tmux_socket) else path


# --------------------------------------------------------------------------------------------------
# How a person's terminal reaches a session: the one tmux command that `attach` runs and `status` prints.


def server_command(ground: Ground) -> list[str]:
    """The fleet's tmux server, by its name, or by its path where the name would lead elsewhere."""
    path = _elsewhere(ground)
    return ["tmux", "-S", path] if path else ["tmux", "-L", ground.tmux_socket]


def require_own_server(ground: Ground) -> None:
    """Unavailable if the recorded server may be another user's: a terminal is not handed to it."""
    command = server_command(ground)
    if "-S" in command:
        check_socket(command[-1])


def attach_command(ground: Ground, session: str, *, outer: str = "", read_only: bool = False) -> list[str]:
    """Show a session. `outer` is the caller's TMUX: a client of the same server switches over."""
    server = server_command(ground)
    verb = "switch-client" if outer and _same_server(server, outer) else "attach-session"
    return [*server, verb, *(["-r"] if read_only else []), "-t", f"={session}:"]


def environment(command: list[str]) -> dict[str, str]:
    """What the command must see: a client that opens inside another tmux must not know of the outer one."""
    nested = "attach-session" in command
    return {k: v for k, v in os.environ.items() if not (nested and k in {"TMUX", "TMUX_PANE"})}


def is_there(ground: Ground, session: str) -> bool | None:
    """Whether the session exists; None when tmux is missing or does not answer."""
    done = ask([*server_command(ground), "has-session", "-t", f"={session}:"])
    return None if done is None else done.returncode == 0


def _same_server(server: list[str], outer: str) -> bool:
    done = ask([*server, "display-message", "-p", "#{socket_path}"])
    mine = done.stdout.strip() if done else ""
    return bool(mine) and os.path.realpath(outer.partition(",")[0]) == os.path.realpath(mine)


def ask(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    """What tmux answers; None when it is missing or does not."""
    environ = {k: v for k, v in os.environ.items() if k not in {"TMUX", "TMUX_PANE"}}
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
