"""The libraries we may use, made available without asking the user to install anything.

Order: importable here -> nothing to do; a `.venv` beside agents.py whose stamp matches -> exec its
Python; otherwise build that `.venv` once, from a lock with digests, and exec it. The stamp is a hash
of lock, Python and platform, so a changed lock or another Python means a new environment. An installed
package builds nothing: pip brought its libraries, and the command that adds a missing one is named.

The environment is built in a directory of its own under a lock and renamed into place, so it is there
in whole or not at all and two starts at once build it once. A renamed environment has stale paths in its
scripts; nothing of ours uses them: it is always `.venv/bin/python -m something`.

An environment that we did not build is never replaced. Standard library only.

A build that failed is remembered with its reason, for `doctor` to tell. It keeps a later start from trying
again only while an index that could not be reached still cannot be; that takes a second to ask.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

if __name__ == "__main__":  # run by its path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from fleet import engine, umask
from fleet.host import packages
from fleet.host.locks import alone
from fleet.ports import LockError

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
STAMP = "fleet-stamp"
SETS = ("base", "full", "dev")  # each lock holds everything of the ones before it
LOCKS = {"base": "requirements.lock", "full": "requirements-full.lock", "dev": "requirements-dev.lock"}
EXTRAS = {"rich": "top", "textual": "top", "apprise": "notify"}  # with pip; all other modules are base
ENTERED = "AO_ENTERED"  # set across the exec: a Python that lacks the module even there must not loop
REACH_S = 1.5  # for an index that could not be reached: whether it can be now
OFFLINE = (
    "Connection",
    "Temporary failure",
    "timed out",
    "Network is unreachable",
    "No matching distribution",
)

Run = Callable[[Sequence[str]], "tuple[int, str]"]


class CannotBuild(Exception):
    """Why the environment could not be made, and what to do about it."""

    def __init__(self, text: str, address: str = "") -> None:
        super().__init__(text)
        self.address = address  # host:port that could not be reached


def missing(modules: Sequence[str]) -> list[str]:
    """Those of the modules that this interpreter cannot import."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


def enter(
    modules: Sequence[str], wanted: str = "base", *, optional: bool = False, build: bool = True
) -> None:
    """Return if the modules are importable here; else continue this very command inside `.venv`.

    With `optional` the command goes on without them, saying so once, when they cannot be had. Without `build`
    that is so, and needs no word, when there is no `.venv` that holds them.
    """
    entered = os.environ.pop(ENTERED, "")  # for this process only; our children decide for themselves
    lacking = missing(modules)
    if not lacking:
        return
    if engine.INSTALLED:  # pip brought our libraries: nothing is built among its packages
        advice = f"not installed; to add what is missing: {pip_line(lacking)}"
        if not optional:
            raise CannotBuild(f"{', '.join(lacking)}: {advice}")
        say(f"going on without {', '.join(lacking)}: {advice}")
        return
    if entered:
        if optional:
            return
        raise CannotBuild(f"{venv_dir()} was built but lacks {', '.join(lacking)}: remove it and try again")
    try:
        python = ensure(wanted, patient=not optional) if build else ready(wanted)
    except CannotBuild as fault:
        if not optional:
            raise
        say(f"going on without {', '.join(lacking)}: {fault}")
        return
    if not python:
        return
    os.environ[ENTERED] = "1"
    if wheels := wheels_dir():
        os.environ["AO_WHEELS"] = wheels  # a relative one means this directory, also to what runs elsewhere
    if sys.stdout is not None:  # who calls us may have closed it
        sys.stdout.flush()
    if umask.operators != umask.UNKNOWN:
        os.umask(umask.operators)  # the launcher sets ours again
    os.execv(python, [python, *sys.orig_argv[1:]])


def pip_line(lacking: Sequence[str]) -> str:
    """The command that adds missing modules to an installed package."""
    extras = sorted({EXTRAS[name] for name in lacking if name in EXTRAS})
    what = engine.PROJECT + (f"[{','.join(extras)}]" if extras else "")
    return shlex.join([sys.executable, "-m", "pip", "install", what])


def ensure(wanted: str = "base", *, home: str = HOME, patient: bool = True) -> str:
    """The Python of an environment that holds the wanted set; builds it if there is none."""
    target = venv_dir(home)
    if python := ready(wanted, home=home):
        return python
    if not patient and (why := still_closed(wanted, home)):
        raise CannotBuild(f"as before, {why}")
    with locked(target):
        if python := ready(wanted, home=home):  # another start built it while we waited
            return python
        if os.path.lexists(target) and not os.path.exists(os.path.join(target, STAMP)):
            raise CannotBuild(
                f"{target} is not ours to replace: activate it, move it away, or set AO_VENV to another path"
            )
        say(f"setting up {target} from {LOCKS[wanted]} (once; needs the network or AO_WHEELS)")
        try:
            build(wanted, home=home)
        except CannotBuild as fault:
            remember_failure(wanted, home, fault)
            raise
        say("ready")
    return python_of(target)


def ready(wanted: str, *, home: str = HOME) -> str:
    """The environment's Python if its stamp is that of the wanted set or of a larger one, else ""."""
    if engine.INSTALLED:  # there is no lock to compare a stamp with
        return ""
    target = venv_dir(home)
    python = python_of(target)
    with contextlib.suppress(OSError), open(os.path.join(target, STAMP), encoding="ascii") as file:
        found = file.read().strip()
        if any(found == stamp(name, home) for name in SETS[SETS.index(wanted) :]) and os.access(
            python, os.X_OK
        ):
            return python
    return ""


def stamp(name: str, home: str = HOME) -> str:
    """What an environment must have been built from to be used."""
    try:
        with open(os.path.join(home, LOCKS[name]), "rb") as file:
            lock = file.read()
    except OSError as fault:
        raise CannotBuild(
            f"{LOCKS[name]} cannot be read: {fault.strerror}; the checkout is incomplete"
        ) from fault
    machine = f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"
    return hashlib.sha256(lock + b"\0" + machine.encode()).hexdigest()


def build(wanted: str, *, home: str = HOME, run: Run | None = None) -> None:
    """Make the environment beside its place and rename it there. The caller holds the lock."""
    run = run or quietly
    target = venv_dir(home)
    parent = os.path.dirname(target)
    prefix = os.path.basename(target) + "-build-"
    for name in os.listdir(parent):  # left by a start that was killed; we hold the lock: it is unused
        if name.startswith(prefix):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    fresh = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        install(fresh, os.path.join(home, LOCKS[wanted]), run)
        with open(os.path.join(fresh, STAMP), "w", encoding="ascii") as file:
            file.write(stamp(wanted, home) + "\n")
        replace(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def install(into: str, lock: str, run: Run) -> None:
    """`uv` when it is there and works, else venv and pip. Digests are checked either way."""
    wheels = wheels_dir()
    if wheels and not os.path.isdir(wheels):
        asked = os.path.basename(lock)
        raise CannotBuild(f"AO_WHEELS={wheels} is no directory: put the wheels of {asked} there")
    source = ["--no-index", "--find-links", wheels] if wheels else []
    python = python_of(into)
    uv = shutil.which("uv")
    if uv:
        code, _ = run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, into])
        if code == 0:
            args = ["pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", lock, *source]
            code, _ = run([uv, *args])
        if code == 0:
            return
        say("uv could not do it; trying pip")
    if missing(["venv", "ensurepip"]):
        raise CannotBuild(
            f"{sys.executable} has no venv module; put uv on PATH, or {packages.advice(packages.VENV)}"
        )
    code, said = run([sys.executable, "-m", "venv", "--clear", into])
    if code:
        raise CannotBuild(f"python -m venv failed: {last_line(said)}")
    args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    code, said = run([python, *args, "--require-hashes", "-r", lock, *source])
    if code:
        raise explain_pip(said, wheels, os.path.basename(lock))


def wheels_dir() -> str:
    """Where the wheels are for a machine without a network; "" when they come from an index."""
    wheels = os.environ.get("AO_WHEELS", "")
    return os.path.abspath(wheels) if wheels else ""


def explain_pip(said: str, wheels: str, lock: str) -> CannotBuild:
    """The many words of pip in one sentence that says what to do."""
    if wheels:
        return CannotBuild(
            f"AO_WHEELS={wheels} does not hold what {lock} asks for (pip download -d fetches it on a machine "
            f"with a network, for the same Python): {last_line(said)}"
        )
    if any(word in said for word in OFFLINE):
        return CannotBuild(
            "the package index could not be reached or lacks a version: connect once, set the proxy or index "
            f"that pip uses, or put the wheels into a directory and set AO_WHEELS ({last_line(said)})",
            address_of(said),
        )
    return CannotBuild(f"pip failed: {last_line(said)}")


def address_of(said: str) -> str:
    """The host:port that pip could not reach: the proxy's if there is one, else the index's, or ""."""
    index = re.search(r"host='([^']+)', port=(\d+)", said)
    if proxy := getproxies().get("https", ""):
        at = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        return f"{at.hostname}:{at.port}" if at.hostname and at.port else ""
    return f"{index[1]}:{index[2]}" if index and "proxy" not in said.lower() else ""


def replace(fresh: str, target: str) -> None:
    """Put the new environment into its place; the old one, ours by its stamp, goes away after."""
    old = f"{fresh}-old"
    if os.path.lexists(target):
        os.rename(target, old)
    os.rename(fresh, target)
    shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(f"{target}.failed")


def last_failure(home: str = HOME) -> dict[str, Any]:
    """The build that failed last, if none succeeded since: `why`, `at`, `address`, and what it was `of`."""
    with contextlib.suppress(OSError, ValueError), open(f"{venv_dir(home)}.failed", encoding="utf-8") as file:
        kept = json.load(file)
        if isinstance(kept, dict) and {"why", "at", "address", "of"} <= kept.keys():
            return kept
    return {}


def still_closed(wanted: str, home: str) -> str:
    """Why a build failed, if the same one would fail again: the index cannot be reached, then and now."""
    kept = last_failure(home)
    address = str(kept.get("address", ""))
    same = address and kept["of"] == attempt(wanted, home)
    return str(kept["why"]) if same and not reachable(address) else ""


def reachable(address: str) -> bool:
    """Whether a host:port answers, asked with little patience: a name that is not resolved can take long."""
    answered = threading.Event()

    def reach() -> None:
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError, ValueError):
            socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
            answered.set()

    asking = threading.Thread(target=reach, daemon=True)
    asking.start()
    asking.join(REACH_S)
    return answered.is_set()


def attempt(wanted: str, home: str) -> str:
    """What a build depends on that is quickly compared: the lock, this Python, and the user's settings."""
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.upper().startswith(("PIP_", "UV_", "AO_WHEELS")) or name.upper().endswith("_PROXY")
    )
    return hashlib.sha256("\0".join((stamp(wanted, home), *settings)).encode(errors="replace")).hexdigest()


def remember_failure(wanted: str, home: str, fault: CannotBuild) -> None:
    """So that `doctor` can say why, and an offline machine does not wait for the network at every `up`."""
    kept = {"why": str(fault), "at": time.time(), "address": fault.address, "of": attempt(wanted, home)}
    path = f"{venv_dir(home)}.failed"
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file)


@contextlib.contextmanager
def locked(target: str) -> Iterator[None]:
    """One builder at a time; the kernel lets go of the lock however we end."""
    with contextlib.ExitStack() as held:
        try:
            waiting = "another start is setting up the libraries; waiting for it"
            held.enter_context(alone(f"{target}.lock", lambda: say(waiting)))
        except LockError as fault:
            why = fault.__cause__.strerror if isinstance(fault.__cause__, OSError) else str(fault)
            raise CannotBuild(f"{os.path.dirname(target)} cannot be written ({why}): set AO_VENV") from fault
        yield


def venv_dir(home: str = HOME) -> str:
    """Beside agents.py, unless the user says otherwise."""
    return os.path.abspath(os.environ.get("AO_VENV") or os.path.join(home, ".venv"))


def python_of(venv: str) -> str:
    """The interpreter inside an environment."""
    return os.path.join(venv, "bin", "python")


def quietly(argv: Sequence[str]) -> tuple[int, str]:
    """Run to the end; the exit code and everything it said."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout + done.stderr


def last_line(text: str) -> str:
    """What a tool said last is usually why it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "notice" not in line.lower()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1][:300]


def say(text: str) -> None:
    """To stderr: stdout belongs to the verb."""
    if sys.stderr is not None:
        sys.stderr.write(f"{engine.AGENTS}: {text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    try:
        print(ensure(sys.argv[1] if len(sys.argv) > 1 else "base"))
    except CannotBuild as fault:
        sys.exit(f"error: {fault}")
