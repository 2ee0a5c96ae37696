"""What tmux answers: one row a pane, of numbers and allow-listed words, the session's name last.

Titles and paths are the agent's to choose and may hold anything, so they are never asked for. The format has
no condition in it: each one costs the server as much as three plain fields, for every pane at every look.
A row that does not parse makes the whole answer unavailable: half a list looks like a fleet that died.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.world.ports import Unavailable

SERVER_FORMAT = "#{pid}|#{start_time}"
CLIENT_FORMAT = "#{client_control_mode}|#{client_activity}|#{client_session}"

_FIELDS = (
    "#{@ao_project}",
    "#{@ao_anchor}",
    "#{@ao_run}",
    "#{pane_id}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_dead_status}",
    "#{pane_dead_signal}",
    "#{session_created}",
    "#{window_activity}",
    "#{history_size}",
    "#{cursor_x}",
    "#{cursor_y}",
    "#{pane_in_mode}",
    "#{session_name}",
)
PANE_FORMAT = "|".join(_FIELDS)


def anchor(project: str) -> str:
    """The session in which this project's control client sits."""
    return f"ao-anchor-{project}"


def server_id(text: str) -> ServerId:
    """Which server answered."""
    pid, _, started = text.strip().partition("|")
    return ServerId(_number(pid, text), _number(started, text))


def parse(server: str, panes: str, clients: str, project: str) -> Listing:
    """The three answers of one batch as a Listing."""
    identity = server_id(server)
    typed = _typed(clients.splitlines())
    views: dict[str, PaneView] = {}
    names: dict[str, None] = {}
    for row in panes.splitlines():
        view, session = _view(row, identity, project, typed)
        if view is not None:
            views.setdefault(session, view)
        if session:
            names[session] = None
    foreign = tuple(n for n in names if n not in views)
    return Listing(identity, tuple(views.values()), foreign)


def _view(row: str, server: ServerId, project: str, typed: dict[str, float]) -> tuple[PaneView | None, str]:
    """A row as (our pane, its session); no pane for a stranger's row, no name for an anchor's."""
    cells = row.split("|", len(_FIELDS) - 1)
    if len(cells) != len(_FIELDS):
        raise Unavailable(f"tmux listed a pane in a form we do not know: {row[:120]!r}; trying again")
    owner, anchor, run, pane, pid, dead, code, signal, created, activity, history, x, y, mode, session = cells
    if anchor:
        return None, ""
    if owner != project or not run:
        return None, session
    view = PaneView(
        ref=PaneRef(server, session, pane, _number(pid, row), run),
        dead=dead == "1",
        exit_code=_number(code, row) if code else None,
        exit_signal=_number(signal, row) if signal else None,
        created=float(_number(created, row)),
        activity=float(_number(activity, row)),
        history=_number(history, row),
        cursor_x=_number(x, row),
        cursor_y=_number(y, row),
        in_mode=mode != "0",
        typed_at=typed.get(session, 0.0),
        project=project,
    )
    return view, session


def _typed(rows: Iterable[str]) -> dict[str, float]:
    newest: dict[str, float] = {}
    for row in rows:
        control, activity, session = (*row.split("|", 2), "", "")[:3]
        if control != "1" and session:
            newest[session] = max(newest.get(session, 0.0), float(_number(activity, row)))
    return newest


def _number(text: str, row: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Unavailable(f"tmux answered {text[:40]!r} for a number, in {row[:120]!r}; trying again")
    return int(text)
