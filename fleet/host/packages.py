"""The machine's own package manager: the one line that installs what is missing, and whether we may run it.

Nothing is installed unless the caller asks for it. Without the rights to do it, the line is printed.

    python -m fleet.host.packages tmux git venv     if one of these is missing, install all that is
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

TMUX, GIT, VENV = "tmux", "git", "venv"
NEEDS = {TMUX: "tmux 3.2 or newer", GIT: "git", VENV: "Python's venv module"}


class Manager(NamedTuple):
    """How a package manager is asked. Package lists that it does not fetch itself are fetched first."""

    program: str
    install: tuple[str, ...]
    update: tuple[str, ...] = ()
    venv: str = ""  # the package of ensurepip, for Python 3.{minor}; "" where it is part of Python's own
    prefix: str = ""  # before each package
    by_root: bool = True


# The first one found is the machine's: what a distribution brings along stands before what a user adds to it.
MANAGERS = (
    Manager("apt-get", ("install", "-y"), ("update",), "python3.{minor}-venv"),
    Manager("dnf", ("install", "-y")),
    Manager("yum", ("install", "-y")),
    Manager("apk", ("add", "--update-cache")),
    Manager("pacman", ("-Sy", "--noconfirm", "--needed")),
    Manager("zypper", ("--non-interactive", "install")),
    Manager("brew", ("install",), by_root=False),
    Manager(
        "nix",
        ("--extra-experimental-features", "nix-command flakes", "profile", "install"),
        prefix="nixpkgs#",
        by_root=False,
    ),
)


def has(program: str) -> bool:
    """Is it on PATH?"""
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.get_exec_path())


def lacking() -> list[str]:
    """What the two commands of the README need and this machine does not have."""
    missing = [tool for tool in (TMUX, GIT) if not has(tool)]
    if importlib.util.find_spec("ensurepip") is None and not has("uv"):
        missing.append(VENV)
    return missing


def commands(needs: Sequence[str]) -> list[list[str]]:
    """What installs them, in order; with sudo where root is needed, we are not, and sudo is there."""
    for manager in MANAGERS:
        if has(manager.program):
            break
    else:
        return []
    names = [
        manager.venv.format(minor=sys.version_info[1]) if need == VENV else manager.prefix + need
        for need in needs
        if need != VENV or manager.venv
    ]
    if not names:
        return []
    sudo = ["sudo"] if manager.by_root and os.geteuid() and has("sudo") else []
    update = [[*sudo, manager.program, *manager.update]] if manager.update else []
    return [*update, [*sudo, manager.program, *manager.install, *names]]


def install_line(needs: Sequence[str]) -> str:
    """The same as one line for a shell; "" when no manager is known."""
    return " && ".join(map(shlex.join, commands(needs)))


def advice(*found_missing: str) -> str:
    """How everything that is missing here, these at least, gets installed: who, and the line."""
    found = {*found_missing, *lacking()}
    needs = [need for need in NEEDS if need in found]
    line = install_line(needs)
    if not line:
        return f"install {named(needs)}"
    how = "run as root" if _needs_root(line) else "run"
    return f"{how}: {line}"


def named(needs: Sequence[str]) -> str:
    """The words a person knows them by."""
    words = [NEEDS[need] for need in needs]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def may_run(steps: Sequence[Sequence[str]]) -> bool:
    """Whether the steps would run without asking a person for a password."""
    if not steps or _needs_root(steps[0][0]):
        return False
    if steps[0][0] != "sudo":
        return True
    return subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0


def install(needs: Sequence[str]) -> str:
    """Install them; "" or the reason why not, which ends with the line for a person to run."""
    steps = commands(needs)
    if not steps:
        return f"missing here: {named(needs)}; no package manager is known to have it: install it by hand"
    line = install_line(needs)
    if not may_run(steps):
        who = "as root" if _needs_root(line) else "yourself: it asks for your password"
        return f"missing here: {named(needs)}. Run this one line {who}, then try again:\n  {line}"
    for step in steps:
        argv = [step[0], "-n", *step[1:]] if step[0] == "sudo" else step
        # Its words go to stderr: stdout belongs to the verb.
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=2, env=environ, check=False).returncode
        if code:
            return f"`{shlex.join(argv)}` failed with code {code}; when that is mended:\n  {line}"
    return ""


def _needs_root(line: str) -> bool:
    """Whether this is for another user than we are."""
    by_root = {manager.program for manager in MANAGERS if manager.by_root}
    return bool(os.geteuid()) and line.partition(" ")[0] in by_root


def main(wanted: Sequence[str]) -> int:
    """When one of these is missing, everything that is missing gets installed: one round, not three."""
    missing = lacking()
    if not set(wanted) & set(missing):
        return 0
    trouble = install(missing)
    if trouble:
        sys.stderr.write(f"error: {trouble}\n")
        return 2
    importlib.invalidate_caches()
    if still := set(wanted) & set(lacking()):
        sys.stderr.write(f"error: installed, but still not found: {named(sorted(still))}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
