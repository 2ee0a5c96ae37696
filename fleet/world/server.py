"""Which tmux server is this fleet's: by name, or by the path that its first `up` put on record."""

from __future__ import annotations

import os

from fleet import regular
from fleet.core.standing import Grounded
from fleet.world.terminal import RECORDED
from fleet.world.tmux import TmuxServer, resolve_socket


def recorded_socket(fleet: Grounded) -> str:
    """Where the server really is, as the first `up` found it; empty before that."""
    try:
        return regular.read(os.path.join(fleet.log_dir, "state", RECORDED), 4096).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def server_of(fleet: Grounded) -> TmuxServer:
    """The fleet's tmux server, spoken to by processes."""
    path = recorded_socket(fleet)
    if path == resolve_socket(fleet.tmux_socket):
        path = ""
    return TmuxServer(
        fleet.tmux_socket,
        os.path.join(fleet.log_dir, "state"),
        fleet.project_id,
        fleet.log_dir,
        socket_path=path,
    )
