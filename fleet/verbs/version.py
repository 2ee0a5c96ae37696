"""Print the version of agent-fleet and its environment.

Example: agents.py version --json
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess

from fleet import __version__, engine
from fleet.verbs.io import Io

GROUP = "set up"


ARGUMENTS = ()


def run(args: argparse.Namespace, io: Io) -> int:
    """One line for people, a document for programs."""
    facts = {
        "version": __version__,
        "commit": commit(),
        "engine": engine.HOME,
        "python": platform.python_version(),
        "tmux": answer(["tmux", "-V"]).removeprefix("tmux ") or None,
    }
    if args.json:
        io.json(facts)
    else:
        built = f" ({facts['commit']})" if facts["commit"] else ""
        io.print(
            f"agents.py {__version__}{built}, Python {facts['python']}, tmux {facts['tmux'] or 'missing'}"
        )
    return 0


def commit() -> str | None:
    """The tag or commit of the engine's own checkout; None for a copy without history."""
    if not os.path.exists(os.path.join(engine.HOME, ".git")):
        return None
    return answer(["git", "-C", engine.HOME, "describe", "--tags", "--always", "--dirty"]) or None


def answer(argv: list[str]) -> str:
    """What a short command prints; empty when it is missing, slow or fails."""
    if not shutil.which(argv[0]):
        return ""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=10, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
