"""The environment: this machine's, and which of its variables a program may see, by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from fleet.ports import Host

# What any program may see of the environment that `up` was run in; everything else is by env_pass.
BASE_NAMES = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "COLORTERM",
    "XDG_*", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip

# Ours, the caller's tmux, one-off overrides: never handed on.
NEVER_NAMES = ("TMUX", "TMUX_PANE", "AO_*", "AGENT_*")

# Set anew by the terminal and the shell of every pane.
PANE_NAMES = ("TERM", "TERM_PROGRAM*", "PWD", "OLDPWD", "SHLVL", "_")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def this_host() -> Host:
    """The facts of this machine, without the overrides that are for one invocation."""
    return Host({k: v for k, v in os.environ.items() if not k.startswith("AGENT_")}, host_zone())


def host_zone() -> str:
    """The host's zone by name, where it has one; its abbreviation names no rules."""
    named = os.environ.get("TZ", "").lstrip(":")
    return named or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or "UTC"


def base_env(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that any pane may have."""
    return pick(environ, BASE_NAMES)


def pick(environ: Mapping[str, str], patterns: Sequence[str]) -> dict[str, str]:
    """What of an environment is named by the patterns, and is not ours."""
    return {
        name: value
        for name, value in environ.items()
        if NAME.fullmatch(name) and _matches(name, patterns) and not _matches(name, NEVER_NAMES)
    }


def unwanted(
    server_names: frozenset[str], held: Collection[str], passed: Iterable[str], nested: Collection[str]
) -> set[str]:
    """Names the pane may have inherited and this agent must not see.

    Only what its starter holds now is its own: a server may hold a key that the operator has given up.
    A CLI that finds one of `nested` believes that it runs inside another one, and refuses or misbehaves: such
    a name is kept when env_pass names it to the letter, not by how it begins.
    """
    named = {n for n in passed if _matches(n, (*NEVER_NAMES, *nested))}
    kept = set(held).difference(nested) | named
    ours = (*BASE_NAMES, *PANE_NAMES)
    inherited = {n for n in server_names if NAME.fullmatch(n) and not _matches(n, ours)}
    return (inherited | {"TMUX", "TMUX_PANE", *nested}) - kept


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """A pattern is a whole name, or how a name begins: LC_*."""
    return any(name.startswith(p[:-1]) if p.endswith("*") else name == p for p in patterns)
