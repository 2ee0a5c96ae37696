"""When a status file says that its phase is done, and when it only looks like it.

Agents scaffold, quote and promise; a phase must not advance on any of that. A marker counts when it
stands at the start of a line, outside code fences and comments, as the whole line or followed by words
of its own, and when neither those words nor the first words below it take it back. Every refusal says
why, because "why did it not advance?" is what people ask at three in the morning.

An error in the strict direction costs a nudge; one in the other direction skips work. So doubt is "no".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NEWLINE = re.compile(r"\r\n|\n|\r")  # not splitlines(): a form feed must not make a column 0
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_HEADING = re.compile(r"#{1,6}(\s|$)")
_MARKUP = " \t\u00a0-*+>_~`:;,.!|=#\u2013\u2014\u2192\u2022"  # what may stand before the first word

# What may follow the marker on its own line: nothing, white space, or punctuation that ends a word.
_TAIL = re.compile(r"$|\s|[:\u2013\u2014]|[-.,;!\u2026]+(\s|$)")

# Read after markup is stripped, at the start of the text.
_TAKES_BACK = re.compile(
    r"""(?:
      not\b | never\b | no\s*(?:[.!,;:\u2013\u2014]|$) | nope\b | false\b
    | pending\b | t\.?b\.?[acd]\b | to\s?do\b | to\s+be\b | to\s+follow\b | n\s?/\s?a\b
    | none\s*(?:yet|so\s+far|[.!]?\s*$) | nothing\s+(?:yet|so\s+far|done|here)
    | wip\b | (?:work\s+)?in[\s-]progress\b | incomplete\b | unfinished\b | unstarted\b
    | blocked\b | waiting\b | awaiting\b
    | (?:only\s+)?(?:when|once|if|until|unless)\b | only\s+after\b | as\s+soon\s+as\b
    | (?:will|should|shall|must)\b | (?:please\s+)?(?:fill|replace|insert|leave)\b
    | (?:write|add|put)\s+(?:this|the|a|an|one|your|here|it)\b
    | placeholder\b | (?:\.{3}|\u2026)\s*$ | \?+ | \[\s?\] | x{3,}
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_DENIES = re.compile(  # the same, anywhere in the sentence
    r"(?:\bnot|n['\u2019]t)\s+(?:\w+\s+)?(?:yet|done|complete|completed|finished|ready|started|met|passing)\b"
    r"|\byet\s+to\b|\bstill\s+(?:pending|open|missing|to\s+do|in\s+progress)\b",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(r"\d{4}-\d{2}-\d{2}|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")  # a date or a commit


@dataclass(frozen=True, slots=True)
class Done:
    """The answer, the line it stands on (from 1), and for a refusal the reason."""

    done: bool
    line: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    fenced: bool = False  # inside a code fence
    fence: bool = False  # the fence itself
    comment: bool = False  # begins inside a comment, or is nothing else


def read_done(data: bytes | str, marker: str) -> Done:
    """Whether this status file carries a real marker."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    lines = list(_lines(text.removeprefix("\ufeff")))
    marker = marker.rstrip()
    refusal = Done(done=False, why=f"no line begins with {marker!r}")
    for position, line in enumerate(lines):
        if not marker or not line.text.startswith(marker):
            continue
        why = _refuse(line, marker, lines[position + 1 :])
        if not why:
            return Done(done=True, line=line.number)
        refusal = Done(done=False, line=line.number, why=why)
    return refusal


def _refuse(line: _Line, marker: str, below: list[_Line]) -> str:
    """Why the marker on this line does not count; empty when it does."""
    if line.fenced or line.fence:
        return "the marker stands in a code block"
    if line.comment:
        return "the marker stands in a comment"
    rest = line.text[len(marker) :]
    if not _TAIL.match(rest):
        return f"the line goes on as another word: {line.text.strip()[:60]!r}"
    rest = rest.rstrip().rstrip("#")
    for words in (rest, *_first_words(below)):
        if _is_placeholder(words):
            return f"what follows takes it back: {words.strip()[:60]!r}"
    return ""


def _first_words(below: list[_Line]) -> Iterator[str]:
    """The first words under the marker: a comment that stands there, and the first line that shows."""
    for line in below:
        if line.fence:
            continue
        text = line.text.replace("<!--", " ").replace("-->", " ").strip()
        if not text:
            continue
        if not line.fenced and not line.comment and _HEADING.match(line.text):
            return
        yield text
        if not line.comment:
            return


def _is_placeholder(text: str) -> bool:
    words = text.replace("<!--", " ").replace("-->", " ").lstrip(_MARKUP).rstrip(" \t*_`.")
    if not words:
        return "..." in text or "\u2026" in text
    if _TAKES_BACK.match(words) or _DENIES.search(words):
        return True
    if words[0] == "<":
        return ">" in words
    if words[0] in "([{\uff08" and words[-1] in ")]}\uff09":
        inner = words[1:-1].strip(_MARKUP)
        ticked = words[0] == "[" and inner.lower() == "x"
        return not ticked and (not _EVIDENCE.search(inner) or bool(_TAKES_BACK.match(inner)))
    return bool(_TAKES_BACK.match(words.lstrip("([\"'\u201c\u2018")))


def _lines(text: str) -> Iterator[_Line]:
    """Every line, told whether it stands in a code fence or a comment. Unclosed ones run to the end."""
    fence, comment = "", False
    for number, line in enumerate(_NEWLINE.split(text), 1):
        if fence:
            found = _FENCE.fullmatch(line)
            closes = found and found[1].startswith(fence) and not found[2].strip()
            yield _Line(number, line, fenced=not closes, fence=bool(closes))
            fence = "" if closes else fence
            continue
        inside = comment
        if not comment and (found := _FENCE.fullmatch(line)) and not ("`" in found[2] and found[1][0] == "`"):
            fence = found[1]
            yield _Line(number, line, fence=True)
            continue
        shown = _CODE_SPAN.sub("", line)
        opens, closes_at = shown.rfind("<!--"), shown.rfind("-->")
        if opens >= 0 or closes_at >= 0:
            comment = opens > closes_at
        yield _Line(number, line, comment=inside or line.lstrip().startswith("<!--"))
