"""Where this engine lies, what came with it, and how it is called and started.

There are two forms. A checkout (or a submodule) has the launchers beside the package, and what verbs read
lies beside it too. An installed package has the commands `agents` and `agentlog`, and `tools/packing.py` put
those files into `fleet/shipped`, under the same paths.
"""

from __future__ import annotations

import os
import re
import sys

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_SHIPPED = os.path.join(HOME, "fleet", "shipped")
INSTALLED = os.path.isdir(_SHIPPED)
SUFFIX = "" if INSTALLED else ".py"
AGENTS, AGENTLOG = f"agents{SUFFIX}", f"agentlog{SUFFIX}"
PROJECT = "agent-fleet"  # what pip calls this package
BESIDE = "" if INSTALLED else HOME  # where an agents.toml may lie beside the launcher

# Sentences name the commands as a checkout does. As part of a path, or of another name, it is not our word.
_NAMED = r"(?m)(?<![\w./-])(agents|agentlog)\.py(?=[ `]|$)"


def shipped(path: str) -> str:
    """A file or directory that came with the engine, by its path in a checkout."""
    return os.path.join(_SHIPPED if INSTALLED else HOME, path)


def command(*words: str) -> list[str]:
    """How this engine starts itself. The directory that it is started in is never on the path."""
    if INSTALLED:
        return [sys.executable, "-P", "-m", "fleet", *words]
    return [sys.executable, os.path.join(HOME, "agents.py"), *words]


def spoken(text: str, suffix: str = SUFFIX) -> str:
    """A sentence for a person, with the commands under the names that they have here."""
    if suffix == ".py" or ".py" not in text:
        return text
    return re.sub(_NAMED, rf"\1{suffix}", text)
