"""Start the watchdog again if it died or hangs.

For cron or systemd. Does nothing while no agent or service should be up. `--install` writes a
systemd user unit and timer, so that the fleet returns after a reboot.

Example: agents.py ensure --install
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess

from fleet import __version__, engine
from fleet.core.words import EventType, WatchdogState
from fleet.host.clock import polls
from fleet.host.locks import Beat, beat_of
from fleet.store.wishes import read_view
from fleet.supervisor.operator import Operator, watchdog_argv
from fleet.verbs.arguments import flag
from fleet.verbs.fleets import fleets_of
from fleet.verbs.io import Io

GROUP = "run"

POLL_S = 0.05

UNIT = """[Unit]
Description=Keep the fleet of {config} supervised

[Service]
Type=oneshot
ExecStart={ensure}
KillMode=process

[Install]
WantedBy=default.target
"""
TIMER = """[Unit]
Description=Keep the watchdog of {config} every minute

[Timer]
OnBootSec=30
OnUnitActiveSec=60

[Install]
WantedBy=timers.target
"""


ARGUMENTS = (
    flag("--install", "write a systemd user unit and timer, and enable it"),
    flag("--print", "with --install: print the files instead of writing them"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Start the watchdog if it should run and does not. Exit 1 when it could not be started."""
    fleet = fleets_of(io).running(args, io, trust=True)
    if args.install:
        return _install(fleet.config_path, fleet.session_prefix, io, only_print=args.print, as_json=args.json)
    operator = fleets_of(io).operator(fleet)
    dog, wanted = _beat(operator), operator.house.desired.load()
    if not any(wanted.wants_up(m.name) for m in fleet.members):
        idle = "nothing to do: every agent and service is down (`agents.py up` starts the fleet)"
        return _say(io, idle, "idle", 0, as_json=args.json)
    if dog.state is WatchdogState.RUNNING:
        return _say(io, f"the watchdog runs (pid {dog.pid})", "running", 0, as_json=args.json)
    operator.end_lost_clients()
    operator.make_room()
    if dog.state is WatchdogState.STALE:
        operator.stop_watchdog()
    why = operator.start_watchdog(watchdog_argv(fleet))
    if why:
        if fleet.notify:  # the notifier is a child of the watchdog, which does not run
            words = engine.command("notify", "run", "--once", "--config", fleet.config_path)
            subprocess.run(words, check=False, stdin=subprocess.DEVNULL)
        return _say(io, f"the watchdog could not be started: {why}", "failed", 1, as_json=args.json)
    operator.house.events.record(EventType.WATCHDOG_ENSURED, reason=f"it was {dog.state}")
    return _say(io, f"the watchdog was {dog.state}; started it", "restarted", 0, as_json=args.json)


def _say(io: Io, text: str, word: str, code: int, *, as_json: bool) -> int:
    if as_json:
        io.json({"ok": code == 0, "result": word, "text": text})
    else:
        io.print(text)
    return code


# --- what `up` and `restart` do about the watchdog -----------------------------------------------------


def start_watchdog(operator: Operator, io: Io, patience: float, *, quiet: bool = False) -> str:
    """Have a watchdog that ticks within so many seconds: "" or why there is none, which is said."""
    dog = _beat(operator)
    if dog.state is WatchdogState.STALE:
        io.warn(f"{_silent(dog)}: `up` replaces it")
        operator.stop_watchdog()
    elif dog.state is WatchdogState.RUNNING:
        _say_version(operator, io)
    why = operator.start_watchdog(watchdog_argv(operator.fleet))
    if not why and patience and not _ticks(operator, patience):
        why = f"no tick within {patience:.0f} s; see `agents.py logs watchdog`"
    if why:
        io.error(f"the watchdog could not be started: {why}", hint="agents.py doctor")
    elif not quiet:
        io.note("the watchdog runs")
    return why


def say_of_watchdog(operator: Operator, io: Io) -> None:
    """What a verb that does not start the watchdog has found in its place."""
    dog = _beat(operator)
    match dog.state:
        case WatchdogState.STOPPED:
            io.note("no watchdog runs: no agent is restarted until `agents.py up` starts one")
        case WatchdogState.STALE:
            io.warn(f"{_silent(dog)}: no agent is restarted until `agents.py restart watchdog` replaces it")
        case WatchdogState.RUNNING:
            _say_version(operator, io)


def _beat(operator: Operator) -> Beat:
    file = operator.world.disk.stat(operator.house.path("heartbeat"))
    last = file.mtime_ns / 1e9 if file is not None else None
    interval = operator.fleet.watchdog.signal_interval
    return beat_of(operator.locks.holder(), last, interval, operator.world.clock.wall())


def _ticks(operator: Operator, patience: float) -> bool:
    """Has the watchdog ticked since it holds its lock?"""
    for _ in polls(operator.world.clock, patience, POLL_S):
        holder, dog = operator.locks.holder(), _beat(operator)
        if holder is not None and dog.last is not None and dog.last >= holder.since:
            return True
    return False


def _silent(dog: Beat) -> str:
    return f"the watchdog (process {dog.pid}) has not ticked for {dog.age:.0f} s"


def _say_version(operator: Operator, io: Io) -> None:
    view = read_view(operator.house.state_dir, operator.world.disk.read) or {}
    if (runs := view.get("version", "")) not in {"", __version__}:
        said = f"the watchdog runs version {runs}, this engine is {__version__}"
        io.warn(f"{said}: run `agents.py restart watchdog`")


# --- --install -----------------------------------------------------------------------------------------


def _install(config: str, prefix: str, io: Io, *, only_print: bool, as_json: bool) -> int:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    folder = os.path.join(home, "systemd", "user")
    name = f"fleet-{prefix.rstrip('-_')}"
    ensure = " ".join(map(_quote, engine.command("ensure", "--config", config)))
    words = {"config": _quote(config), "ensure": ensure}
    files = {f"{name}.service": UNIT.format(**words), f"{name}.timer": TIMER.format(**words)}
    files = {os.path.join(folder, file): text for file, text in files.items()}
    if only_print and not as_json:
        for path, text in files.items():
            io.print(f"# {path}\n{text}")
    elif not only_print:
        os.makedirs(folder, exist_ok=True)
        for path, text in files.items():
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            io.note(f"wrote {path}")
    if as_json:
        io.json({"written": not only_print, "files": files})
    if only_print:
        return 0
    commands = (
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "--now", f"{name}.timer"],
    )
    if shutil.which("systemctl") is None:
        io.warn(
            "systemctl is not here: on a machine with systemd run: "
            + " && ".join(" ".join(c) for c in commands)
        )
        return 1
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        if done.returncode:
            io.error(
                f"{' '.join(command)}: {done.stderr.strip()}", hint="loginctl enable-linger, then try again"
            )
            return 1
    io.note("to have it run without being logged in: loginctl enable-linger")
    return 0


def _quote(path: str) -> str:
    """For systemd: in double quotes, with its own specifiers doubled."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'
