"""A screen of claude with a banner on it that means nothing."""

from __future__ import annotations

from random import Random

from fleet.backends.corpus import WIDTHS, Screen, lead, often, output, prose, wrapped

TURN = "\u276f"


def draw(rng: Random, text: str) -> Screen:
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
        lines = [call, *output(rng, text, width, "  ⎿  ", "     "), ""]
        return [*lines, *said, ""] if often(rng) else lines

    def asked() -> Screen:
        return [*wrapped(f"what about: {text}", width, f"{TURN} ", "  "), "", *said, ""]

    def shell() -> Screen:
        return ["! grep limit run.log", *output(rng, text, width, "  ⎿  ", "     "), "", *said, ""]

    def draft() -> Screen:
        return [*said, ""]

    make = rng.choice([quote, inline, tool, asked, shell, draft])
    old = [*wrapped(prose(rng), width, f"{TURN} ", "  "), f"  ⎿  {text}", "", "✻ Brewed for 0s", ""]
    body = [*(old if often(rng) else []), *wrapped(prose(rng), width, f"{TURN} ", "  "), "", *make()]
    state = rng.choice(
        [
            ["✻ Baked for 8s", ""],
            ["✻ Cooked for 1m 3s · done 4:39 AM", ""],
            ["· Doing… (4s · ↓ 54 tokens)", ""],
            [],
        ]
    )
    inside = text[: width - 4] if make is draft else ""
    typed = [f"{TURN}\u00a0{inside}"]
    foot = ["  ⏵⏵ bypass permissions on (shift+tab to cycle)" + " · esc to interrupt" * ("…" in str(state))]
    return [*body, *state, "─" * width, *typed, "─" * width, *foot]
