"""Text from outside: made safe to show, measured, freed of secrets; its JSON read, its columns drawn.

Every text that agent-fleet did not write passes through one of three functions before a person sees it.
`for_display` takes terminal control out of what an agent wrote, `one_line` does so on one line, `escaped`
spells it out in a name or a value, where a missing letter would mislead. `redact` takes secrets out;
`Redactor` does the same to a stream, and where the stream was cut makes no difference, because both work on
whole lines.
"""

from __future__ import annotations

import binascii
import functools
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

MARK = "[redacted]"
CHOICES = 40  # of a closed set: the keys of any table, but not a hundred agents
MIN_SECRET = 8  # a shorter value would blank out ordinary words


def _printable(text: str, keep: str = "") -> str:
    """Without control, format and unassigned characters; every kind of gap becomes a space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else " " * c.isspace() for c in text)


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, whatever its case; empty when none is near."""
    import difflib  # only when something is wrong

    folded = {choice.lower(): choice for choice in sorted(known)}
    found = difflib.get_close_matches(word.lower(), folded, n=1)
    return folded[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint for a word that is not in a closed set: the word probably meant, or all of them."""
    choices = sorted(known)
    if meant := closest(word, choices):
        return f'did you mean "{meant}"?'
    more = f" and {len(choices) - CHOICES} more" if len(choices) > CHOICES else ""
    return f"known: {', '.join(choices[:CHOICES])}{more}" if choices else ""


def plural(number: int, noun: str) -> str:
    """One agent, two agents: 1 death, 2 deaths."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def width(text: str) -> int:
    """How many terminal cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# Terminal control: CSI (colours, cursor moves), OSC and DCS (titles, clipboards), and the short ones.
_ESCAPES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)


def for_display(text: str) -> str:
    """Foreign text without terminal control, keeping its lines; tabs become spaces. Idempotent."""
    plain = re.sub(_ESCAPES, "", text) if not text.isprintable() else text
    return _printable(plain.replace("\r\n", "\n").expandtabs(8), keep="\n")


def one_line(text: str) -> str:
    """The same on one line, with single spaces."""
    return " ".join(for_display(text).split())


def escaped(text: str, keep: str = "") -> str:
    """Foreign text in which a character that would steer a terminal is spelt out. Idempotent."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


_MINUTE, _HOUR = 60, 3600

# What secrets look like. A group `keep*` stays: it says what was taken out. Compiled at first use, because
# most commands never need it.
_SHAPES = r"""
      (?P<keep>(?i:\bauthorization)["']?\s*[:=]\s*["']?)
        (?:(?i:basic|bearer|token|digest|negotiate)\s+)?[^\s"',;]+
    | (?P<keep2>(?i:\b(?:x-api-key|api[_-]?key|access[_-]?token|client[_-]?secret|password))
        ["']?\s*[:=]\s*["']?)
        [^\s"',;&]{8,}
    | (?P<keep3>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://)[^\s/@"'<>]+(?=@)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,} | \b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{16,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | \bxapp-[A-Za-z0-9-]{10,}
    | \bAIza[A-Za-z0-9_-]{30,} | \bya29\.[A-Za-z0-9_-]{20,}
    | \b(?:hf_|npm_|gsk_|r8_|dop_v1_|pypi-|xai-|pplx-)[A-Za-z0-9_-]{20,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
"""
# None of the shapes can be there without one of these, and looking for words is far quicker.
_HINTS = (
    *("authorization", "apikey", "api-key", "api_key", "access", "secret", "password", "://"),
    *("sk-", "pk-", "rk-", "_live_", "_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "akia", "asia", "xox", "xapp-", "aiza", "ya29.", "hf_", "npm_", "gsk_", "r8_", "dop_v1_"),
    *("pypi-", "xai-", "pplx-", "eyj"),
)


@functools.cache
def _shapes() -> re.Pattern[str]:
    return re.compile(_SHAPES, re.VERBOSE)


_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = 200  # counting the first; a key block that never ends must not swallow the rest of a log
_SEGMENT = 64 << 10  # a line longer than this is cut at a space

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|PAT)(?:_|$|S$)",
    re.IGNORECASE,
)


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables whose names say that they hold a secret."""
    found = (v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v) >= MIN_SECRET)
    return tuple(sorted(set(found)))


def _base64_forms(value: bytes) -> set[str]:
    """How a value looks inside base64, at each of the three places it can start, both alphabets."""
    forms = set()
    for lead in range(3):
        text = binascii.b2a_base64(b"\0" * lead + value, newline=False).decode()
        certain = text[(0, 2, 3)[lead] : (lead + len(value)) * 8 // 6]
        forms |= {certain, certain.replace("+", "-").replace("/", "_")}
    return forms


def _percent(value: bytes) -> str:
    """As it looks in a URL."""
    return "".join(chr(b) if re.match(rb"[A-Za-z0-9_.~-]", bytes([b])) else f"%{b:02X}" for b in value)


def _forms(secret: str) -> set[str]:
    """Each line of the secret, as it is and as it looks when encoded."""
    found: set[str] = set()
    for value in filter(lambda line: len(line) >= MIN_SECRET, map(str.strip, secret.splitlines())):
        raw = value.encode("utf-8", "surrogatepass")
        found |= {value, _percent(raw), _percent(raw).replace("%20", "+"), json.dumps(value)[1:-1]}
        found |= _base64_forms(raw)
    return {f for f in found if len(f) >= MIN_SECRET and f not in MARK and MARK not in f}


@functools.lru_cache(maxsize=8)
def _known(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    forms = sorted({f for s in secrets for f in _forms(s)}, key=lambda f: (-len(f), f))
    return re.compile("|".join(map(re.escape, forms))) if forms else None


def _blank(match: re.Match[str]) -> str:
    kept = match["keep"] or match["keep2"] or match["keep3"] or ""
    return kept + MARK


class Redactor:
    """Takes secrets out of a stream of text: `feed` pieces, then `close`. Holds back the unfinished line."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _known(tuple(secrets))
        self._rest = ""
        self._key_lines = 0  # how many more lines of a private key to swallow

    def feed(self, piece: str) -> str:
        """The clean text of every line that is now complete."""
        *lines, rest = (self._rest + piece).split("\n")
        clean = [self._line(line, "\n") for line in lines]
        early, self._rest = self._long(rest)
        return "".join(clean) + early

    def line(self, line: str) -> str:
        """The clean text of a line that stands alone."""
        return self._line(line, "")

    def close(self) -> str:
        """What was held back. The next `feed` begins afresh."""
        clean = self.line(self._rest)
        self._rest, self._key_lines = "", 0
        return clean

    def _long(self, line: str) -> tuple[str, str]:
        """The clean beginning of a line too long to hold, and the rest; only the line decides where."""
        clean, done = [], 0
        while len(line) - done > _SEGMENT:
            cut = line.rfind(" ", done, done + _SEGMENT) + 1 or done + _SEGMENT
            clean.append(self._clean(line[done:cut]))
            done = cut
        return "".join(clean), line[done:]

    def _line(self, line: str, end: str) -> str:
        early, line = self._long(line)
        inside_key = self._key_lines > 0
        clean = self._clean(line)
        return early + clean + ("" if inside_key and not clean else end)

    def _clean(self, line: str) -> str:
        return self._plain(self._without_keys(line))

    def _without_keys(self, line: str) -> str:
        """Private keys may take many lines: the first leaves a mark, the others nothing."""
        if self._key_lines:
            ends = _KEY_ENDS.search(line)
            self._key_lines = 0 if ends else self._key_lines - 1
            return self._without_keys(line[ends.end() :]) if ends else ""
        begins = _KEY_BEGINS.search(line)
        if not begins:
            return line
        self._key_lines = _KEY_LINES
        return line[: begins.start()] + MARK + self._without_keys(line[begins.end() :])

    def _plain(self, line: str) -> str:
        if self._known:
            line = self._known.sub(MARK, line)
        lower = line.lower()
        return _shapes().sub(_blank, line) if any(map(lower.__contains__, _HINTS)) else line


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without secrets: the given values in any encoding, and whatever looks like one. Idempotent."""
    redactor = Redactor(secrets)
    return redactor.feed(text) + redactor.close() if "\n" in text else redactor.line(text)


def ago(seconds: float) -> str:
    """A duration in at most five characters."""
    s = max(0, int(seconds))
    if s < _MINUTE:
        return f"{s}s"
    if s < _HOUR:
        return f"{s // _MINUTE}m"
    if s < 10 * _HOUR:
        return f"{s // _HOUR}h{s % _HOUR // _MINUTE:02d}"
    return f"{s // _HOUR}h" if s < 48 * _HOUR else f"{s // (24 * _HOUR)}d"


# --------------------------------------------------------------------------------------------------
# JSON that another program wrote: never trusted to be whole, or to be what it should be.


def as_object(raw: bytes | bytearray | str) -> dict[str, Any]:
    """A JSON object, or an empty one. Bytes that are no UTF-8 and bare control characters are forgiven."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    try:
        value = json.loads(text.lstrip("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines text, one a line; anything else is passed over."""
    start = 0
    while start < len(raw):  # a line at a time: mostly the first one tells all
        end = raw.find(b"\n", start) + 1 or len(raw)
        if record := as_object(raw[start:end]):
            yield record
        start = end


# --------------------------------------------------------------------------------------------------
# Columns of text for people. Knows how wide characters are, and never lets a hostile one through.


GAP = "  "
ROOM = 20  # what the last column needs to say something


def render(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    limit: int = 0,
    paint: Callable[[str, str], str] | None = None,
    figures: bool = False,
    ruled: Collection[int] = (),
    spare: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table.

    A cell is a text or (text, colour). `limit`: how wide a line may be, 0 for as wide as needed. Then the
    columns that `spare` names, the least important first, are left out if the last column would get too
    little room. It is cut to fit, and so are the widest others. `figures` puts every column but the first to
    the right. A line of dashes stands above the rows whose numbers are in `ruled`.
    """
    grid = [[(name, "bold", width(name)) for name in map(escaped, header)]]
    grid += [[_cell(cell) for cell in row] for row in rows]
    widths = [max(cell[2] for cell in column) for column in zip(*grid, strict=True)]
    if limit:
        grid, widths = _narrowed(grid, widths, limit, [list(header).index(name) for name in spare])
    whole = _whole(widths)
    for number, row in enumerate(grid, start=-1):
        if number in ruled:
            yield "-" * whole
        cells = []
        for column, ((text, colour, taken), room) in enumerate(zip(row, widths, strict=True)):
            shown = text if taken <= room else fit(text, room)
            pad = " " * (room - (taken if shown is text else width(shown)))
            painted = paint(shown, colour) if paint and colour else shown
            cells.append(pad + painted if figures and column else painted + pad)
        yield GAP.join(cells).rstrip()


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _narrowed(
    grid: list[list[tuple[str, str, int]]], widths: list[int], limit: int, spare: Sequence[int]
) -> tuple[list[list[tuple[str, str, int]]], list[int]]:
    """The columns that fit, and how wide each may be."""
    last = min(widths[-1], ROOM)
    columns = [c for c in range(len(widths)) if c not in spare]
    for column in reversed(spare):
        if _whole([widths[c] for c in (column, *columns[:-1])] + [last]) <= limit:
            columns = sorted([*columns, column])
    kept = [widths[c] for c in columns]
    kept[-1] = min(kept[-1], max(limit - (_whole(kept) - kept[-1]), min(last, 8)))
    while _whole(kept) > limit and max(kept) > 1:
        kept[kept.index(max(kept))] -= 1
    return [[row[c] for c in columns] for row in grid], kept


def _cell(cell: Any) -> tuple[str, str, int]:
    """What is shown, in which colour, and how wide it is."""
    text, colour = cell if isinstance(cell, tuple) else (cell, "")
    text = escaped(str(text))
    return text, colour, width(text)


def wrapped(text: str, room: int, lead: str = "", indent: str = "") -> Iterator[str]:
    """Lines that end between words: a lead before the first, an indent before the others.

    A word that is longer than a line is left whole.
    """
    line = ""
    for word in text.split(" "):
        if line and width(f"{lead}{line} {word}") > room:
            yield lead + line
            line, lead = word, indent
        else:
            line = f"{line} {word}" if line else word
    yield lead + line


def fit(text: str, room: int) -> str:
    """The text, or as much of it as fits with a sign that something is missing."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + "…"
