"""TOML text to a plain dict, and back to the line of a key.

tomllib is the only parser. It knows no positions and refuses inline tables that span lines, so two
small passes over one lexer stand beside it: `fold` blanks out the line breaks (and comments) inside
inline tables, character for character, so that offsets stay true; `positions` finds the line of
every key. Neither ever decides what a file means, and a line is only shown when the scanner saw
exactly the keys that tomllib saw.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from fleet.config.problems import ConfigError, KeyPath, Problem

_PIECE = r"""(?xs)
      (?P<string>  \"{3} (?: [^\\] | \\. )*? \"{3,5} | '{3} .*? '{3,5}
                 | " (?: [^"\\\n] | \\[^\n] )* " | ' [^'\n]* ' )
    | (?P<comment> \#[^\n]* )
    | (?P<newline> \n )
    | (?P<space>   [ \t]+ )
    | (?P<mark>    [\[\]{},=.] )
    | (?P<word>    [^\s\[\]{},=.#"']+ | . )
"""
_OPENER = {"]": "[", "}": "{"}
_ENDS = frozenset({"\n", ",", "]", "}"})
_GAPS = frozenset({"\n", ","})
_PLACE = r" \(at (?:line (\d+), column (\d+)|end of document)\)$"

# What people meant when the parser says this; the first that fits wins.
_HINTS = (
    ("Unescaped '\\'", "in double quotes a backslash is written \\\\; a regex is easier in single quotes"),
    ("Invalid hex value", "in double quotes a backslash is written \\\\; single quotes take it as it is"),
    ("Cannot overwrite a value", "the key is set twice; keep one"),
    ("Cannot declare", "the table is opened twice; merge the two, or write [[...]] for a list of tables"),
    ("Cannot mutate immutable", "a table written { ... } is closed; put all its keys inside the braces"),
    ("Invalid value", "text needs quotes, and true and false are lower case"),
    ("Illegal character '\\n'", "close the quote on the same line, or use three quotes for several lines"),
    ("Unterminated string", "close the quote"),
    ("Expected '=' after a key", "write: key = value"),
    ("Invalid initial character for a key part", "a key is made of letters, digits, - and _, or is quoted"),
    ("Unclosed array", "close the list with ], and put a comma between its items"),
    ("Unclosed inline table", "close the table with }, and put a comma between its keys"),
    ("Expected newline or end of document", "one key = value a line; text needs quotes"),
)


class Token(NamedTuple):
    """A piece of the text; every character belongs to exactly one."""

    kind: str
    text: str
    line: int


def read(text: str, path: str) -> tuple[dict[str, Any], str]:
    """The document and its text with plain line ends. Raises ConfigError for anything that is not TOML."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:
        complaint: Exception = error
    folded, unclosed = fold(text)
    if unclosed is not None:
        said = "the inline table opened here is never closed"
        raise ConfigError([Problem(path, unclosed, "", said, "close it with }")])
    if folded != text:
        try:
            return tomllib.loads(folded), text
        except (ValueError, RecursionError) as error:
            complaint = error
    raise _syntax_error(complaint, folded, text, path)


def _syntax_error(error: Exception, parsed: str, written: str, path: str) -> ConfigError:
    """One problem for the parser's complaint, with the line as the user sees it."""
    if isinstance(error, RecursionError):
        return ConfigError([Problem(path, None, "", "lists, tables or dotted keys are nested too deeply")])
    said = str(error)
    line: int | None = None
    if place := re.search(_PLACE, said):
        said = said[: place.start()]
        offset = _offset(parsed, int(place[1]), int(place[2])) if place[1] else len(parsed)
        line = written.rstrip().count("\n", 0, offset) + 1
    hint = next((hint for words, hint in _HINTS if words in said), "")
    if place is not None and not place[1] and said == "Invalid value":
        said, hint = "the file ends where a value is expected", "write the value, or close its list with ]"
    return ConfigError([Problem(path, line, "", f"not valid TOML: {said}", hint)])


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start + column - 1


def tokens(text: str) -> Iterator[Token]:
    """The whole text, cut into tokens. Never fails: a character that means nothing is a word."""
    line = 1
    for match in re.finditer(_PIECE, text):
        yield Token(match.lastgroup or "word", match[0], line)
        line += match[0].count("\n")


def fold(text: str) -> tuple[str, int | None]:
    """The text with every inline table on one line, offset for offset, and the line of one left open.

    A comma before the closing brace goes too. Strings and what lies in lists stay as they are: line
    breaks and comments are legal there.
    """
    out: list[str] = []
    opened: list[Token] = []
    comma: int | None = None  # a comma with nothing but blanks behind it so far
    for token in tokens(text):
        braced = bool(opened) and opened[-1].text == "{"
        piece = token.text
        if braced and token.kind in {"newline", "comment"}:
            piece = " " * len(piece)
        elif token.kind == "mark" and piece in "[{":
            opened.append(token)
        elif token.kind == "mark" and piece in "]}":
            if braced and piece == "}" and comma is not None:
                out[comma] = " "
            if opened and opened[-1].text == _OPENER[piece]:
                opened.pop()
        elif piece in {'"', "'"}:  # a quote that never ends: whatever follows is not to be trusted
            return text, None
        if token.kind not in {"space", "newline", "comment"}:
            comma = len(out) if braced and piece == "," else None
        out.append(piece)
    unclosed = next((token.line for token in opened if token.text == "{"), None)
    return "".join(out), unclosed


class Lines:
    """Where a key stands, or nothing when scanner and parser do not see the same keys."""

    def __init__(self, text: str, document: dict[str, Any]) -> None:
        self._text = text
        self._document = document
        self._found: dict[KeyPath, int] | None = None

    def __call__(self, where: KeyPath) -> int | None:
        """The line of the key, or of the nearest table around it when the key itself is missing.

        What belongs into a table that is not there at all is missing from the first line on.
        """
        if self._found is None:
            found = positions(self._text)
            self._found = {(): 1} | found if found.keys() == set(_paths(self._document)) else {}
        while where and where not in self._found:
            where = where[:-1]
        return self._found.get(where)


def _paths(document: dict[str, Any]) -> Iterator[KeyPath]:
    """Not by recursion: a dotted key nests as deep as it likes."""
    todo: list[tuple[KeyPath, Any]] = [((), document)]
    while todo:
        where, node = todo.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        inner = [((*where, key), value) for key, value in items]
        yield from (path for path, _ in inner)
        todo += [pair for pair in inner if isinstance(pair[1], dict | list)]


def positions(text: str) -> dict[KeyPath, int]:
    """The line of every key, table and list item of a document that parses."""
    scanner = _Scanner(text)
    with suppress(IndexError, ValueError, RecursionError):  # what was not found is not shown
        scanner.document()
    return scanner.found


class _Scanner:
    """Walks the tokens once. Trusts that the document is valid: tomllib has said so."""

    def __init__(self, text: str) -> None:
        self.found: dict[KeyPath, int] = {}
        self._tokens = [token for token in tokens(text) if token.kind not in {"space", "comment"}]
        self._at = 0
        self._counts: dict[KeyPath, int] = {}  # arrays of tables: how many so far

    def document(self) -> None:
        base: KeyPath = ()
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "newline":
                self._at += 1
            elif token.text == "[":
                base = self._header()
            else:
                self._pair(base)

    def _header(self) -> KeyPath:
        line = self._tokens[self._at].line
        depth = 2 if self._tokens[self._at + 1].text == "[" else 1
        self._at += depth
        *parents, last = self._key()
        self._at += depth
        where: KeyPath = ()
        for part in parents:
            where = (*where, part)
            self.found.setdefault(where, line)
            if where in self._counts:
                where = (*where, self._counts[where] - 1)
        where = (*where, last)
        if depth == 1:
            self.found[where] = line
            return where
        self.found.setdefault(where, line)
        count = self._counts.get(where, 0)
        self._counts[where] = count + 1
        where = (*where, count)
        self.found[where] = line
        return where

    def _key(self) -> list[str]:
        parts = [self._part()]
        while self._tokens[self._at].text == ".":
            self._at += 1
            parts.append(self._part())
        return parts

    def _part(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "string":
            return str(tomllib.loads(f"key = {token.text}")["key"])
        return token.text

    def _pair(self, base: KeyPath) -> None:
        line = self._tokens[self._at].line
        where = base
        for part in self._key():
            where = (*where, part)
            self.found.setdefault(where, line)
        self._at += 1  # the equals sign
        self._value(where)

    def _value(self, where: KeyPath) -> None:
        opener = self._tokens[self._at].text
        self._at += 1
        if opener == "[":
            self._items(where)
        elif opener == "{":
            self._inline(where)
        else:
            while self._at < len(self._tokens) and self._tokens[self._at].text not in _ENDS:
                self._at += 1

    def _items(self, where: KeyPath) -> None:
        index = 0
        while (token := self._tokens[self._at]).text != "]":
            if token.text in _GAPS:
                self._at += 1
                continue
            self.found[*where, index] = token.line
            self._value((*where, index))
            index += 1
        self._at += 1

    def _inline(self, where: KeyPath) -> None:
        while self._tokens[self._at].text != "}":
            if self._tokens[self._at].text in _GAPS:
                self._at += 1
                continue
            self._pair(where)
        self._at += 1
