"""The programs that tests start.

COMMON is there on every system, or is installed by the two commands. What only some machines have stands in
BEYOND: a test that wants it says so with `need`, and is skipped with the reason where it is missing.
"""

from __future__ import annotations

import shutil

import pytest

COMMON = frozenset({"bash", "cat", "env", "git", "sh", "sleep", "tmux", "true"})
BEYOND = {
    "fish": "reads the completion script made for it",
    "mount": "makes a small file system, to fill it",
    "node": "runs the agent CLIs",
    "npm": "installs the agent CLIs at their pinned versions",
    "umount": "takes it away again",
    "zsh": "reads the completion script made for it",
}


def there(program: str) -> str:
    """Where it is, or ""."""
    assert program in COMMON or program in BEYOND, f"{program} is not declared in {__file__}"
    return shutil.which(program) or ""


def need(*programs: str) -> None:
    """Skip the test that asks where one of them is missing."""
    for program in programs:
        if not there(program):
            pytest.skip(f"{program} is not installed here; it {BEYOND[program]}")
