"""Check this machine and this fleet; every line that is not ok says how to mend it.

Looks only, unless --install-tmux is given: that installs a missing tmux or git through the machine's
package manager, if it can be done without a password.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fleet import __version__, bootstrap
from fleet.cli.common import ENGINE, Io, config_path
from fleet.cli.version import answer, commit
from fleet.core.model import AgentSpec, Fleet
from fleet.world import packages
from fleet.world.ports import Unavailable
from fleet.world.tmux import OLDEST, parse_version, resolve_socket

LITTLE, TOO_LITTLE = 1 << 30, 100 << 20  # bytes free: worth a warning, not enough to go on
LIBRARIES = ("watchfiles", "git", "dateutil", "tomli_w", "libtmux")
COLOUR = {"ok": "green", "warn": "yellow", "fail": "red"}


class Check(NamedTuple):
    """One thing that was looked at."""

    level: str  # ok, warn, fail
    what: str
    detail: str
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to mend."""
    parser.add_argument(
        "--install-tmux", action="store_true", help="install tmux and git if they are missing"
    )


def run(args: argparse.Namespace, io: Io) -> int:
    """0 when nothing fails; warnings are advice."""
    if args.install_tmux:
        lacking = [tool for tool in ("tmux", "git") if not shutil.which(tool)]
        trouble = packages.install(lacking) if lacking else ""
        if trouble:
            io.error(trouble)
    checks = [*machine(), *declared(args, io)]
    failed = any(check.level == "fail" for check in checks)
    if args.json:
        io.json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    else:
        for check in checks:
            io.print(f"{io.paint(f'{check.level:<4}', COLOUR[check.level])}  {check.what}: {check.detail}")
            if check.fix and check.level != "ok":
                io.print(f"      -> {check.fix}")
    return 1 if failed else 0


def machine() -> Iterator[Check]:
    """What every fleet needs."""
    yield Check("ok", "engine", f"{__version__} {commit() or ''} in {ENGINE}".replace("  ", " "))
    yield Check("ok", "python", f"{platform.python_version()} ({sys.executable})")
    yield tmux_itself()
    version = answer(["git", "--version"]).removeprefix("git version ")
    install = shlex.join(packages.install_command(["git"])) or "install git"
    yield Check("ok", "git", version) if version else Check("fail", "git", "not found", install)
    yield libraries()


def tmux_itself() -> Check:
    """There, and new enough."""
    said = answer(["tmux", "-V"])
    install = shlex.join(packages.install_command(["tmux"])) or "install tmux"
    if not said:
        return Check("fail", "tmux", "not found", f"{install}   (or: agents.py doctor --install-tmux)")
    try:
        parse_version(said)
    except Unavailable:
        oldest = ".".join(map(str, OLDEST))
        return Check("fail", "tmux", f"{said} is older than {oldest}", f"install tmux {oldest} or newer")
    return Check("ok", "tmux", said.removeprefix("tmux "))


def libraries() -> Check:
    """Importable, or ready beside us; everything that only asks works without."""
    lacking = bootstrap.missing(LIBRARIES)
    if not lacking:
        return Check("ok", "libraries", "importable")
    if python := bootstrap.ready("base"):
        return Check("ok", "libraries", f"in {os.path.dirname(os.path.dirname(python))}")
    if bootstrap.failed_recently("base", ENGINE):
        detail = "setting up .venv failed within the last hour"
    else:
        detail = f"not set up yet ({', '.join(lacking)})"
    return Check("warn", "libraries", detail, f"{sys.executable} {ENGINE}/fleet/bootstrap.py")


def declared(args: argparse.Namespace, io: Io) -> Iterator[Check]:
    """What this fleet needs; a machine without a fleet is fine."""
    from fleet import config

    try:
        path = config_path(args, io)
    except config.ConfigError:
        yield Check("warn", "config", "there is no agents.toml here", "agents.py init makes a starter")
        return
    try:
        fleet = config.load(path, strict=True)
    except config.ConfigError as wrong:
        for line in wrong.lines():
            yield Check("fail", "config", line, "agents.py validate --explain KEY tells what a key means")
        return
    yield Check("ok", "config", path)
    for warning in fleet.warnings:
        yield Check("warn", "config", warning, "agents.py validate --explain KEY tells what a key means")
    for check in (log_dir, space, socket, watchdog):
        yield check(fleet)
    yield from binaries(fleet)
    for agent in fleet.agents:
        if agent.enabled and not os.path.isdir(agent.dir) and not agent.clone:
            yield Check(
                "fail", f"agent {agent.name}", f"directory {agent.dir} is missing", "make it, or set `dir`"
            )


def log_dir(fleet: Fleet) -> Check:
    """Private and writable: it holds prompts and everything the agents printed."""
    path = fleet.log_dir
    if os.path.lexists(path) and not os.path.isdir(path):
        return Check("fail", "log_dir", f"{path} is not a directory", "remove it, or choose another log_dir")
    if not os.path.exists(path):
        above = path
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if os.access(above, os.W_OK | os.X_OK):
            return Check("ok", "log_dir", f"{path} (made by the first up)")
        return Check(
            "fail", "log_dir", f"{above} cannot be written", "choose another log_dir, or change its owner"
        )
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not os.access(path, os.W_OK | os.X_OK):
        return Check(
            "fail", "log_dir", f"{path} cannot be written", f"chown {os.getuid()} {shlex.quote(path)}"
        )
    if mode & 0o077:
        return Check("warn", "log_dir", f"{path} has mode {mode:04o}", f"chmod 700 {shlex.quote(path)}")
    if loose := next((p for p in ancestors(path) if open_to_others(p)), ""):
        return Check("warn", "log_dir", f"others may write to {loose}", f"chmod go-w {shlex.quote(loose)}")
    return Check("ok", "log_dir", path)


def ancestors(path: str) -> Iterator[str]:
    """Every directory above."""
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def open_to_others(path: str) -> bool:
    """Writable by group or world, and not protected as /tmp is."""
    mode = os.stat(path).st_mode
    return bool(mode & 0o022) and not mode & stat.S_ISVTX


def space(fleet: Fleet) -> Check:
    """Logs and state need room."""
    path = next(p for p in (fleet.log_dir, *ancestors(fleet.log_dir)) if os.path.exists(p))
    free = shutil.disk_usage(path).free
    level = "fail" if free < TOO_LITTLE else "warn" if free < LITTLE else "ok"
    return Check(
        level, "disk", f"{free / (1 << 30):.1f} GB free in {path}", "free some space, or move log_dir"
    )


def socket(fleet: Fleet) -> Check:
    """Tmux refuses a socket directory that is not its user's alone."""
    folder = os.path.dirname(resolve_socket(fleet.tmux_socket))
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return Check("ok", "tmux socket", f"{folder} (made by the first up)")
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        fix = f"chmod 700 {shlex.quote(folder)}, or set TMUX_TMPDIR to a directory of yours"
        return Check("fail", "tmux socket", f"{folder} is not private to this user", fix)
    return Check("ok", "tmux socket", f"{folder}/{fleet.tmux_socket}")


def watchdog(fleet: Fleet) -> Check:
    """Somebody should be looking after a fleet that was brought up."""
    from fleet.journal.locks import watchdog_holder

    state = os.path.join(fleet.log_dir, "state")
    if not os.path.isdir(state):
        return Check("ok", "watchdog", "the fleet was never up")
    held = watchdog_holder(state)
    if held is None:
        return Check("warn", "watchdog", "not running: nothing is healed", "agents.py up")
    return Check("ok", "watchdog", f"running, pid {held.pid}")


def binaries(fleet: Fleet) -> Iterator[Check]:
    """The programs that the agents run."""
    users: dict[str, list[AgentSpec]] = {}
    for agent in fleet.agents:
        users.setdefault(agent.backend, []).append(agent)
    for name, agents in users.items():
        program = first_word(fleet.backend_of(agents[0]).bin)
        found = shutil.which(os.path.expanduser(program)) if program else ""
        if found:
            yield Check("ok", f"backend {name}", found)
        elif found is None:
            level = "fail" if any(agent.enabled for agent in agents) else "warn"
            fix = f"install it, or set `bin` in [backend.{name}]"
            yield Check(level, f"backend {name}", f"{program} is not on PATH", fix)


def first_word(command: str) -> str:
    """The program of a command, or "" where only a shell could tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    simple: Callable[[str], bool] = lambda word: not set(word) & set("$`;|&()<>=*?{")  # noqa: E731
    builtin = {
        "echo",
        "exec",
        "cd",
        "exit",
        "printf",
        "test",
        "[",
        "while",
        "if",
        "for",
        "trap",
        "set",
        "export",
    }
    return words[0] if words and simple(words[0]) and words[0] not in builtin else ""
