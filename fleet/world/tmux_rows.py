"""What tmux answers: one row a pane, of numbers and allow-listed words, the session's name last.

Titles and paths are the agent's to choose and may hold anything, so they are never asked for. The format has
no condition in it: each one costs the server as much as three plain fields, for every pane at every look.
Most rows say what they said at the last look, and are not read again.
A row that does not parse makes the whole answer unavailable: half a list looks like a fleet that died.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.record import replace
from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.world.ports import Unavailable

SERVER_FORMAT = "#{pid}|#{start_time}"
CLIENT_FORMAT = "#{client_control_mode}|#{client_activity}|#{client_session}"

_FIELDS = (
    "#{@ao_project}",
    "#{@ao_run}",
    "#{pane_id}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_dead_status}",
    "#{pane_dead_signal}",
    "#{@ao_created}",
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


class Rows:
    """The reader of one project's lists."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._server: ServerId | None = None
        self._known: dict[str, tuple[PaneView | None, str]] = {}  # the rows of the last list

    def read(self, server: str, panes: str, clients: str) -> Listing:
        """The three answers of one batch as a Listing."""
        identity = server_id(server)
        known = self._known if identity == self._server else {}
        rows = panes.split("\n") if panes else []  # a name may hold other line breaks
        now = {row: known.get(row) or _view(row, identity, self._project) for row in rows}
        self._server, self._known = identity, now
        views: dict[str, PaneView] = {}
        for view, session in now.values():
            if view is not None:
                views.setdefault(session, view)
        for session, at in _typed(clients.split("\n")).items():
            if session in views:
                views[session] = replace(views[session], typed_at=at)
        strangers = dict.fromkeys(session for _, session in now.values() if session not in views)
        strangers.pop(anchor(self._project), None)
        return Listing(identity, tuple(views.values()), tuple(strangers))


def _view(row: str, server: ServerId, project: str) -> tuple[PaneView | None, str]:
    """A row as (our pane, its session); no pane for a stranger's row."""
    cells = row.split("|", len(_FIELDS) - 1)
    if len(cells) != len(_FIELDS):
        raise Unavailable(f"tmux listed a pane in a form we do not know: {row[:120]!r}; trying again")
    owner, run, pane, pid, dead, code, signal, created, activity, history, x, y, mode, session = cells
    if owner != project or not run:
        return None, session
    view = PaneView(
        ref=PaneRef(server, session, pane, _number(pid, row), run),
        dead=dead == "1",
        exit_code=_number(code, row) if code else None,
        exit_signal=_number(signal, row) if signal else None,
        created=float(_number(created or "0", row)),
        activity=float(_number(activity, row)),
        history=_number(history, row),
        cursor_x=_number(x, row),
        cursor_y=_number(y, row),
        in_mode=mode != "0",
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
