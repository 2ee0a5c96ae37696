"""The operator's umask, kept for what is the operator's: the panes of agents, a project that `init` writes.

The launchers set 077 before they load anything, so that whatever we write is for us alone, bytecode included.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

OURS = 0o077
UNKNOWN = -1  # not set by a launcher: subprocess leaves the umask as it is

operators = UNKNOWN


@contextlib.contextmanager
def as_operator() -> Iterator[None]:
    """Write as the operator would."""
    if operators == UNKNOWN:
        yield
        return
    ours = os.umask(operators)
    try:
        yield
    finally:
        os.umask(ours)
