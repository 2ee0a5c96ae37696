"""Play an example offline, in a copy, on a socket of its own, the way a newcomer would."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.tmux.project import ENGINE, Project, until

EXAMPLES = ENGINE / "examples"
LOOPS = tuple(sorted(p.parent.name for p in EXAMPLES.glob("builder-*/agents.toml")))
ALL = (*LOOPS, "snakepit")
PATIENCE_S = 240.0  # for a machine that runs many of them at once; alone it takes well under a minute


class Played(Project):
    """An example's copy. `agents` drives its offline.toml."""

    def __init__(self, root: Path, name: str) -> None:
        shutil.copytree(
            EXAMPLES, root / "examples", ignore=shutil.ignore_patterns(".offline", ".ao-state", "work")
        )
        super().__init__(root / "examples" / name / "unused", "")
        shutil.rmtree(self.root)
        self.root = root / "examples" / name
        self.config = self.root / "offline.toml"
        self.log_dir = self.root / ".offline" / "state"
        text = self.config.read_text(encoding="utf-8")
        text, count = re.subn(r"(?m)^session_prefix = .*$", f'session_prefix = "{self.prefix}"', text)
        assert count == 1
        self.config.write_text(text, encoding="utf-8")

    def play(self) -> None:
        """Up, and on to the end."""
        self.agents("up")
        until((self.log_dir / "SEQUENCE-COMPLETE").exists, PATIENCE_S)

    def kinds(self) -> set[str]:
        """What kinds of things happened."""
        return {e["type"] for e in self.events()}
