"""The one document of a fleet, for every verb that shows something.

The watchdog writes it (`view.json`). While a watchdog lives and has taken in the file as it is, that document
is read. Otherwise a look of our own makes the same one. Each verb asks tmux which sessions are alive.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet import __version__
from fleet.core.codec import from_plain
from fleet.core.desired import Want
from fleet.core.outline import Outline
from fleet.core.views import Now, overlaid, problem, unjudged
from fleet.core.words import State, WatchdogState
from fleet.host.locks import Beat, pulse
from fleet.host.tmux.server import server_of
from fleet.host.trust import untrusted
from fleet.ports import Clock, Unavailable
from fleet.store.lastgood import real_ground, recall
from fleet.store.wishes import read_view, wants

if TYPE_CHECKING:
    from fleet.core.model import Fleet
    from fleet.core.seen import Listing

IN_FORCE: dict[str, Any] = {"source": "file", "cause": "", "problems": []}
_OWN = ("version", "tick", "at", "degraded", "config", "problems")  # what only the watchdog can say
_IDLE = "the watchdog can record nothing and restarts no agent"


class Found(NamedTuple):
    """The declaration, the document of it, and whether the watchdog works that may have written it."""

    fleet: Outline
    document: dict[str, Any]
    dog: Beat


# --- reading, or making ------------------------------------------------------------------------------


def at_hand(named: str, clock: Clock) -> Found | None:
    """The watchdog's document, if it is of this very file as it is now. Reads no declaration."""
    try:
        path = os.path.abspath(os.path.expanduser(named))
        file = os.stat(path)
        record = recall(path)
        view = read_view(os.path.join(record.ground.log_dir, "state")) if record is not None else None
        if record is None or view is None or view["version"] != __version__:
            return None
        if view["declared"]["stamp"] != [file.st_size, file.st_mtime_ns, file.st_ino]:
            return None
        fleet = from_plain(Outline, view["declared"]["outline"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    dog = _dog(fleet, clock)
    ours = fleet.ground.config_path == path and real_ground(fleet.ground) == record.ground
    return Found(fleet, view, dog) if ours and dog.state is not WatchdogState.STOPPED else None


def reading(fleet: Fleet, clock: Clock) -> Found:
    """The watchdog's document if it is of this declaration, else one that is made now."""
    outline = fleet.outline
    dog = _dog(outline, clock)
    view = read_view(os.path.join(fleet.log_dir, "state")) or {}
    lives = dog.state is not WatchdogState.STOPPED
    if lives and _declares(view, outline):
        return Found(outline, view, dog)
    own = {key: view[key] for key in _OWN if key in view} if lives else {"version": ""}
    return Found(outline, looked(fleet) | own, dog)


def looked(fleet: Fleet) -> dict[str, Any]:
    """The document of a read-only look. Without what cannot be read, and with the reason, if that fails."""
    # Only now: the supervisor is the largest part to load, and a watched fleet does not need it.
    from fleet.store.documents import StoreError
    from fleet.supervisor.deputy import observer

    try:
        dog = observer(fleet)
        dog.glance()
        document: dict[str, Any] = json.loads(dog.document())
    except (OSError, ValueError, StoreError) as fault:
        return {"fault": f"{fleet.log_dir}: cannot be read: {fault}"}
    return document


def _dog(fleet: Outline, clock: Clock) -> Beat:
    return pulse(os.path.join(fleet.ground.log_dir, "state"), fleet.signal_interval, clock.wall())


def _declares(view: dict[str, Any], fleet: Outline) -> bool:
    """Is it of these members, phases and names? The file may be known by another path."""
    try:
        told = from_plain(Outline, view["declared"]["outline"])
    except (KeyError, TypeError, ValueError):
        return False
    here = told.ground._replace(config_path=fleet.ground.config_path)
    return view.get("version") == __version__ and told._replace(ground=here) == fleet


def row_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The row of that name as it was judged; empty when there is none."""
    rows = (*document.get("agents", ()), *document.get("services", ()))
    return next((row for row in rows if row["name"] == name), {})


# --- what is so now ----------------------------------------------------------------------------------


def gather(fleet: Fleet, clock: Clock, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document of `status`. `config`: why the file is not in force."""
    return facts_of(reading(fleet, clock), config)


def facts_of(found: Found, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the document says, with what tmux says now over it: the shape of docs/status.md."""
    fleet, view, dog = found
    listing, blind = _listing(fleet)
    panes = {p.ref.session: p for p in listing.panes} if listing else {}
    foreign = frozenset(listing.foreign if listing else ())
    now = Now(panes, foreign, blind, wants(os.path.join(fleet.ground.log_dir, "state")), dog.state)
    known = {r["name"]: r for r in (*view.get("agents", ()), *view.get("services", ()))}
    rows = [overlaid(known.get(m.name) or unjudged(m), now) for m in fleet.members]
    strays = _strays(fleet, now, rows)
    facts = {
        "version": __version__,
        "at": view.get("at"),
        "project": {
            "config": fleet.ground.config_path,
            "prefix": fleet.ground.session_prefix,
            "socket": fleet.ground.tmux_socket,
            "log_dir": fleet.ground.log_dir,
        },
        "config": config or IN_FORCE,
        "watchdog": {
            "state": dog.state,
            "pid": dog.pid,
            "last_tick": dog.last,
            "age": None if dog.age is None else round(dog.age, 1),
            "version": view.get("version", ""),
            "degraded": view.get("degraded", ""),
        },
        "loop": view.get("loop"),
        "agents": rows[: len(fleet.agents)],
        "services": rows[len(fleet.agents) :],
        "orphans": strays,
    }
    return facts | {"problems": [*_of_the_place(fleet), *_problems(facts, view, rows, blind)]}


def as_desired(facts: dict[str, Any]) -> bool:
    """Whether every agent that should be up is, with a running watchdog and no problem."""
    rows = [*facts["agents"], *facts["services"]]
    wanted = [r for r in rows if r["desired"] == Want.UP]
    if any(r["state"] in {State.DEAD, State.FATAL, State.UNKNOWN} for r in wanted) or facts["problems"]:
        return False
    return not wanted or facts["watchdog"]["state"] == WatchdogState.RUNNING


def _listing(fleet: Outline) -> tuple[Listing | None, str]:
    """One answer of tmux, or why there is none."""
    try:
        return server_of(fleet.ground).listing(), ""
    except Unavailable as error:
        return None, str(error)


def _strays(fleet: Outline, now: Now, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sessions with our stamp that the file does not name: removed from it, or renamed in it."""
    known = {r["pid"] for r in rows} | {r["session"] for r in rows} | {fleet.watchdog_session}
    refs = [p.ref for s, p in now.panes.items() if s not in known and (p.dead or p.ref.pid not in known)]
    prefix = fleet.ground.session_prefix
    return [
        {"name": ref.session.removeprefix(prefix), "session": ref.session, "pid": ref.pid} for ref in refs
    ]


# --- what a person should know -----------------------------------------------------------------------


def _problems(
    facts: dict[str, Any], view: dict[str, Any], rows: list[dict[str, Any]], blind: str
) -> list[str]:
    """Most urgent first."""
    dog = facts["watchdog"]
    stopped = dog["state"] == WatchdogState.STOPPED
    found = [text for text in (blind and f"tmux: {blind}", view.get("fault")) if text]
    if stopped and any(r["desired"] == Want.UP or r["state"] == State.RUNNING for r in rows):
        found.append("watchdog: not running, no agent is restarted: run `agents.py ensure` or `up`")
    if dog["state"] == WatchdogState.STALE:
        found.append(f"watchdog: no tick for {dog['age']} s: run `agents.py ensure`")
    if dog["version"] not in {"", __version__}:
        found.append(
            f"watchdog: runs version {dog['version']}, this engine is {__version__}:"
            " run `agents.py restart watchdog`"
        )
    who = "no watchdog runs; verbs use" if stopped else "the watchdog uses"
    wrong = facts["config"]["problems"] or ([view["config"]] if view.get("config") else [])
    found += [f"agents.toml: {who} the last good config: {text}" for text in wrong]
    if not stopped:
        found += view.get("problems", ())
    elif not blind:
        found += filter(None, map(problem, rows))
    found += [
        f"{r['name']}: runs with other values than the file says: {', '.join(r['drift'])}"
        for r in rows
        if r["drift"]
    ]
    return found + [
        f"{o['name']}: session {o['session']} is ours, but agents.toml does not name it:"
        f" `agents.py down {o['name']}` stops it"
        for o in facts["orphans"]
    ]


def _of_the_place(fleet: Outline) -> list[str]:
    """A disk that takes nothing; a config or a state that another user could change: no verb acts on it."""
    full = _disk_trouble(fleet.ground.log_dir)
    places = (("config", fleet.ground.config_path), ("log_dir", os.path.join(fleet.ground.log_dir, "state")))
    found = [(what, fault) for what, path in places if (fault := untrusted(path))]
    distrust = [f"{what}: {fault}; `up` refuses it: {fault.fix}" for what, fault in found]
    return [full, *distrust] if full else distrust


def _disk_trouble(path: str) -> str:
    """Why nothing can be written there. The watchdog could not even write down that it cannot."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return ""  # not made yet, or not on this system
    if not os.path.isdir(path):
        return f"{path}: is not a directory: nothing can be recorded there; move it away, or change log_dir"
    if disk.f_flag & os.ST_RDONLY:
        return f"{path}: the file system is read-only: {_IDLE}"
    if disk.f_blocks and not disk.f_bavail:
        return f"{path}: the disk is full: {_IDLE} until there is room"
    if disk.f_files and not disk.f_favail:
        return f"{path}: the file system has no room for another file: {_IDLE} until there is"
    return ""
