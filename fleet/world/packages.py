"""The machine's own package manager: which command would install tmux or git, and whether we may run it.

Nothing is installed unless a verb was told to; without the rights to do it we print the one command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

# The first manager found is the machine's. Each row: program, then the words before the package names.
MANAGERS = (
    ("apt-get", ("install", "-y")),
    ("dnf", ("install", "-y")),
    ("yum", ("install", "-y")),
    ("apk", ("add",)),
    ("pacman", ("-S", "--noconfirm", "--needed")),
    ("zypper", ("--non-interactive", "install")),
    ("brew", ("install",)),
)
UNPRIVILEGED = frozenset({"brew"})  # refuses to run as root


def install_command(packages: Sequence[str]) -> list[str]:
    """The one command, with sudo where root is needed and we are not; empty when no manager is known."""
    for program, words in MANAGERS:
        if shutil.which(program):
            sudo = ["sudo"] if os.geteuid() and program not in UNPRIVILEGED else []
            return [*sudo, program, *words, *packages]
    return []


def may_run(command: Sequence[str]) -> bool:
    """Whether the command would run without asking a person for a password."""
    if not command or command[0] != "sudo":
        return bool(command)
    if not shutil.which("sudo"):
        return False
    return subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0


def install(packages: Sequence[str]) -> str:
    """Install them; "" or the reason why not, which names the command for a person to run."""
    command = install_command(packages)
    wanted = " and ".join(packages)
    if not command:
        return f"no known package manager here: install {wanted} by hand"
    if not may_run(command):
        return f"no right to install {wanted} without a password: run `{' '.join(command)}`"
    if command[0] == "sudo":
        command.insert(1, "-n")
    if "apt-get" in command:  # a fresh machine has no package lists yet, and apt does not fetch them itself
        _run([*command[: command.index("apt-get") + 1], "update"])
    code = _run(command)
    return f"`{' '.join(command)}` failed with code {code}" if code else ""


def _run(command: Sequence[str]) -> int:
    """Its words go to stderr: stdout belongs to the verb."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
