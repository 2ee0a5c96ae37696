r"""When a status file says that its phase is done: a closed grammar, and doubt is no.

Agents scaffold, quote, promise and take back; a phase must not advance on any of that. So nothing counts
that this page does not describe. An error in the strict direction costs a nudge; one in the other
direction skips work. Every refusal names the line that stands against the marker.

1. The marker is the *last* line of the file that begins with it at the first column, outside code fences,
   comments and front matter. What an earlier one said is history; a later one takes it back.
2. Its own line is closed: nothing, `.` `!` `:`, a good sign, `[x]`, a date, a commit; or a separator
   (`:` `-` `,` `(`, or a word like "verified") and a statement.
3. Everything below it, to the end of the file, is its body. A heading there has a title of a closed list
   (Evidence, Log, ...). Every statement is read by its polarity: statement.py.
4. A body that is not empty says in one word at least that something is finished ("holds", "passes",
   "implemented", a date, a commit): words that we do not know are no proof.
5. Above the marker, no box is open, front matter has no doubt in it, and no section called TODO, In
   progress, Remaining or the like has anything in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from fleet.core.loop.statement import (
    EVIDENCE,
    GOOD_SIGNS,
    TAGS,
    TICKED,
    TRAILS_OFF,
    Statement,
    has_open_box,
    plain,
    read_statement,
    without_code,
)

_NEWLINE = re.compile(r"\r\n|\n|\r")  # not splitlines(): a form feed must not make a column 0
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?=\s|$)(.*)")
_UNDERLINE = re.compile(r"={2,}\s*")
_BEGINS = re.compile(r"\s*(?:[-*+\u2022]|\d+[.)]|>|\||#)(?:\s|$)")  # a line of its own, no continuation
_EMPTY_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d+[.)])\s*")
_ONLY_EVIDENCE = re.compile(
    rf"(?:{EVIDENCE}|\b(?:at|on|by|in|and|commit|utc)\b|[\s,.:@()!-])+", re.IGNORECASE
)

# What may stand between the marker and a statement on the same line.
_SEPARATOR = re.compile(
    r"\s*(?:[:\u2013\u2014,;(]|[.!]+\s|-+\s)\s*"
    r"|\s+(?=(?:verified|confirmed|reviewed|tested|checked|approved|completed?|finished|and|as\s+of|at|on)\b)",
    re.IGNORECASE,
)


def _titles(text: str) -> frozenset[str]:
    return frozenset(title.strip() for title in text.split(","))


_TITLES = _titles("""
    evidence, summary, log, work log, history, changelog, changes, what changed, notes, note, details,
    detail, verification, verified, how to verify, how to check, proof, results, result, output, commands,
    tests, test, testing, test results, checks, review, reviews, review history, verdict, commit, commits,
    files, files changed, artifacts, artefacts, deliverables, what was done, what was built, what is done,
    implementation, implemented, completed, done, acceptance, acceptance criteria, acceptance items, items,
    coverage, gates, references, links, sign-off, signoff, decisions, design, background, appendix
""")
_LISTS_OF_WORK = _titles("""
    todo, to do, todos, to-do, remaining, remaining work, remaining items, what remains, what is left, left,
    left to do, in progress, work in progress, wip, in work, doing, ongoing, current, backlog, blocked,
    blockers, not done, not yet done, open, open items, open issues, open tasks, missing, unfinished,
    incomplete, pending, next, next steps, up next, failing, failures
""")
_NOTHING = re.compile(
    r"(?:[-*+\u2022]\s*)?[(*_]*(?:(?:none|nothing|n/?a|empty|nil|all\s+done|done)\b.*)?[-\u2014)*_.]*",
    re.IGNORECASE,
)


class Done(NamedTuple):
    """The answer, the line that decides (from 1), and for a refusal the reason."""

    done: bool
    line: int = 0
    why: str = ""


class _Line(NamedTuple):
    number: int
    text: str
    fenced: bool = False  # inside a code fence
    fence: bool = False  # the fence itself
    comment: bool = False  # begins inside a comment, or is nothing else
    front: bool = False  # front matter, its rules included

    @property
    def shown(self) -> bool:
        """Does it stand where a marker or a heading may stand?"""
        return not (self.fenced or self.fence or self.comment or self.front)


@lru_cache(maxsize=8)  # it is asked at every look, and seldom about something new
def read_done(data: bytes | str, marker: str) -> Done:
    """Whether this status file says that its phase is done."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    lines = list(_lines(text.removeprefix("\ufeff")))
    marker = marker.rstrip()
    at = [i for i, line in enumerate(lines) if marker and line.text.startswith(marker)]
    here = next((i for i in reversed(at) if lines[i].shown), None)
    if here is None:
        return _nowhere(lines, at, marker)
    line = lines[here]
    rest = line.text[len(marker) :]
    why = _on_the_line(rest)
    if why:
        return Done(done=False, line=line.number, why=f"{why}: {_quote(line.text)}")
    against = _body(lines[here + 1 :]) or _above(lines[:here])
    if against is None:
        return Done(done=True, line=line.number)
    number, why = against
    return Done(done=False, line=number, why=f"{why}, so the marker on line {line.number} does not count")


def _nowhere(lines: list[_Line], at: list[int], marker: str) -> Done:
    """No marker stands where it counts; one that stands elsewhere is named."""
    if not at:
        return Done(done=False, why=f"no line begins with {marker!r}")
    line = lines[at[-1]]
    where = "a comment" if line.comment else "a code block"
    if line.front:
        where = "front matter"
    return Done(done=False, line=line.number, why=f"the marker stands in {where}")


def _on_the_line(rest: str) -> str:
    """Why what follows the marker on its line takes it back, or makes another title of it."""
    rest = plain(re.sub(r"\s#+\s*$", "", rest.rstrip()).replace("<!--", " ").replace("-->", " "))
    bare = "".join(c for c in TICKED.sub("", rest) if c not in GOOD_SIGNS).strip("\ufe0f ")
    if not bare.strip(" .!:*_"):
        return "the line trails off" if bare.endswith(TRAILS_OFF) else ""
    if not rest[0].isspace() and not _SEPARATOR.match(rest):
        return "the line goes on as another word"
    if _ONLY_EVIDENCE.fullmatch(bare) and re.search(EVIDENCE, bare, re.IGNORECASE):
        return ""
    found = _SEPARATOR.match(rest)
    if found is None:
        return "the line goes on as another title"
    said = read_statement(rest[found.end() :].rstrip(" )"))
    if said.against:
        return f"{_quote(said.against)} takes it back"
    return "" if said.speaks else "what follows the marker does not say that anything is finished"


def _body(below: list[_Line]) -> tuple[int, str] | None:
    """The line of the body that stands against the marker, and why."""
    first, speaks = 0, False
    for number, kind, text in _statements(below):
        if kind is _Kind.HEADING:
            if _title(text) not in _TITLES:
                return number, f"another section follows: {_quote(text)}"
            continue
        first = first or number
        if kind is _Kind.EMPTY_ITEM:
            return number, "a list item is empty"
        said = read_statement(text, fenced=kind is _Kind.FENCED)
        if said.against:
            return number, f"{_quote(said.against)} stands against it"
        speaks = speaks or said.speaks
    if speaks or not first:
        return None
    return first, "nothing below the marker says that anything is finished"


def _above(lines: list[_Line]) -> tuple[int, str] | None:
    """What stands above the marker and against it: an open box, doubtful front matter, work to do."""
    title, number = "", 0
    for line in lines:
        if line.front:
            why = _doubt_in_front(line.text)
        elif not line.shown:
            continue
        elif heading := _HEADING.match(line.text):
            title, number = _title(heading[1]), line.number
            continue
        else:
            why = _work_to_do(line.text, title, number)
        if why:
            return line.number, why
    return None


def _doubt_in_front(text: str) -> str:
    said = read_statement(text.replace(":", " ")) if text.strip("- ") else Statement()
    return f"{_quote(said.against)} stands in the front matter" if said.against else ""


def _work_to_do(text: str, title: str, number: int) -> str:
    """Why a line in the section of that title, which begins on that line, says that there is work left."""
    if has_open_box(text):
        return "a box is open"
    if title in _LISTS_OF_WORK and not _NOTHING.fullmatch(text.strip()):
        return f"the section {_quote(title)} on line {number} is not empty"
    return ""


class _Kind(Enum):
    """What a line, or a paragraph, is in the body of a marker."""

    NOTHING = auto()
    HEADING = auto()
    FENCED = auto()
    EMPTY_ITEM = auto()
    TEXT = auto()


def _statements(lines: list[_Line]) -> Iterator[tuple[int, _Kind, str]]:
    """Headings and statements, each with its first line. A paragraph that is wrapped is one statement."""
    number, kept = 0, ""
    below = [*(line.text for line in lines[1:]), ""]
    for line, follows in zip(lines, below, strict=False):  # of no line nothing follows
        text = line.text.replace("<!--", " ").replace("-->", " ")
        title = _heading(line, text, follows)
        kind = _kind(line, text, title)
        if kept and _ends_paragraph(line, text, title):
            yield number, _Kind.TEXT, kept
            kept = ""
        if kind is _Kind.TEXT and kept:
            kept += "\n" + text.strip()
        elif kind is _Kind.TEXT:
            number, kept = line.number, text.strip()
        elif kind is not _Kind.NOTHING:
            yield line.number, kind, text if title is None else title
    if kept:
        yield number, _Kind.TEXT, kept


def _heading(line: _Line, text: str, follows: str) -> str | None:
    """The title, if the line is a heading: one with #, or one that is underlined."""
    if not line.shown:
        return None
    if heading := _HEADING.match(line.text):
        return heading[1]
    return text if text.strip() and _UNDERLINE.fullmatch(follows) else None


def _kind(line: _Line, text: str, title: str | None) -> _Kind:
    if line.fence or not TAGS.sub("", text).strip() or _is_rule(text):
        return _Kind.NOTHING
    if title is not None:
        return _Kind.HEADING
    if line.fenced:
        return _Kind.FENCED
    return _Kind.EMPTY_ITEM if _EMPTY_ITEM.fullmatch(text) else _Kind.TEXT


def _ends_paragraph(line: _Line, text: str, title: str | None) -> bool:
    """Does the line stand alone, or begin something of its own?"""
    own = line.fenced or line.fence or title is not None or not text.strip()
    return own or bool(_BEGINS.match(text) or _UNDERLINE.fullmatch(text))


def _title(text: str) -> str:
    return plain(text).strip().rstrip("#").strip(" *_:.!").lower()


def _is_rule(text: str) -> bool:
    """A line drawn across, or below the head of a table."""
    return len(text.strip()) > 1 and set(text) <= set("-*_=|: \t")


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return repr(words[:60])


def _lines(text: str) -> Iterator[_Line]:
    """Every line, told where it stands. Unclosed fences and comments run to the end."""
    rows = _NEWLINE.split(text)
    front = _front_matter(rows)
    yield from (_Line(number, row, front=True) for number, row in enumerate(rows[:front], 1))
    fence, comment = "", False
    for number, row in enumerate(rows[front:], front + 1):
        if fence:
            closes = _closes(fence, row)
            yield _Line(number, row, fenced=not closes, fence=closes)
            fence = "" if closes else fence
        elif not comment and (fence := _opened(row)):
            yield _Line(number, row, fence=True)
        else:
            yield _Line(number, row, comment=comment or row.lstrip().startswith("<!--"))
            comment = _in_comment_after(row, before=comment)


def _opened(row: str) -> str:
    """The fence that a line opens; empty when it opens none."""
    found = _FENCE.fullmatch(row)
    return found[1] if found and not ("`" in found[2] and found[1][0] == "`") else ""


def _closes(fence: str, row: str) -> bool:
    found = _FENCE.fullmatch(row)
    return found is not None and found[1].startswith(fence) and not found[2].strip()


def _in_comment_after(row: str, *, before: bool) -> bool:
    """Does the next line begin inside a comment?"""
    shown = without_code(row)
    opens, closes = shown.rfind("<!--"), shown.rfind("-->")
    return before if opens == closes else opens > closes


def _front_matter(rows: list[str]) -> int:
    """How many lines of it there are: from a first line of dashes to the next, with keys between them."""
    if not rows or rows[0].rstrip() != "---":
        return 0
    for number, row in enumerate(rows[1:], 2):
        if row.rstrip() in {"---", "..."}:
            return number
        if row.strip() and not re.match(r"\s|#|-|[\w-]+\s*:", row):
            return 0
    return 0
