"""Which tmux server is this fleet's: by name, or by the path that its first `up` put on record."""

from __future__ import annotations

import os

from fleet.core.model import Fleet
from fleet.world.terminal import RECORDED
from fleet.world.tmux import TmuxServer, resolve_socket


def recorded_socket(fleet: Fleet) -> str:
    """Where the server really is, as the first `up` found it; empty before that."""
    try:
        with open(os.path.join(fleet.log_dir, "state", RECORDED), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def server_of(fleet: Fleet) -> TmuxServer:
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
