"""Where claude keeps its files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

PROJECTS = "projects"


def homes(env: Mapping[str, str]) -> tuple[str, ...]:
    """Where a process with that environment may have kept its transcripts; several may be named at once."""
    named = env.get("CLAUDE_CONFIG_DIR", "")
    if named:
        return tuple(os.path.expanduser(part.strip()) for part in named.split(",") if part.strip())
    home = env.get("HOME") or os.path.expanduser("~")
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return (os.path.join(home, ".claude"), os.path.join(config, "claude"))


def home(env: Mapping[str, str]) -> str:
    """The one that a CLI started with that environment writes to."""
    return env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude"


def slug(directory: str) -> str:
    """The folder name of a working directory. Not reversible, and two directories may share one."""
    return re.sub(r"[^A-Za-z0-9]", "-", directory)


def transcript(base: str, directory: str, conversation: str) -> str:
    """The file of a conversation."""
    return f"{base}/{PROJECTS}/{slug(directory)}/{conversation}.jsonl"
