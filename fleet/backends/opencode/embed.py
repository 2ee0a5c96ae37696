"""A screen of opencode with a banner on it that means nothing."""

from __future__ import annotations

from random import Random

from fleet.backends.corpus import WIDTHS, Screen, lead, often, output, prose, wrapped


def draw(rng: Random, text: str) -> Screen:
    """A screen of opencode, idle or at work, with the text in words, output or a turn."""
    width = rng.choice(WIDTHS[:-1])
    said = wrapped(prose(rng), width, "     ", "     ")

    def box(*lines: str) -> Screen:
        return ["  ┃", *(f"  ┃  {line}" for line in lines), "  ┃", ""]

    def quote() -> Screen:
        return [*said, "", *wrapped(lead(rng) + text, width, "     ", "     "), "", *said, ""]

    def tool() -> Screen:
        return [*box("$ tail -3 run.log", "", *output(rng, text, width, "", "")), *said, ""]

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
