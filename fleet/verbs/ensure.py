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

from fleet import engine
from fleet.core.desired import Want
from fleet.core.words import EventType, WatchdogState
from fleet.host.locks import pulse
from fleet.store.wishes import wants
from fleet.supervisor.operator import Operator, watchdog_argv
from fleet.verbs.common import Io
from fleet.verbs.fleets import require_trust, running_fleet

GROUP = "run"

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How."""
    parser.add_argument(
        "--install", action="store_true", help="write a systemd user unit and timer, and enable it"
    )
    parser.add_argument(
        "--print", action="store_true", help="with --install: print the files instead of writing them"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """Start the watchdog if it should run and does not. Exit 1 when it could not be started."""
    fleet = running_fleet(args, io)
    require_trust(fleet)
    if args.install:
        return _install(fleet.config_path, fleet.session_prefix, io, only_print=args.print, as_json=args.json)
    state_dir = os.path.join(fleet.log_dir, "state")
    dog = pulse(state_dir, fleet.watchdog.signal_interval, io.clock.wall())
    wanted = wants(state_dir)
    if not any(wanted.get(m.name) == Want.UP for m in fleet.members):
        idle = "nothing to do: every agent and service is down (`agents.py up` starts the fleet)"
        return _say(io, idle, "idle", 0, as_json=args.json)
    if dog.state is WatchdogState.RUNNING:
        return _say(io, f"the watchdog runs (pid {dog.pid})", "running", 0, as_json=args.json)
    operator = Operator(fleet)
    operator.end_strays()
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
    if only_print:
        return _files(io, files, written=False) if as_json else 0
    os.makedirs(folder, exist_ok=True)
    for path, text in files.items():
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        io.note(f"wrote {path}")
    if as_json:
        _files(io, files, written=True)
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


def _files(io: Io, files: dict[str, str], *, written: bool) -> int:
    io.json({"written": written, "files": files})
    return 0


def _quote(path: str) -> str:
    """For systemd: in double quotes, with its own specifiers doubled."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'
