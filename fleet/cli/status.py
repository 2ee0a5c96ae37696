"""Show the state of every agent and service.

Changes nothing. `status` asks tmux which sessions are alive; detail, reason and phase come from the
watchdog.

Example: agents.py status --check --json
"""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from fleet import __version__
from fleet.cli.common import Fail, Io, session_of
from fleet.cli.view import disk_trouble, read_view, written_outline
from fleet.core.text import escaped
from fleet.journal.heartbeat import is_stale, last_beat
from fleet.journal.locks import watchdog_holder
from fleet.ports import Clock, Unavailable
from fleet.world.server import server_of
from fleet.world.terminal import attach_command
from fleet.world.trust import untrusted

if TYPE_CHECKING:
    import argparse

    from fleet.core.outline import Listed, Outline
    from fleet.core.seen import PaneView

    _Seen = tuple[dict[str, PaneView], frozenset[str], str]

WEEK_S = 6 * 86_400.0  # farther ahead a weekday does not say which one
COLOURS = {"RUNNING": "green", "STOPPED": "dim", "DEAD": "red", "FATAL": "red", "UNKNOWN": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to print."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="agents or services to show (default: all)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 if an agent should run and does not, or there is a problem",
    )
    parser.add_argument(
        "--prometheus", action="store_true", help="print Prometheus metrics (docs/metrics.md lists them)"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the table, the JSON or the metrics. Exit 1 only with --check."""
    fleet = _outline(args, io)
    facts = gather(fleet, io.clock, io.aside.get("config"))
    if args.names:
        for name in args.names:
            session_of(fleet, name)
        for key in ("agents", "services"):
            facts[key] = [r for r in facts[key] if r["name"] in args.names]
    if args.prometheus and args.json:
        raise Fail("--prometheus and --json exclude each other; choose one", code=2)
    if args.prometheus:
        # both read the profiles of all CLIs: only when they are asked for
        from fleet.cli.metrics import exposition
        from fleet.tokens.tokenlog import token_records

        io.write(exposition(facts, token_records(os.path.join(fleet.log_dir, "token-log.jsonl"))))
    elif args.json:
        io.json(facts)
    else:
        _print(fleet, facts, io)
    return 1 if args.check and not as_desired(facts) else 0


def _outline(args: argparse.Namespace, io: Io) -> Outline:
    """The fleet in force: as the watchdog wrote it down if the file is the same, else read."""
    if outline := written_outline(args.config or "agents.toml"):
        return outline
    # Only now: the reader of agents.toml is the largest part to load, and a watched fleet does not need it.
    from fleet.cli.fleets import running_fleet

    return running_fleet(args, io).outline


def gather(fleet: Outline, clock: Clock, declared: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything `status` knows, as the documented document. `declared`: why the file is not in force."""
    state_dir = os.path.join(fleet.log_dir, "state")
    seen: list[_Seen] = []

    def look() -> None:
        with suppress(Exception):  # whatever it is, it is met again below
            seen.append(_look(fleet))

    looking = Thread(target=look)
    looking.start()  # tmux answers while the files are read
    view = read_view(state_dir) or {}
    beat = last_beat(state_dir)
    dog = _watchdog(fleet, state_dir, beat, view, clock.wall())
    known = {r["name"]: r for r in (*view.get("agents", ()), *view.get("services", ()))}
    wants = _desired(state_dir)
    full = disk_trouble(fleet.log_dir)
    looking.join()
    panes, foreign, blind = seen[0] if seen else _look(fleet)
    rows = [
        _row(s, panes, foreign, blind, known.get(s.name), wants.get(s.name, ""), dog) for s in fleet.members
    ]
    config = declared or {"source": "file", "cause": "", "problems": []}
    strays = _orphans(fleet, panes, rows)
    problems = [*([full] if full else []), *_distrust(fleet), *_problems(blind, view, dog, rows, config)]
    problems += [
        f"{o['name']}: session {o['session']} is ours, but agents.toml does not name it:"
        f" `agents.py down {o['name']}` stops it"
        for o in strays
    ]
    return {
        "version": __version__,
        "project": {
            "config": fleet.config_path,
            "prefix": fleet.session_prefix,
            "socket": fleet.tmux_socket,
            "log_dir": fleet.log_dir,
        },
        "config": config,
        "watchdog": dog,
        "loop": _loop(fleet, state_dir, view),
        "agents": rows[: len(fleet.agents)],
        "services": rows[len(fleet.agents) :],
        "orphans": strays,
        "problems": problems,
    }


def _orphans(fleet: Outline, panes: dict[str, PaneView], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sessions with our stamp that the file does not name: removed from it, or renamed in it."""
    known = {r["pid"] for r in rows} | {r["session"] for r in rows}
    found = [p.ref for s, p in panes.items() if s not in known and (p.dead or p.ref.pid not in known)]
    return [
        {"name": ref.session.removeprefix(fleet.session_prefix), "session": ref.session, "pid": ref.pid}
        for ref in found
        if ref.session != fleet.watchdog_session
    ]


def as_desired(facts: dict[str, Any]) -> bool:
    """Whether every agent that should be up is, with a running watchdog and no problem."""
    rows = [*facts["agents"], *facts["services"]]
    wanted = [r for r in rows if r["desired"] == "up"]
    if any(r["state"] in {"DEAD", "FATAL", "UNKNOWN"} for r in wanted) or facts["problems"]:
        return False
    return not wanted or facts["watchdog"]["state"] == "running"


def _look(fleet: Outline) -> _Seen:
    try:
        listing = server_of(fleet).listing()
    except Unavailable as error:
        return {}, frozenset(), str(error)
    return {p.ref.session: p for p in listing.panes}, frozenset(listing.foreign), ""


def _watchdog(
    fleet: Outline, state_dir: str, beat: float | None, view: dict[str, Any], now: float
) -> dict[str, Any]:
    holder = watchdog_holder(state_dir)
    age = now - beat if beat is not None else None
    if holder is None:
        state = "stopped"
    elif age is None or is_stale(age, fleet.signal_interval):
        state = "stale"
    else:
        state = "running"
    return {
        "state": state,
        "pid": holder.pid if holder else None,
        "last_tick": beat,
        "age": round(age, 1) if age is not None else None,
        "version": view.get("version", "") if holder else "",
        "degraded": view.get("degraded", "") if holder else "",
    }


def _desired(state_dir: str) -> dict[str, str]:
    """What the operator wants, read without a lock and without touching anything."""
    for name in ("desired.json", "desired.json.prev"):
        try:
            with open(os.path.join(state_dir, name), encoding="utf-8") as file:
                entries = json.load(file)["data"]["entries"]
            return {n: str(e.get("want", "")) for n, e in entries.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return {}


def _row(
    spec: Listed,
    panes: dict[str, PaneView],
    foreign: frozenset[str],
    blind: str,
    known: dict[str, Any] | None,
    want: str,
    dog: dict[str, Any],
) -> dict[str, Any]:
    pane = panes.get(spec.session) or _renamed(panes, known)
    live = pane is not None and not pane.dead
    told = known if known is not None and dog["state"] != "stopped" else None
    shown: dict[str, Any] = {
        "name": spec.name,
        "kind": spec.kind,
        "role": spec.role,
        "backend": spec.backend,
        "model": spec.model,
        "watch": spec.watch,
        "enabled": spec.enabled,
        "desired": want,
        "session": spec.session,
        "state": "STOPPED",
        "detail": "DOWN" if spec.enabled else "DISABLED",
        "reason": "",
        "since": None,
        "until": None,
        "pid": pane.ref.pid if pane is not None and live else None,
        "restarts": known.get("restarts", 0) if known else 0,
        "drift": [],
        "phase": "",
    }
    if told is not None:
        for key in ("detail", "reason", "since", "until", "drift", "phase", "rule", "messages"):
            shown[key] = told.get(key, shown.get(key))
        if live and told.get("model"):
            shown["model"], shown["backend"] = told["model"], told.get("backend", shown["backend"])
    if blind:
        return shown | {"state": "UNKNOWN", "detail": "UNSEEN", "reason": blind}
    if pane is None and spec.session in foreign:
        return shown | {
            "state": "UNKNOWN",
            "detail": "FOREIGN",
            "reason": "a session of this name is not ours",
        }
    return shown | _state(pane, told, want, dog)


def _renamed(panes: dict[str, PaneView], known: dict[str, Any] | None) -> PaneView | None:
    """The pane of a session that was renamed by hand: the watchdog still knows its process."""
    pid = known.get("pid") if known else None
    return next((p for p in panes.values() if p.ref.pid == pid), None) if pid else None


def _state(
    pane: PaneView | None, told: dict[str, Any] | None, want: str, dog: dict[str, Any]
) -> dict[str, Any]:
    """The coarse word from what tmux says now; the fine one stays the watchdog's while they agree."""
    live = pane is not None and not pane.dead
    if told is not None and told.get("state") == "FATAL":
        return {"state": "FATAL"}
    if live:
        fits = told is not None and told.get("state") in {"RUNNING", "UNKNOWN"}
        state = "UNKNOWN" if told is not None and told.get("state") == "UNKNOWN" else "RUNNING"
        if fits:
            return {"state": state}
        return {"state": "RUNNING", "detail": "STARTING" if dog["state"] == "running" else "UNWATCHED"}
    if want == "up":
        calm = (
            told is not None and told.get("detail") in {"DONE", "EXITED"} and told.get("state") == "STOPPED"
        )
        if calm:
            return {"state": "STOPPED"}
        code = "" if pane is None or pane.exit_code is None else f"exited with {pane.exit_code}"
        fits = told is not None and told.get("state") == "DEAD"
        return (
            {"state": "DEAD"}
            if fits
            else {"state": "DEAD", "detail": "EXITED", "reason": code or "not running"}
        )
    return {"state": "STOPPED"}


def _loop(fleet: Outline, state_dir: str, view: dict[str, Any]) -> dict[str, Any] | None:
    """Where the phases stand, from the record itself."""
    if not fleet.state_file:
        return None
    ids = fleet.phases
    told = view.get("loop") or {}
    index: int | None = None
    try:
        with open(os.path.join(state_dir, fleet.state_file), encoding="utf-8") as file:
            index = int(file.read(32))
    except (OSError, ValueError):
        index = None
    complete = os.path.exists(os.path.join(fleet.log_dir, "SEQUENCE-COMPLETE"))
    here = ids[index] if index is not None and 0 <= index < len(ids) else ""
    return {
        "index": index,
        "id": here,
        "total": len(ids),
        "complete": complete,
        "held": told.get("held", ""),
        "state": told.get("state", ""),
    }


def _distrust(fleet: Outline) -> list[str]:
    """The config or the state that another user could change: no verb acts on it."""
    places = (("config", fleet.config_path), ("log_dir", os.path.join(fleet.log_dir, "state")))
    found = [(what, fault) for what, path in places if (fault := untrusted(path))]
    return [f"{what}: {fault}; `up` refuses it: {fault.fix}" for what, fault in found]


def _in_force(dog: dict[str, Any], config: dict[str, Any], view: dict[str, Any]) -> list[str]:
    """What keeps the present file from being in force: as seen here, else in the watchdog's words."""
    watched = dog["state"] != "stopped"
    wrong = config["problems"] or ([view["config"]] if watched and view.get("config") else [])
    who = "the watchdog uses" if watched else "no watchdog runs; verbs use"
    return [f"agents.toml: {who} the last good config: {text}" for text in wrong]


def _problems(
    blind: str,
    view: dict[str, Any],
    dog: dict[str, Any],
    rows: list[dict[str, Any]],
    config: dict[str, Any],
) -> list[str]:
    """What a person should know, most urgent first."""
    problems: list[str] = []
    if blind:
        problems.append(f"tmux: {blind}")
    wanted = any(r["desired"] == "up" or r["state"] == "RUNNING" for r in rows)
    if wanted and dog["state"] == "stopped":
        problems.append("watchdog: not running, no agent is restarted: run `agents.py ensure` or `up`")
    if dog["state"] == "stale":
        problems.append(f"watchdog: no tick for {dog['age']} s: run `agents.py ensure`")
    if dog["version"] and dog["version"] != _version():
        problems.append(
            f"watchdog: runs version {dog['version']}, this engine is {_version()}:"
            " `down watchdog`, then `up`"
        )
    problems += _in_force(dog, config, view)
    if dog["state"] != "stopped":
        problems += [str(p) for p in view.get("problems", ())]
    else:
        problems += [
            f"{r['name']}: {r['state'].lower()}: {r['reason']}"
            for r in rows
            if r["state"] in {"DEAD", "FATAL"}
        ]
    problems += [
        f"{r['name']}: runs with other values than the file says: {', '.join(r['drift'])}"
        for r in rows
        if r["drift"]
    ]
    return problems


def _version() -> str:
    return __version__


def _print(fleet: Outline, facts: dict[str, Any], io: Io) -> None:
    rows = [
        (
            r["name"],
            r["kind"],
            r["backend"],
            r["model"],
            r["watch"],
            (r["state"], COLOURS[r["state"]]),
            _detail(r, io.clock.wall()),
            r["phase"],
            r["reason"],
        )
        for r in (*facts["agents"], *facts["services"])
    ]
    io.table(("name", "kind", "backend", "model", "watch", "state", "detail", "phase", "reason"), rows)
    loop, dog = facts["loop"], facts["watchdog"]
    lines = [f"watchdog {dog['state']}" + (f", pid {dog['pid']}" if dog["pid"] else "")]
    if loop is not None:
        lines.append(_place(loop))
    io.print()
    io.print(escaped(" · ".join(lines)))
    if any(r["state"] == "RUNNING" for r in facts["agents"]):
        one = next(r for r in facts["agents"] if r["state"] == "RUNNING")
        io.print(escaped("attach: " + shlex.join(attach_command(fleet, one["session"]))))
    for text in facts["problems"]:
        io.print(io.paint("! ", "red") + escaped(text))


def _place(loop: dict[str, Any]) -> str:
    """Where the loop stands: the watchdog's own words while it has some, the bare record otherwise."""
    if loop["held"]:
        return f"loop held: {loop['held']}"
    if loop["complete"]:
        return "sequence complete"
    if loop["id"] and loop["id"] in loop["state"]:
        return str(loop["state"])
    return f"phase {loop['id']} ({loop['index'] + 1}/{loop['total']})" if loop["id"] else "loop not begun"


def _detail(r: dict[str, Any], now: float) -> str:
    until = r["until"]
    if until and r["detail"] in {"LIMITED", "WAITING", "PAUSED", "FROZEN"}:
        form = "%a %H:%M" if until - now < WEEK_S else "%a %Y-%m-%d %H:%M"
        return f"{r['detail']} until {time.strftime(form, time.localtime(until))}"
    drift = " (drift)" if r["drift"] else ""
    return f"{r['detail']}{drift}"
