"""A screen of codex with a banner on it that means nothing."""

from __future__ import annotations

from random import Random

from fleet.backends.corpus import WIDTHS, Screen, lead, often, output, prose, wrapped

TURN = "\u203a"


def draw(rng: Random, text: str) -> Screen:
    """A screen of codex, idle or at work, with the text in words, output, a turn or a draft."""
    width = rng.choice(WIDTHS)
    said = wrapped(prose(rng), width, "• ", "  ")

    def quote() -> Screen:
        own = lead(rng) + text
        return [*said, "", *wrapped(own, width, "  ", "  "), "", *wrapped(prose(rng), width, "  ", "  "), ""]

    def inline() -> Screen:
        return [*wrapped(f"{prose(rng)} {text} {prose(rng)}", width, "• ", "  "), ""]

    def tool() -> Screen:
        lines = ["• Ran tail -3 run.log", *output(rng, text, width, "  └ ", "    "), ""]
        return [*lines, *said, ""] if often(rng) else lines

    def asked() -> Screen:
        return [*wrapped(f"what about: {text}", width, f"{TURN} ", "  "), "", *said, ""]

    def draft() -> Screen:
        return [*said, ""]

    make = rng.choice([quote, inline, tool, asked, draft])
    old = [*wrapped(prose(rng), width, f"{TURN} ", "  "), "", *wrapped(text, width, "■ ", ""), ""]
    body = [*(old if often(rng) else []), *wrapped(prose(rng), width, f"{TURN} ", "  "), "", *make()]
    state = rng.choice([["  Worked for 6s • 01:30", ""], ["◦ Working (3s • esc to interrupt)", ""], []])
    inside = text[: width - 4] if make is draft else "Ask Codex to do anything"
    typed = f"{TURN} {inside}"
    return [*body, *state, "", typed, "", "  gpt-6 default · ~/work", "  ← for agents · ? for shortcuts"]
