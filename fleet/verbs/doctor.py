"""Check this machine and this fleet.

Every line that is not ok says how to fix it. `doctor` changes nothing, unless --install-tmux is
given: that installs a missing tmux, git or venv module of Python with the system's package manager,
if it can do so without a password. A tmux version that the contract suite never ran with is a
warning.

Example: agents.py doctor
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from fleet import __version__, bootstrap, config, engine
from fleet.core.model import Fleet, Member
from fleet.core.words import WatchdogState
from fleet.host import packages
from fleet.host.descriptors import EXTRA, needed
from fleet.host.locks import pulse
from fleet.host.processes import ProcTable
from fleet.host.tmux.client import resolve_socket
from fleet.host.tmux.dialects import OLDEST, PROVED, Confidence, standing
from fleet.host.tmux.server import server_of
from fleet.host.trust import untrusted
from fleet.ports import Unavailable
from fleet.supervisor.operator import short_of
from fleet.verbs.arguments import flag
from fleet.verbs.fleets import config_path
from fleet.verbs.io import Io
from fleet.verbs.up import crowd, widening
from fleet.verbs.version import answer, commit

GROUP = "set up"

LITTLE, TOO_LITTLE = 1 << 30, 100 << 20  # bytes free: worth a warning, not enough to go on
LIBRARIES = ("watchfiles", "git", "dateutil", "tomli_w", "libtmux", "msgspec")
# Of a shell: not programs.
BUILTIN = {"echo", "exec", "cd", "exit", "printf", "test", "[", "while", "if", "for", "trap", "set", "export"}
LOOK_S = 60.0  # for a look into all repositories


class Level(StrEnum):
    """How a check went. A warning is advice."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


COLOUR = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


class Check(NamedTuple):
    """One thing that was looked at."""

    level: Level
    what: str
    detail: str
    fix: str = ""


ok, warn, fail = (partial(Check, level) for level in Level)


ARGUMENTS = (flag("--install-tmux", "install tmux, git and Python's venv module if they are missing"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """0 when nothing fails; warnings are advice."""
    if args.install_tmux:
        lacking = packages.lacking()
        trouble = packages.install(lacking) if lacking else ""
        if trouble:
            io.error(trouble)
    checks = [*machine(), *declared(args, io)]
    failed = any(check.level is Level.FAIL for check in checks)
    if args.json:
        io.json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    else:
        for check in checks:
            io.paragraph(f"{check.what}: {check.detail}", f"{check.level:<6}", COLOUR[check.level])
            if check.fix and check.level is not Level.OK:
                io.paragraph(check.fix, "      -> ")
    return 1 if failed else 0


def machine() -> Iterator[Check]:
    """What every fleet needs."""
    yield ok("engine", f"{__version__} {commit() or ''} in {engine.HOME}".replace("  ", " "))
    yield ok("python", f"{platform.python_version()} ({sys.executable})")
    yield tmux_itself()
    version = answer(["git", "--version"]).removeprefix("git version ")
    if version:
        yield ok("git", version)
    else:
        yield fail("git", "not found", packages.advice(packages.GIT))
    yield libraries()


def tmux_itself() -> Check:
    """There, and new enough."""
    said = answer(["tmux", "-V"])
    if not said:
        return fail("tmux", "not found", packages.advice(packages.TMUX))
    how = standing(said)
    version = said.removeprefix("tmux ")
    if how is Confidence.TOO_OLD:
        oldest = ".".join(map(str, OLDEST))
        return fail("tmux", f"{said} is older than {oldest}", f"install tmux {oldest} or newer")
    if how is Confidence.PROVED:
        return ok("tmux", version)
    fix = f"proved are {', '.join(PROVED)}; `tests/run.sh contract` tries the one that is here"
    return warn("tmux", f"{version}: {how}", fix)


def libraries() -> Check:
    """Importable, or ready beside us; everything that only asks works without."""
    lacking = bootstrap.missing(LIBRARIES)
    if not lacking:
        return ok("libraries", "importable")
    if python := bootstrap.ready("base"):
        return ok("libraries", f"in {os.path.dirname(os.path.dirname(python))}")
    detail = f"not set up yet ({', '.join(lacking)})"
    if failed := bootstrap.last_failure():
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(failed["at"]))
        detail += f"; the last try, {at}, failed: {failed['why']}"
    return warn("libraries", detail, setting_up(lacking))


def setting_up(lacking: list[str]) -> str:
    """The command that sets the libraries up."""
    if engine.INSTALLED:
        return bootstrap.pip_line(lacking)
    if packages.VENV in packages.lacking():
        return packages.advice()
    return f"cd {shlex.quote(engine.HOME)} && {shlex.quote(sys.executable)} -m fleet.bootstrap"


def declared(args: argparse.Namespace, io: Io) -> Iterator[Check]:
    """What this fleet needs; a machine without a fleet is fine."""
    try:
        path = config_path(args, io)
    except config.ConfigError:
        yield warn("config", "there is no agents.toml here", "agents.py init makes a starter")
        return
    try:
        fleet = config.load(path, strict=True)
    except config.ConfigError as wrong:
        for line in wrong.lines():
            yield fail("config", line, "agents.py validate --explain KEY explains a key")
        return
    if found := untrusted(path):
        yield fail("config", f"{found}; `up` refuses it", found.fix)
    else:
        yield ok("config", path)
    for warning in fleet.warnings:
        yield warn("config", warning, "agents.py validate --explain KEY explains a key")
    for check in (log_dir, space, socket, server, open_files):
        yield check(fleet)
    yield watchdog(fleet, io.clock.wall())
    yield from binaries(fleet)
    yield from repositories(fleet)
    yield from targets(fleet)
    for agent in fleet.agents:
        if agent.enabled and not os.path.isdir(agent.dir) and not agent.clone:
            yield fail(f"agent {agent.name}", f"directory {agent.dir} is missing", "make it, or set `dir`")


def repositories(fleet: Fleet) -> Iterator[Check]:
    """Whether work can be handed over in the repositories as they are now; GitPython looks."""
    clones = {
        a.name: a.dir
        for a in fleet.agents
        if a.enabled and (a.clone or a.is_loop) and os.path.lexists(os.path.join(a.dir, ".git"))
    }
    handoff = fleet.loop.handoff if fleet.loop else None
    repo = handoff.repo if handoff and os.path.isdir(handoff.repo) else ""
    if not clones and not repo:
        return
    python = sys.executable if not bootstrap.missing(("git",)) else bootstrap.ready("base")
    if not python:
        detail = f"{len(clones) + bool(repo)} not checked: GitPython is not installed"
        yield warn("repositories", detail, setting_up(["git"]))
        return
    question = {"clones": clones, "repo": repo, "branch": handoff.branch if handoff else ""}
    found, why = looked_into(python, question)
    if why:
        yield warn("repositories", f"could not be read: {why}", "git status in each of them")
    for doubt in found:
        level = Level.FAIL if doubt["fatal"] else Level.WARN
        yield Check(level, str(doubt["who"]), str(doubt["detail"]), str(doubt["fix"]))
    if not found and not why:
        count = len({*clones.values(), repo} - {""})
        yield ok("repositories", f"{count} can hand over")


def looked_into(python: str, question: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """What a child with the library says of them, or why it says nothing."""
    environ = {**os.environ, "PYTHONPATH": engine.BESIDE, "PYTHONSAFEPATH": "1"}
    words = [python, "-m", "fleet.host.repos"]
    try:
        done = subprocess.run(
            words, input=json.dumps(question), capture_output=True, text=True, env=environ, timeout=LOOK_S,
            check=False,
        )  # fmt: skip
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as fault:
        return [], str(fault)
    if not isinstance(found, list):
        return [], bootstrap.last_line(done.stderr)
    return found, ""


def log_dir(fleet: Fleet) -> Check:
    """Private and writable: it holds prompts and everything the agents printed."""
    path = fleet.log_dir
    if os.path.lexists(path) and not os.path.isdir(path):
        return fail("log_dir", f"{path} is not a directory", "remove it, or choose another log_dir")
    if not os.path.exists(path):
        above = _existing(path)
        if os.access(above, os.W_OK | os.X_OK):
            return ok("log_dir", f"{path} (made by the first up)")
        return fail("log_dir", f"{above} cannot be written", "choose another log_dir, or change its owner")
    if found := untrusted(os.path.join(path, "state")):
        return fail("log_dir", f"{found}; `up` refuses it", found.fix)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not os.access(path, os.W_OK | os.X_OK):
        return fail("log_dir", f"{path} cannot be written", f"chown {os.getuid()} {shlex.quote(path)}")
    if mode & 0o077:
        return warn("log_dir", f"{path} has mode {mode:04o}", f"chmod 700 {shlex.quote(path)}")
    return ok("log_dir", path)


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def space(fleet: Fleet) -> Check:
    """Logs and state need room."""
    path = _existing(fleet.log_dir)
    free = shutil.disk_usage(path).free
    level = Level.WARN if free < LITTLE else Level.OK
    if free < TOO_LITTLE:
        level = Level.FAIL
    return Check(
        level, "disk", f"{free / (1 << 30):.1f} GB free in {path}", "free some space, or move log_dir"
    )


def socket(fleet: Fleet) -> Check:
    """Tmux refuses a socket directory that is not its user's alone."""
    folder = os.path.dirname(resolve_socket(fleet.tmux_socket))
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return ok("tmux socket", f"{folder} (made by the first up)")
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        fix = f"chmod 700 {shlex.quote(folder)}, or set TMUX_TMPDIR to a directory of yours"
        return fail("tmux socket", f"{folder} is not private to this user", fix)
    return ok("tmux socket", f"{folder}/{fleet.tmux_socket}")


def server(fleet: Fleet) -> Check:
    """One that does not answer is lost to every verb but `down`."""
    tmux = server_of(fleet.ground)
    try:
        found = tmux.listing().server
    except Unavailable as error:
        fix = "find out what stops it" if tmux.is_users else "agents.py down, then agents.py up"
        return fail("tmux server", str(error), fix)
    return ok("tmux server", f"answers, pid {found.pid}" if found else "not running")


def open_files(fleet: Fleet) -> Check:
    """A tmux server that runs out of them answers no verb any more."""
    tmux = server_of(fleet.ground)
    running = ProcTable().listener(tmux.path)
    pid = running.pid if running else 0
    sessions = sum(member.enabled for member in fleet.members) + EXTRA
    short = short_of(sessions, pid, ProcTable().allowance(pid), users=tmux.is_users)
    if short is None:
        return ok("open files", f"{needed(sessions)} are enough for {sessions} sessions")
    return fail("open files", f"{crowd(short)}: `up` refuses", widening(short, users=tmux.is_users))


def watchdog(fleet: Fleet, now: float) -> Check:
    """A fleet that should be up needs a running watchdog."""
    state = os.path.join(fleet.log_dir, "state")
    if not os.path.isdir(state):
        return ok("watchdog", "the fleet was never up")
    dog = pulse(state, fleet.watchdog.signal_interval, now)
    match dog.state:
        case WatchdogState.STOPPED:
            return warn("watchdog", "not running: no agent is restarted", "agents.py up")
        case WatchdogState.STALE:
            return warn("watchdog", f"no tick for {dog.age:.0f} s", "agents.py ensure")
        case WatchdogState.RUNNING:
            return ok("watchdog", f"running, pid {dog.pid}")


def binaries(fleet: Fleet) -> Iterator[Check]:
    """The programs that the agents run."""
    users: dict[str, list[Member]] = {}
    for agent in fleet.agents:
        users.setdefault(agent.backend, []).append(agent)
    for name, agents in users.items():
        program = first_word(fleet.backend_of(agents[0]).bin)
        found = shutil.which(os.path.expanduser(program)) if program else ""
        if found:
            yield ok(f"backend {name}", found)
        elif found is None:
            level = Level.FAIL if any(agent.enabled for agent in agents) else Level.WARN
            fix = f"install it, or set `bin` in [backend.{name}]"
            yield Check(level, f"backend {name}", f"{program} is not on PATH", fix)


def targets(fleet: Fleet) -> Iterator[Check]:
    """The variables that the targets of notifications need. The watchdog has those of the last `up`."""
    for target in fleet.notify:
        if target.url_env and not os.environ.get(target.url_env):
            yield warn("notify", f"the variable {target.url_env} is not set here", "export it before `up`")


def first_word(command: str) -> str:
    """The program of a command, or "" where only a shell could tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    plain = bool(words) and not set(words[0]) & set("$`;|&()<>=*?{")
    return words[0] if plain and words[0] not in BUILTIN else ""
