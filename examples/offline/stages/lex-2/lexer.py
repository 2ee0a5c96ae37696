"""Text to tokens."""

import re
from dataclasses import dataclass

PATTERN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)(?![\d.])|(?P<op>[-+*/^])|(?P<open>\()|(?P<close>\))|(?P<space>\s+)"
)


class LexError(Exception):
    def __init__(self, message, at):
        super().__init__(f"{message} at column {at}")
        self.at = at


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int


def lex(text):
    tokens, at = [], 0
    while at < len(text):
        found = PATTERN.match(text, at)
        if found is None:
            raise LexError(f"unexpected {text[at]!r}", at)
        if found.lastgroup != "space":
            tokens.append(Token(found.lastgroup, found[0], at))
        at = found.end()
    return tokens
