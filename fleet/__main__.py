"""The two commands up to their exit code, for the launchers, the console scripts and `python -m fleet`."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def agents(operators: int = -1) -> NoReturn:
    """The verbs. A launcher that set our umask before it loaded anything says what the operator's was."""
    _run("fleet.verbs.main", operators)


def agentlog(operators: int = -1) -> NoReturn:
    """The transcripts."""
    _run("fleet.tokens.agentlog", operators)


def _run(module: str, operators: int) -> NoReturn:
    try:
        from fleet import umask

        umask.operators = operators if operators != umask.UNKNOWN else os.umask(umask.OURS)
        gc.set_threshold(50000)  # most commands end before there is anything to collect
        __import__(module)
        code: int = sys.modules[module].main(sys.argv[1:])
    except KeyboardInterrupt:  # while still loading
        code = 130
    # All is written and closed by now, and what could not be written has had its sentence: no second try at
    # exit, and taking the interpreter apart as well would be a tenth of `status`.
    os._exit(code)


if __name__ == "__main__":
    agents()
