"""Putting data into sh: one word that means exactly its value, wherever in a command it stands.

A template is the user's shell; a slot in it is not. `--model '{model}'`, `"{model}"`, `{model}` and
`"$(cat '{kickoff}')"` must all receive the same bytes, so the filler knows in which quotes a slot lies,
leaves them, writes the value in quotes of its own and goes back in. Only known slots are touched: prompts
and commands are full of other braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

quote = shlex.quote

_SLOT = re.compile(r"\{([a-z_]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each `{slot}` of `values` replaced by its quoted value."""
    out: list[str] = []
    context = _Context()
    at = 0
    while at < len(template):
        slot = _SLOT.match(template, at)
        if slot and slot[1] in values:
            out.append(f"{context.quotes}{quote(values[slot[1]])}{context.quotes}")
            at = slot.end()
            continue
        taken = context.step(template, at)
        out.append(template[at : at + taken])
        at += taken
    return "".join(out)


class _Context:
    """Where in sh's quoting we are: a stack, because "$( … )" starts afresh inside quotes."""

    def __init__(self) -> None:
        self._stack = [")"]  # what ends each level: ' or " or ` or )

    @property
    def quotes(self) -> str:
        """The quotes to leave and to re-enter around a value."""
        return self._stack[-1] if self._stack[-1] in "'\"" else ""

    def step(self, text: str, at: int) -> int:
        """Read one element of shell text; how many characters it was."""
        char, inside = text[at], self._stack[-1]
        if inside == "'":
            if char == "'":
                self._stack.pop()
            return 1
        if char == "\\":
            return 2
        if char == inside and len(self._stack) > 1:
            self._stack.pop()
        elif text.startswith("$(", at):
            self._stack.append(")")
            return 2
        elif char in '"`' or (char == "'" and inside != '"'):
            self._stack.append(char)
        elif char == "(" and inside != '"':
            self._stack.append(")")
        return 1
