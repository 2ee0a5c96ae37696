"""Texts of every kind that may be sent, drawn from a seed: the same seed gives the same texts."""

from __future__ import annotations

import unicodedata
from random import Random

SHELL = "$(id) `id` ${HOME} $HOME | tee x && rm -rf y; echo > z < w * ? ~ [a] {b,c} 'q' \"d\" \\n !! # %s"
MARKUP = "<b>x</b> <!-- y --> &amp; **z** _w_ [a](b) ![c](d) {{e}} %%f ```py\ng\n``` | h | i |"
QUOTED = "it's \"so\" 'and' `thus` “thus” „so“ «so» 『so』"
EMOJI = ("👍", "✅", "🚀", "❤️", "⚠️", "👩‍💻", "👨‍👩‍👧", "🏳️‍🌈", "🇩🇪", "1️⃣", "👍🏽", "🧑🏿‍🚀", "🔥")
SENTENCE = "the build is red on main since this morning please look at tests unit and say what you find"
WORDS = tuple(SENTENCE.split())
SCRIPTS = (
    "Grüße aus Köln, naïve café", "Zażółć gęślą jaźń", "Привет, мир", "Καλημέρα κόσμε", "你好 世界",
    "こんにちは世界", "안녕하세요", "مرحبا بالعالم", "שלום עולם", "हिन्दी नमस्ते", "বাংলা ভাষা", "தமிழ் வணக்கம்",
    "ภาษาไทย", "ქართული", "Tiếng Việt", "Việt phân rã: Tie\u0302\u0301ng",
)  # fmt: skip
INVISIBLE = tuple("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u061c\u2028")
CONTROL = ("\x00", "\x03", "\x07", "\x08", "\x0b", "\x1b", "\x1b[31m", "\x1b[201~", "\x7f", "\x9b", "\r")
FIRST = (*"!/#@-$&?~:|>\\'\" \n", "--", "!!", "/!", "* ")
LAST = (*"\\@/!?&;'\" \n$#…", "@work", " @wor", " /he", "\\\\")
SHOWN = (  # lines as the CLIs themselves draw them
    "  Worked for 3s", "• Ran ls", "■ You've hit your usage limit. Try again at 3:00 PM.", "  └ a.txt",
    "  ↳ later", "› 1. Yes", "❯ 1. Yes", "❯ ", "─" * 60, "  ⎿  Error: x", "● said", "✻ Crunched for 3s",
    "┃  quoted", "╹" + "▀" * 40, "△ Permission required", "• Working (3s • esc to interrupt)",
    "  ? for shortcuts", "enter submit", "Enter to confirm", "Press enter to confirm or esc to cancel",
    "Do you trust the files in this folder?", ">_ OpenAI Codex (v1)", "Ask Codex to do anything",
    "[Pasted text #2 +9 lines]", "[retrying in 3s]", "claude        esc",
)  # fmt: skip
NONE = {"Cn", "Cs", "Co", "Cc"}  # categories without a letter
ASSIGNED = [c for c in map(chr, range(0x21, 0x2FA1E)) if unicodedata.category(c) not in NONE]


def words(rng: Random, least: int = 2, most: int = 12) -> str:
    """A sentence that means no harm."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def _first(rng: Random) -> str:
    return rng.choice(FIRST) + rng.choice(("", " ")) + words(rng)


def _last(rng: Random) -> str:
    return words(rng) + rng.choice(LAST)


def _both(rng: Random) -> str:
    return rng.choice(FIRST) + words(rng) + rng.choice(LAST)


def _command(rng: Random) -> str:
    name = rng.choice(("help", "clear", "compact", "status", "quit", "exit", "model", "nope", "tmp/x.txt"))
    return rng.choice(("/", "!", "! ", " /", "\n/")) + name + rng.choice(("", " " + words(rng)))


def _shell(rng: Random) -> str:
    pieces = SHELL.split(" ")
    return words(rng, 1, 3) + " " + " ".join(rng.choice(pieces) for _ in range(rng.randint(2, 12)))


def _markup(rng: Random) -> str:
    more = rng.choice((MARKUP, QUOTED, "a\n\n- b\n- c\n  1. d", "[Pasted text #1] [Image #1]"))
    return f"{words(rng, 1, 3)} {more}"


def _lines(rng: Random) -> str:
    lines = [rng.choice(("", words(rng), "    " + words(rng))) for _ in range(rng.randint(2, 30))]
    return "\n".join(["first line", *lines, "end"])


def _long(rng: Random) -> str:
    return words(rng, 150, 900)


def _emoji(rng: Random) -> str:
    glyphs = [rng.choice(EMOJI) for _ in range(rng.randint(1, 6))]
    return f"{words(rng, 1, 4)} {rng.choice(('', ' ')).join(glyphs)}"


def _script(rng: Random) -> str:
    pieces = [rng.choice(SCRIPTS) for _ in range(rng.randint(1, 3))]
    return " ".join([*pieces, words(rng, 0, 3)]).strip()


def _mixed(rng: Random) -> str:
    return f"{words(rng, 1, 3)} {rng.choice(SCRIPTS[7:9])} (1, 2) {words(rng, 1, 3)}"


def _invisible(rng: Random) -> str:
    return words(rng, 1, 3) + rng.choice(INVISIBLE) + words(rng, 1, 3)


def _control(rng: Random) -> str:
    return words(rng, 1, 3) + rng.choice(CONTROL) + words(rng, 1, 3)


def _any(rng: Random) -> str:
    return words(rng, 1, 2) + " " + "".join(rng.choice(ASSIGNED) for _ in range(rng.randint(1, 12)))


def _tab(rng: Random) -> str:
    return "all:\n\t" + words(rng)


def _shown(rng: Random) -> str:
    lines = [rng.choice(SHOWN) for _ in range(rng.randint(1, 6))]
    first = rng.choice((words(rng, 2, 4), "1. Yes"))
    return "\n".join([first, *lines, *rng.choice(((), ("", "end")))])


KINDS = (
    words, _first, _first, _last, _last, _both, _command, _shell, _markup, _lines, _long, _emoji, _script,
    _mixed, _invisible, _control, _any, _tab, _shown,
)  # fmt: skip


def texts(seed: int, count: int) -> list[str]:
    """So many texts, each with a number of its own in it, so that no two are alike."""
    rng = Random(seed)
    made = []
    for n in range(count):
        kind = KINDS[n] if n < len(KINDS) else rng.choice(KINDS)
        text = kind(rng)
        middle = text.find(" ", 1)
        middle = len(text) if middle < 0 else middle
        made.append(f"{text[:middle]} n{n:04}n{text[middle:]}" if text.strip() else f"n{n:04}n")
    return made
