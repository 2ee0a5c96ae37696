"""`attach --all`: every agent in a tile, on a tmux server of the viewer's own, built with libtmux.

Each tile is a client of the fleet's server. No session is added there that could be taken for an agent's,
and `status` and `down` see nothing of it. While a tile shows an agent, the size of its window is held as it
is: a screen of forty columns is read worse, by people and by the watchdog. The server ends when its viewer
leaves, or with the fleet; its socket, which tmux leaves behind, is taken away then, or by the next viewer if
this one was killed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from fleet.core.model import Fleet
from fleet.host.tmux.client import resolve_socket
from fleet.host.tmux.server import ask, environment, server_command

SESSION = "fleet"
TILE = (40, 10)  # the smallest tile that still says something; more agents than fit get another window
KEYS_READING = "arrows choose   z zoom   n next window   q leave"
KEYS_WRITING = "C-b arrow choose   C-b z zoom   C-b n next window   C-b d leave"


def socket_name(fleet: Fleet) -> str:
    """The viewer's own server: one for each viewer."""
    return f"{fleet.tmux_socket}-view-{os.getpid()}"


def show(fleet: Fleet, command: list[str]) -> int:
    """Hand the terminal to the viewer until it is left; its exit code."""
    try:
        return subprocess.call(command, env=environment(command))
    finally:
        ask(["tmux", "-L", socket_name(fleet), "kill-server"])
        with suppress(OSError):
            os.unlink(resolve_socket(socket_name(fleet)))


def sweep(fleet: Fleet) -> None:
    """Take away the sockets of viewers that were killed."""
    folder, name = os.path.split(resolve_socket(f"{fleet.tmux_socket}-view-"))
    with suppress(OSError):
        for entry in os.listdir(folder):
            pid = entry.removeprefix(name)
            if entry.startswith(name) and pid.isdecimal() and not _alive(int(pid)):
                ask(["tmux", "-L", entry, "kill-server"])
                os.unlink(os.path.join(folder, entry))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def tile_command(fleet: Fleet, session: str, name: str, *, write: bool) -> str:
    """What runs in a tile: a client of the session, again when the agent is back, until the fleet is gone."""
    server = shlex.join(server_command(fleet.ground))
    flags = "-f ignore-size" if write else "-r"
    target, gone = shlex.quote(f"={session}:"), shlex.quote(f"{name} is not running")
    let_go = shlex.quote(f"set-option -wu -t ={session}: window-size")
    script = (
        f"unset TMUX TMUX_PANE; free() {{ {server} if-shell -F -t {target} '#{{session_attached}}' '' "
        f"{let_go} >/dev/null 2>&1; }}; trap 'free; exit' HUP TERM; "
        f"while {server} list-sessions >/dev/null 2>&1; do "
        f"{server} set-option -w -t {target} window-size manual \\; attach-session {flags} -t {target} "
        f"2>/dev/null; free; clear; printf '%s\\n' {gone}; sleep 1; done"
    )
    return f"exec sh -c {shlex.quote(script)}"


def groups(names: Mapping[str, str], columns: int, lines: int) -> Iterator[dict[str, str]]:
    """Agents and their sessions, as many at a time as a window of that size has room for."""
    room = max(1, (columns // TILE[0]) * (lines // TILE[1]))
    items = list(names.items())
    for start in range(0, len(items), room):
        yield dict(items[start : start + room])


def build(fleet: Fleet, sessions: Mapping[str, str], *, write: bool, size: tuple[int, int]) -> list[str]:
    """Make the viewer; the command that shows it. Nothing is left behind when that fails."""
    import libtmux
    from libtmux.exc import LibTmuxException

    server = libtmux.Server(socket_name=socket_name(fleet), config_file=os.devnull)
    columns, lines = size
    try:
        session = None
        for number, group in enumerate(groups(sessions, columns, lines)):
            (name, target), *others = group.items()
            first = tile_command(fleet, target, name, write=write)
            if session is None:
                session = server.new_session(
                    SESSION, window_name=f"{number + 1}", window_command=first, x=columns, y=lines
                )
                _settle(server, write=write)
                window = session.active_window
            else:
                window = session.new_window(window_name=f"{number + 1}", attach=False, window_shell=first)
            _call(server, window.active_pane, name)
            for other, its_session in others:
                command = tile_command(fleet, its_session, other, write=write)
                _call(server, window.split(shell=command, attach=False), other)
                window.select_layout("tiled")
        return ["tmux", "-L", socket_name(fleet), "attach-session", "-t", f"={SESSION}"]
    except LibTmuxException:
        server.kill()
        raise


def _call(server: Any, pane: Any, name: str) -> None:
    server.cmd("set-option", "-p", "-t", pane.pane_id, "@agent", name)


def _settle(server: Any, *, write: bool) -> None:
    """Titles, keys, and an end with the last viewer: only once one is there, or it would end at once."""
    keys, mode = (KEYS_WRITING, "typing") if write else (KEYS_READING, "read-only")
    options = {
        "mouse": "on",
        "status-left": f"#[bold] {mode} #[default] ",
        "status-left-length": "20",
        "status-right": keys,
        "status-right-length": "80",
        "window-status-current-format": "[#I]",
        "window-status-format": " #I ",
        "detach-on-destroy": "on",
    }
    for option, value in options.items():
        server.cmd("set-option", "-g", option, value)
    for option, value in (("pane-border-status", "top"), ("pane-border-format", " #{@agent} ")):
        server.cmd("set-option", "-wg", option, value)
    server.cmd("set-hook", "-g", "client-attached", "set-option -g destroy-unattached on")
    if write:
        return
    moves = {"Up": "-U", "Down": "-D", "Left": "-L", "Right": "-R"}
    for key, way in moves.items():
        server.cmd("bind-key", "-n", key, "select-pane", way)
    for key, words in {
        "z": ("resize-pane", "-Z"), "n": ("next-window",), "p": ("previous-window",), "q": ("detach-client",),
        "Escape": ("detach-client",),
    }.items():  # fmt: skip
        server.cmd("bind-key", "-n", key, *words)
