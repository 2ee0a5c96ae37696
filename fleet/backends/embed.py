"""Ways for a banner to stand on a screen without being one: the agent reads, quotes or greps it.

Each function draws a whole screen of one CLI with the text somewhere in it. None of these screens is
limited or wedged, whatever the text says; the self-test and the fuzz tests hold the reader to that.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from random import Random

Screen = list[str]

WIDTHS = (200, 120, 80, 60)
CLAUDE_TURN = "\u276f"
CODEX_TURN = "\u203a"
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


def _output(rng: Random, text: str, width: int, first: str, rest: str) -> Screen:
    """A tool's output with the text in it; programs do not wrap at words."""
    lines = [prose(rng) for _ in range(rng.randint(0, 5))]
    lines.insert(rng.randint(0, len(lines)), lead(rng) + text)
    flat = [line[i : i + width - 6] for line in lines for i in range(0, len(line), width - 6)]
    return [(rest if n else first) + line for n, line in enumerate(flat)]


def claude(rng: Random, text: str) -> Screen:
    """A screen of claude, idle or at work, with the text in words, output, a turn or a draft."""
    width = rng.choice(WIDTHS)
    glyph = rng.choice("●⏺")
    said = [glyph + line[1:] for line in wrapped(prose(rng), width, "  ", "  ")]

    def quote() -> Screen:
        own = lead(rng) + text
        lines = [*said, "", *wrapped(own, width, "  ", "    "), ""]
        return [*lines, *wrapped(prose(rng), width, "  ", "  "), ""] if often(rng) else lines

    def inline() -> Screen:
        return [*wrapped(f"{prose(rng)} {text} {prose(rng)}", width, f"{glyph} ", "  "), ""]

    def tool() -> Screen:
        call = f"{glyph} {rng.choice(['Bash(tail -3 run.log)', 'Read(notes.md)', 'Search(pattern: limit)'])}"
        lines = [call, *_output(rng, text, width, "  ⎿  ", "     "), ""]
        return [*lines, *said, ""] if often(rng) else lines

    def asked() -> Screen:
        return [*wrapped(f"what about: {text}", width, f"{CLAUDE_TURN} ", "  "), "", *said, ""]

    def shell() -> Screen:
        return ["! grep limit run.log", *_output(rng, text, width, "  ⎿  ", "     "), "", *said, ""]

    def draft() -> Screen:
        return [*said, ""]

    make = rng.choice([quote, inline, tool, asked, shell, draft])
    old = [*wrapped(prose(rng), width, f"{CLAUDE_TURN} ", "  "), f"  ⎿  {text}", "", "✻ Brewed for 0s", ""]
    body = [*(old if often(rng) else []), *wrapped(prose(rng), width, f"{CLAUDE_TURN} ", "  "), "", *make()]
    state = rng.choice(
        [
            ["✻ Baked for 8s", ""],
            ["✻ Cooked for 1m 3s · done 4:39 AM", ""],
            ["· Doing… (4s · ↓ 54 tokens)", ""],
            [],
        ]
    )
    inside = text[: width - 4] if make is draft else ""
    typed = [f"{CLAUDE_TURN}\u00a0{inside}"]
    foot = ["  ⏵⏵ bypass permissions on (shift+tab to cycle)" + " · esc to interrupt" * ("…" in str(state))]
    return [*body, *state, "─" * width, *typed, "─" * width, *foot]


def codex(rng: Random, text: str) -> Screen:
    """The same for codex."""
    width = rng.choice(WIDTHS)
    said = wrapped(prose(rng), width, "• ", "  ")

    def quote() -> Screen:
        own = lead(rng) + text
        return [*said, "", *wrapped(own, width, "  ", "  "), "", *wrapped(prose(rng), width, "  ", "  "), ""]

    def inline() -> Screen:
        return [*wrapped(f"{prose(rng)} {text} {prose(rng)}", width, "• ", "  "), ""]

    def tool() -> Screen:
        lines = ["• Ran tail -3 run.log", *_output(rng, text, width, "  └ ", "    "), ""]
        return [*lines, *said, ""] if often(rng) else lines

    def asked() -> Screen:
        return [*wrapped(f"what about: {text}", width, f"{CODEX_TURN} ", "  "), "", *said, ""]

    def draft() -> Screen:
        return [*said, ""]

    make = rng.choice([quote, inline, tool, asked, draft])
    old = [*wrapped(prose(rng), width, f"{CODEX_TURN} ", "  "), "", *wrapped(text, width, "■ ", ""), ""]
    body = [*(old if often(rng) else []), *wrapped(prose(rng), width, f"{CODEX_TURN} ", "  "), "", *make()]
    state = rng.choice([["  Worked for 6s • 01:30", ""], ["◦ Working (3s • esc to interrupt)", ""], []])
    inside = text[: width - 4] if make is draft else "Ask Codex to do anything"
    typed = f"{CODEX_TURN} {inside}"
    return [*body, *state, "", typed, "", "  gpt-6 default · ~/work", "  ← for agents · ? for shortcuts"]


def opencode(rng: Random, text: str) -> Screen:
    """The same for opencode."""
    width = rng.choice(WIDTHS[:-1])
    said = wrapped(prose(rng), width, "     ", "     ")

    def box(*lines: str) -> Screen:
        return ["  ┃", *(f"  ┃  {line}" for line in lines), "  ┃", ""]

    def quote() -> Screen:
        return [*said, "", *wrapped(lead(rng) + text, width, "     ", "     "), "", *said, ""]

    def tool() -> Screen:
        return [*box("$ tail -3 run.log", "", *_output(rng, text, width, "", "")), *said, ""]

    def asked() -> Screen:
        return [*box(*wrapped(text, width, "", "")), *said, ""]

    make = rng.choice([quote, tool, asked])
    busy = not often(rng)
    body = [
        *box(*wrapped(prose(rng), width - 8, "", "")),
        *make(),
        "     ▣  Build · Some Model" + " · 8.5s" * (not busy),
        "",
    ]
    row = "   ⬝⬝■■■■■■  esc interrupt" if busy else "   /home/user/work        120 (0%)  ctrl+p commands"
    return [*body, *box("")[:-2], "  ┃  Build · Some Model Maker", "  ╹" + "▀" * (width - 4), row]


SCREENS: dict[str, Callable[[Random, str], Screen]] = {"claude": claude, "codex": codex, "opencode": opencode}


def embeddings(cli: str, texts: list[str], count: int, seed: int) -> Iterator[tuple[str, str]]:
    """So many screens of that CLI, each with one of the texts, the same for the same seed."""
    rng = Random(seed)  # noqa: S311  a test's dice, not a secret's
    for n in range(count):
        text = rng.choice(texts)
        yield f"{cli}: {n} of seed {seed}: {text[:40]}", "\n".join(SCREENS[cli](rng, text))
