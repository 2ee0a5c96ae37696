"""Ways for a banner to stand on a screen without being one: the agent reads, quotes or greps it.

`draw` in the `embed.py` of a CLI's folder draws a whole screen of it with the text somewhere in it. None of
these screens is limited or wedged, whatever the text says; the self-test and the fuzz tests hold the reader
to that.
"""

from __future__ import annotations

import functools
import importlib
import textwrap
from collections.abc import Callable, Iterator, Mapping
from random import Random

from fleet.backends import profiles

Screen = list[str]

WIDTHS = (200, 120, 80, 60)
_WORDS = (
    "the",
    "log",
    "shows",
    "this",
    "line",
    "again",
    "and",
    "nothing",
    "else",
    "happened",
    "here,",
    "so we",
)
_GLYPHS = (
    "限制 ",
    "🚧 ",
    "— ",
    "» ",
    "  ",
    "- ",
    "> ",
    "| ",
    "1. ",
    "E   ",
    "+ ",
    "│ ",
    "2026-11-16 04:25 WARN ",
)


def prose(rng: Random, least: int = 3) -> str:
    """Some harmless words."""
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(least, 14)))


def often(rng: Random) -> bool:
    """As often as not."""
    return rng.random() < 1 / 2


def lead(rng: Random) -> str:
    """What stands before a quoted text: nothing, as often as not."""
    return rng.choice(_GLYPHS) if often(rng) else ""


def wrapped(text: str, width: int, first: str, rest: str) -> Screen:
    """A paragraph as a TUI wraps it."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest) or [first.rstrip()]


def output(rng: Random, text: str, width: int, first: str, rest: str) -> Screen:
    """A tool's output with the text in it; programs do not wrap at words."""
    lines = [prose(rng) for _ in range(rng.randint(0, 5))]
    lines.insert(rng.randint(0, len(lines)), lead(rng) + text)
    flat = [line[i : i + width - 6] for line in lines for i in range(0, len(line), width - 6)]
    return [(rest if n else first) + line for n, line in enumerate(flat)]


@functools.cache
def drawers() -> Mapping[str, Callable[[Random, str], Screen]]:
    """Who can be drawn, by folder."""
    folders = profiles.folders("embed.py")
    return {name: importlib.import_module(f"{__package__}.{name}.embed").draw for name in folders}


def embeddings(cli: str, texts: list[str], count: int, seed: int) -> Iterator[tuple[str, str]]:
    """So many screens of that CLI, each with one of the texts, the same for the same seed."""
    rng = Random(seed)  # noqa: S311  a test's dice, not a secret's
    for n in range(count):
        text = rng.choice(texts)
        yield f"{cli}: {n} of seed {seed}: {text[:40]}", "\n".join(drawers()[cli](rng, text))
