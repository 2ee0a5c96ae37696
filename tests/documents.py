"""The documents as tests see them: fenced blocks, what is said about running them, and what they name."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = frozenset({"sh", "bash", "console"})
FENCE = re.compile(r"(?ms)^(?P<fence>```+)(?P<tag>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$")
NOT_RUN = re.compile(r"<!--\s*run:\s*no\s*\((?P<why>[^>]+)\)\s*-->\s*\Z")


@dataclass(frozen=True)
class Block:
    """One fenced block. `why_not` is the reason given above it for not running it."""

    path: Path
    line: int
    tag: str
    body: str
    why_not: str = ""

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


@cache
def pages() -> tuple[Path, ...]:
    """Every document that is part of the project."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return tuple(sorted(ROOT / n for n in found if (ROOT / n).exists() and not n.startswith("tests/")))


def blocks(path: Path) -> list[Block]:
    """Fenced blocks in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        above = NOT_RUN.search(text[: match.start()].rstrip("\n"))
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(path, line, match["tag"], match["body"], above["why"] if above else ""))
    return found


def runnable() -> dict[Path, list[Block]]:
    """By document: command blocks that claim to work as they stand."""
    found = {}
    for path in pages():
        mine = [b for b in blocks(path) if b.tag in COMMANDS and not b.why_not]
        if mine:
            found[path] = mine
    return found
