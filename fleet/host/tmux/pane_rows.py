"""What tmux answers: one row per pane, of numbers and allow-listed words, the session's name last.

Titles and paths are the agent's to choose and may hold anything, so they are never asked for. The format has
no condition in it: each one costs the server as much as three plain fields, for every pane at every look.
Most rows say what they said at the last look, and are not read again.
A row that does not parse makes the whole answer unavailable: half a list looks like a fleet that died.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleet.core.seen import Listing, PaneRef, PaneView, ServerId
from fleet.host.tmux.dialects import PANE_PID, STAMPED_PID, number, number_or_none
from fleet.ports import Unavailable
from fleet.times.moment import UNNAMED, Wall

SERVER_FORMAT = "#{pid}|#{start_time}"
CLIENT_FORMAT = "#{client_control_mode}|#{client_activity}|#{client_session}"

_FIELDS = (
    "#{@ao_project}",
    "#{@ao_run}",
    "#{pane_id}",
    PANE_PID,
    STAMPED_PID,
    "#{pane_dead}",
    "#{pane_dead_status}",
    "#{pane_dead_signal}",
    "#{@ao_created}",
    "#{window_activity}",
    "#{history_size}",
    "#{cursor_x}",
    "#{cursor_y}",
    "#{pane_in_mode}",
    "#{pane_pipe}",
    "#{session_name}",
)
PANE_FORMAT = "|".join(_FIELDS)


def anchor(project: str) -> str:
    """The session in which this project's control client sits."""
    return f"ao-anchor-{project}"


def server_id(text: str) -> ServerId:
    """Which server answered."""
    pid, _, started = text.strip().partition("|")
    return ServerId(number(pid, text), number(started, text))


class Rows:
    """The reader of one project's lists."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._server: ServerId | None = None
        self._known: dict[str, tuple[PaneView | None, str]] = {}  # the rows of the last list

    def read(self, server: ServerId, panes: str, clients: str) -> Listing:
        """The two answers of one batch as a Listing."""
        known = self._known if server == self._server else {}
        rows = panes.split("\n") if panes else []  # a name may hold other line breaks
        now = {row: known.get(row) or _view(row, server, self._project) for row in rows}
        self._server, self._known = server, now
        views: dict[str, PaneView] = {}
        for view, session in now.values():
            if view is not None:
                views.setdefault(session, view)
        for session, at in _typed(clients.split("\n")).items():
            if session in views:
                views[session] = views[session]._replace(typed_at=at)
        strangers = dict.fromkeys(session for _, session in now.values() if session not in views)
        strangers.pop(anchor(self._project), None)
        return Listing(server, tuple(views.values()), tuple(strangers))


def _view(row: str, server: ServerId, project: str) -> tuple[PaneView | None, str]:
    """A row as (our pane, its session); no pane for a stranger's row."""
    cells = row.split("|", len(_FIELDS) - 1)
    if len(cells) != len(_FIELDS):
        raise Unavailable(f"tmux listed a pane in a form we do not know: {row[:120]!r}; trying again")
    owner, run, pane, pid, stamped, dead, code, signal, created, activity, *where, session = cells
    history, x, y, mode, pipe = where
    if owner != project or not run:
        return None, session
    view = PaneView(
        ref=PaneRef(server, session, pane, number(pid or stamped or "0", row), run),
        dead=bool(number(dead, row)),
        exit_code=number_or_none(code, row),
        exit_signal=number_or_none(signal, row),
        created=Wall(float(number(created or "0", row))),
        activity=Wall(float(number(activity, row))),
        history=number(history, row),
        cursor_x=number(x, row),
        cursor_y=number(y, row),
        in_mode=bool(number(mode or "0", row)),
        piped=bool(number(pipe or "1", row)),
        project=project,
    )
    return view, session


def _typed(rows: Iterable[str]) -> dict[str, Wall]:
    newest: dict[str, Wall] = {}
    for row in rows:
        control, activity, session = (*row.split("|", 2), "", "")[:3]
        if control != "1" and session:
            newest[session] = max(newest.get(session, UNNAMED), Wall(float(number(activity or "0", row))))
    return newest
