"""Verbs in this process: as the launcher runs them, at a tenth of the price."""

from __future__ import annotations

import io
from pathlib import Path

from fleet.verbs import main
from fleet.verbs.io import Io


def verb(config: Path, *words: str) -> tuple[int, str]:
    """The exit code of a verb and everything it said."""
    said = io.StringIO()
    voice = Io(said, said)
    try:
        module, args = main.parse([*words, "--config", str(config)])
        code: int = module.run(args, voice)
    except Exception as fault:
        code = main.told(fault, voice)
    assert "a bug of agent-fleet" not in said.getvalue(), said.getvalue()
    return code, said.getvalue()
