"""A captured screen as text with colours, and nothing else: no links, no titles, no cursor, no markup."""

from __future__ import annotations

import re

from rich.text import Text

from fleet.text import for_display

SGR = re.compile(r"\x1b\[([0-9;:]*)m")
FINER = re.compile(r"(\d+):[\d:]*")  # 4:3, a curly underline; the plain one will do


def screen_text(raw: str, height: int) -> Text:
    """The last lines of a screen that fit, as they look in a terminal."""
    lines = raw.split("\n")
    while lines and not SGR.sub("", lines[-1]).strip():
        lines.pop()
    # a colour may have begun on any line above: all of them are read, few are shown
    whole = Text.from_ansi("\n".join(map(safe, lines)), no_wrap=True, overflow="crop", end="")
    shown = whole.split("\n")[-height:] if height > 0 else []
    return Text("\n", no_wrap=True, overflow="crop", end="").join(shown)


def safe(line: str) -> str:
    """Only colours survive; everything else that could steer a terminal is taken out."""
    parts = SGR.split(line)
    return "".join(
        f"\x1b[{_plain(part)}m" if number % 2 else for_display(part) for number, part in enumerate(parts)
    )


def _plain(codes: str) -> str:
    return FINER.sub(r"\1", codes)
