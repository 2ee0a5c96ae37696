r"""When a status file says that its phase is done: a closed grammar, and doubt is no.

Agents scaffold, quote, promise and take back; a phase must not advance on any of that. So nothing counts
that this page does not describe. An error in the strict direction costs a nudge; one in the other
direction skips work. Every refusal names the line that stands against the marker.

1. The marker is the *last* line of the file that begins with it at the first column, outside code fences,
   comments and front matter. What an earlier one said is history; a later one takes it back.
2. Its own line is closed: nothing, `.` `!` `:`, a good sign, `[x]`, a date, a commit; or a separator
   (`:` `-` `,` `(`, or a word like "verified") and a statement.
3. Everything below it, to the end of the file, is its body. A heading there has a title of a closed list
   (Evidence, Log, ...). Every statement is read by its polarity:
     - a hedge (until, almost, will, ...) stands against the marker;
     - a word of trouble (fails, remaining, TODO, ...) does, unless a negation belongs to it ("no open
       issues", "nothing is pending", "failures: 0") or a remedy does ("fixed the failing test");
     - a negation does, unless such a word belongs to it;
     - so do an open box, a question, struck words, a blank to be filled in, a sign that is no good sign,
       and a part of a whole (`3/5`, `2 of 5`, `50%`; coverage is none).
4. A body that is not empty says in one word at least that something is finished ("holds", "passes",
   "implemented", a date, a commit): words that we do not know are no proof.
5. Above the marker, no box is open, front matter has no doubt in it, and no section called TODO, In
   progress, Remaining or the like has anything in it.

Polarity is decided on classes of words, one letter each: the tables below are the grammar.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, lru_cache

_NEWLINE = re.compile(r"\r\n|\n|\r")  # not splitlines(): a form feed must not make a column 0
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile("(`+)")
_HEADING = re.compile(r" {0,3}#{1,6}(?=\s|$)(.*)")
_UNDERLINE = re.compile(r"={2,}\s*")
_BEGINS = re.compile(r"\s*(?:[-*+\u2022]|\d+[.)]|>|\||#)(?:\s|$)")  # a line of its own, no continuation
_EMPTY_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d+[.)])\s*")
_BOX = re.compile(r"^[\s>]*(?:[-*+\u2022]|\d+[.)])\s+\[(.?)\](?!\()")
_TICKED = re.compile(r"\[[xX\u2713\u2714]\]")
_TAGS = re.compile(
    r"</?(?:details|summary|br|p|b|i|em|strong|code|pre|kbd|ul|ol|li|a|div|span|sub|sup)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_GOOD_SIGNS = frozenset(
    "\u2705\u2714\u2713\u2611\U0001f389\U0001f38a\U0001f3c1\U0001f7e2\U0001f7e9\U0001f44d\U0001f4af"
    "\U0001f680\U0001f947\U0001f3c6\U0001f973\U0001f64c\u2b50\u2728\U0001f48e\U0001f512\U0001f4dd"
    "\U0001f4cb\U0001f4e6\U0001f4ca\U0001f517\U0001f50d\U0001f9ea\u25cf\u25a0\u25aa\u25b6\u25c6\u00a9\u00ae\u00b0"
)
_DRAWN = re.compile("[\u2500-\u259f\u2190-\u21ff]")  # boxes of a tree or a table, arrows
_EVIDENCE = (  # a date, perhaps with a time; a commit
    r"\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?\s?(?:z|utc|[+-]\d{2}:?\d{2})?)?"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
)
_ONLY_EVIDENCE = re.compile(
    rf"(?:{_EVIDENCE}|\b(?:at|on|by|in|and|commit|utc)\b|[\s,.:@()!-])+", re.IGNORECASE
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


def _words(text: str) -> str:
    return "|".join(re.sub(r"\\? ", r"[\\s-]+", word.strip()) for word in text.split(",") if word.strip())


# One letter each. Earlier rows win; what no row knows is ".".
_CLASSES: tuple[tuple[str, str], ...] = (
    ("P", _EVIDENCE + "|" + _words("next phase, may \\d+, no longer\\b(?= fails?| errors?), error free")),
    (".", _words("""
        not only, no op, error handling, error messages?, error paths?, error cases?, error codes?,
        error types?, error class(?:es)?, errors? (?:carry|carries|names?|points?|shows?), error recovery,
        error reporting, (?:lex|parse|syntax|type|value|runtime) errors?, open source,
        open(?:ing)? (?:paren\\w*|brackets?|braces?), left assoc\\w*, left / right, left/right, left hand,
        left to right, unary minus, left recursi\\w*, left operand, left side, if any,
        exit(?: code| status)? 0, working tree, work tree, as expected, the next phase,
        review (?:says|said), issue #?\\d+
        """)),
    ("H", _words("""
        if, unless, until, till, once, when, whenever, after, except, excluding, apart from, aside from,
        other than, but, however, although, though, nevertheless, yet, still, almost, nearly, mostly,
        mainly, largely, partially, partly, somewhat, more or less, kind of, sort of, basically,
        essentially, practically, virtually, only, just, so far, for now, for the moment, at the moment,
        right now, temporar(?:y|ily), preliminary, provisional(?:ly)?, tentative(?:ly)?, conditional(?:ly)?,
        assuming, provided that, subject to, depends?, depending, soon, later, tomorrow, tonight, next,
        upcoming, eventually, afterwards?, shortly, in a (?:moment|minute|bit|while), will, shall, should,
        would, could, might, may, must, going to, gonna, to be, to follow, to come, to finish, to complete,
        to fix, to review, has to, have to, having to, had to, want(?:s|ed)?, hop(?:e|es|ing|efully), maybe,
        perhaps, probabl[ey], presumably, possibl[ey], potential(?:ly)?, likely, unlikely, supposed(?:ly)?,
        alleged(?:ly)?, apparent(?:ly)?, seemingly, seems?, appears?, think, believe, guess, suspect,
        assumes?, assumed, expecting, try, tries, trying, attempt(?:s|ing|ed)?, working on, work on,
        works on, continu(?:e|es|ing|ed), resum(?:e|es|ing), carry on, keep going, finishing, about to,
        close to, for review, in review(?!\\(| [0-9a-f]{7}), under review, ready to, follow ups?, currently,
        meanwhile, hardly, barely, scarcely, rarely, most, some, few, part of, parts of,
        part (?:one|two|1|2), coming, come back, except for, e\\.g\\.?, for example, template, fill in,
        fill this, replace this, replace me, replace with, insert, leave empty, leave blank,
        write (?:this|here|your|one|a line), add (?:this|here|your|one line|a line|evidence),
        put (?:this|here|your), y{4}, lorem, draft(?:ed)?, revisit, to do when, whether, or not, in theory,
        in principle, modulo, as good as, nearing, getting there, wip, work in progress, in progress,
        in the works, on hold, on the way, under way, underway, ongoing, bar, minus, save for, aside, to go,
        fingers crossed, consider it, call it, ish, kinda, sorta, so close, dependent, requested, as far as,
        i know, opinion, my machine, locally, aims?, aiming, goals?, targets?, plan(?=:), expects?,
        intend(?:s|ed)?, intention, promis(?:e|es|ed|ing), swear, wish, pretend, imagine, suppose,
        to my knowledge, in my view, at first glance, on paper, optimistic(?:ally)?,
        (?:make|ensure|check|verify|confirm|see|let)(?: sure| us| me)*(?: see)?(?: that)? (?:all|every\\w*),
        is (?:it|everything|all)(?= done| complete| finished| ready)
        """)),
    ("T", _words("""
        fail(?:s|ed|ing|ure|ures)?, errors?, errored, broken, breaks?, breaking, bugs?, buggy, issues?,
        problems?, crash(?:es|ed|ing)?, regress(?:ion|ions|ed|es)?, flaky, red, missing, lacks?, lacking,
        incomplete,
        un(?:finished|started|tested|reviewed|verified|merged|committed|pushed|resolved|clear|known|sure|certain),
        un(?:done|met|implemented|checked|solved|confirmed|proven|approved|true|stable|ready|covered|complete),
        open, re[\\s-]?open(?:s|ed|ing)?, pending, outstanding, remain(?:s|ing|ed|der)?, left,
        left[\\s-]?overs?, todos?, to dos?, t\\.?b\\.?[acd]\\.?, fixmes?, x{3}, stub(?:s|bed)?,
        placeholders?, progress, block(?:s|ed|ers?|ing)?, stuck, halted, paused, wait(?:s|ing|ed)?,
        await(?:s|ing|ed)?, deferred, postponed, delayed, skip(?:s|ped|ping)?, ignored?, disabled, omitted,
        withdrawn?, withdraws?, withh[eo]ld, revoked?, retract(?:s|ed)?, rescinded, cancell?ed, rejected,
        refused, reverted, reverts?, rolled back, wrong(?:ly)?, incorrect(?:ly)?, inaccurate, false, bad,
        worse, abandoned, aborted, gave up, given up, needs?, needed, requires, gaps?, caveats?, concerns?,
        doubts?, questions?, risks?, limitations?, workarounds?, partial, half, halfway, started, begun,
        began, beginning, starting, planned, planning, unavailable, impossible, timed out, timeouts?,
        scaffold(?:ing)?, skeleton, findings?, objections?, disputed?, contested, undo, hangs?, hanging,
        hung, leaks?, leaking, deadlocks?, conflicts?, denied, disagrees?, invalidated, superseded,
        obsolete, outdated, stale, n\\s?/\\s?a, to-do, work(?= remains), premature(?:ly)?, mistake(?:s|n)?,
        by accident, dirty
        """)),
    ("Z", _words("none, nothing, nil, nobody, no one, neither")),
    ("E", "(?<![\\w.])0(?!\\w|\\.\\d)|" + _words("zero, empty")),
    ("N", _words("""
        not, no, never, nor, cannot, cant, dont, doesnt, didnt, isnt, arent, wont, unable, without, non, nope
        """) + r"|\w+n['\u2019]t"),
    ("R", _words("""
        fix(?:es|ed)?, resolv(?:e|es|ed), clos(?:e|es|ed), address(?:es|ed)?, remov(?:e|es|ed),
        eliminat(?:es|ed), clear(?:s|ed), mended, corrected, solved, handl(?:e|es|ed), catch(?:es)?, caught,
        rais(?:es|ed), rejects?, cover(?:s|ed), answered, gone
        """)),
    ("G", _words("""
        dependency, dependencies, warnings?, stubs?, secrets?, network, hacks?, mocks?, side effects?,
        comments, nits?, surprises?, exceptions?, shortcuts?, special cases?, duplicates?, drift,
        loss(?:es)?
        """)),
    ("D", _words("""
        done, complet(?:e|es|ed|ion|ely), finish(?:ed|es)?, pass(?:es|ed|ing)?, holds?, held, green, true,
        met, satisf(?:ied|ies|y), fulfill?(?:ed|s), implement(?:ed|s), built, builds?, works?, working,
        merged, shipped, delivered, landed, pushed, committed, verif(?:ied|ies), confirmed, reviewed,
        approved, accepted, tested, checked, ticked, added, adds, written, wrote, created, made, updated,
        refactored, documented, all, every, everything, each, both, ok, okay, success(?:ful|fully)?,
        succeed(?:s|ed)?, clean, ready, proved, proven, shown, demonstrated, validated, achieved,
        accomplished, wrapped, support(?:s|ed), extended, ported, moved, renamed, replaced, generated,
        installed, configured, enabled, introduced, certified, signed, agreed, matches, green, 100\\s?%,
        yes, correct(?:ly)?, stable, solid, pass!
        """)),
    ("F", _words("""
        an?, the, single, one, any, known, more, further, other, else, new, tests?, checks?, items?, cases?,
        work, tasks?, things?, is, are, was, were, has, have, been, be, do, does, did, it, them, there, of,
        list, lists, longer, off by one, major, minor, serious, critical, real, such, its, our, these,
        those, this, that, count
        """)),
    ("M", r"\d+|" + _words("two, three, four, five, six, seven, eight, nine, ten, several")),
    ("O", "and|or|nor"),
    ("C", ","),
    ("K", "[:=]"),
    ("|", r"[;.!()\u2013\u2014]|\s-+\s|/"),
)  # fmt: skip
_REASSURES = re.compile(  # bounded, so that no text takes long
    r"[NZE]F{0,6}[TG](?:F{0,6}[TG]){0,6}(?:(?:CF{0,3}[TG]){0,6}C?OF{0,3}[TG])?(?!F{0,6}R)"  # no open issues
    r"|T[TF]{0,6}K?F{0,3}[ZE](?=[C|]|$)"  # failures: none; the list of failures is empty
    r"|R[FM]{0,6}[TG](?:(?:F{0,3}C?O)?[FM]{0,6}T){0,6}"  # fixed the failing test
    r"|T(?:F{0,6}T){0,6}F{0,6}R"  # all issues resolved
)
_PART = re.compile(
    r"(?<![\w./-])(\d{1,9})\s?(?:/|of|out\s+of)\s?(?:the\s+|all\s+)?(\d{1,9})(?![\w./-]|\.\d)", re.IGNORECASE
)
_PHASE_OF = re.compile(r"\bphase\s+\d+\s*(?:/|of)\s*\d+", re.IGNORECASE)
_PERCENT = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)?)\s?%")
_MEASURE = re.compile(
    r"\b(?:coverage|cov|covered|covers|faster|slower|smaller|less|fewer|cpu|memory)\b", re.IGNORECASE
)
_PYTEST = re.compile(
    r"\b(\d{1,9}) passed(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?|subtests passed))*",
    re.IGNORECASE,
)
_NO_COUNT = re.compile(
    r"(?<![\w.])(?:0|zero|no)\s+(?:tests?|items?|checks?|passed|passing|done|completed?|ran)\b"
    r"(?!\s+(?:fail|skip|remain|left|miss|open|pend))",
    re.IGNORECASE,
)
_BLANK = re.compile(
    r"<[^<>]+>|\{[^{}]*\}|_{4,}|\[(?:date|commit|hash|sha|evidence|name|link|\.\.\.|\u2026)\]", re.IGNORECASE
)
_TRAILS_OFF = ("...", "\u2026")


@dataclass(frozen=True, slots=True)
class Done:
    """The answer, the line that decides (from 1), and for a refusal the reason."""

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
    front: bool = False  # front matter, its rules included

    @property
    def shown(self) -> bool:
        """Does it stand where a marker or a heading may stand?"""
        return not (self.fenced or self.fence or self.comment or self.front)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a statement says: what stands against the marker in it, and whether it says that something is."""

    against: str = ""
    speaks: bool = False


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
    rest = _plain(re.sub(r"\s#+\s*$", "", rest.rstrip()).replace("<!--", " ").replace("-->", " "))
    bare = "".join(c for c in _TICKED.sub("", rest) if c not in _GOOD_SIGNS).strip("\ufe0f ")
    if not bare.strip(" .!:*_"):
        return "the line trails off" if bare.endswith(_TRAILS_OFF) else ""
    if not rest[0].isspace() and not _SEPARATOR.match(rest):
        return "the line goes on as another word"
    if _ONLY_EVIDENCE.fullmatch(bare) and re.search(_EVIDENCE, bare, re.IGNORECASE):
        return ""
    found = _SEPARATOR.match(rest)
    if found is None:
        return "the line goes on as another title"
    said = _read(rest[found.end() :].rstrip(" )"))
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
        said = _read(text, fenced=kind is _Kind.FENCED)
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
    said = _read(text.replace(":", " ")) if text.strip("- ") else _Reading()
    return f"{_quote(said.against)} stands in the front matter" if said.against else ""


def _work_to_do(text: str, title: str, number: int) -> str:
    """Why a line in the section of that title, which begins on that line, says that there is work left."""
    if _has_open_box(text):
        return "a box is open"
    if title in _LISTS_OF_WORK and not _NOTHING.fullmatch(text.strip()):
        return f"the section {_quote(title)} on line {number} is not empty"
    return ""


def _has_open_box(text: str) -> bool:
    box = _BOX.match(text)
    return box is not None and not _TICKED.search(box[0])


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
    if line.fence or not _TAGS.sub("", text).strip() or _is_rule(text):
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


def _read(text: str, *, fenced: bool = False) -> _Reading:
    """One statement, by its signs, its counts and the polarity of its words."""
    if _has_open_box(text) or re.search(r"\[\s\]", text):
        return _Reading("[ ]")
    ticked = bool(_TICKED.search(text))
    text = _plain(_TAGS.sub(" ", _TICKED.sub(" ", text)))
    if "~~" in text and not fenced:
        return _Reading("~~")
    if fenced:
        text = re.sub(r"\[\s*\d+%\]", " ", text)
    blank = None if fenced else _BLANK.search(text)
    if blank:
        return _Reading(blank[0])
    odd = next((c for c in text if _odd(c)), "")
    if odd:
        return _Reading(odd)
    good = ticked or any(c in _GOOD_SIGNS for c in text)
    frown = re.search(r"\?|(?<!\S)[:;]-?[(/|]", text)
    if frown:
        return _Reading(frown[0])
    if not fenced and text.rstrip().endswith(_TRAILS_OFF):
        return _Reading("...")
    part = _part(text)
    if part:
        return _Reading(part)
    text = re.sub(r"(?<!\w)[_*]+|[_*]+(?!\w)", " ", text)
    text = _PYTEST.sub(lambda m: " passed " if int(m[1]) else " failed ", text)
    return _by_words(text.lower(), good=good)


def _by_words(text: str, *, good: bool) -> _Reading:
    found = [(_letter(m), m) for m in _lexer().finditer(text)]
    letters = "".join(letter for letter, _ in found)
    settled = bytearray(len(letters))
    for chain in _REASSURES.finditer(letters):
        settled[chain.start() : chain.end()] = b"\1" * (chain.end() - chain.start())
    for (letter, match), done in zip(found, settled, strict=True):
        if letter == "H" or (letter in "TNZ" and not done):
            return _Reading(match[0])
    return _Reading("", speaks=good or any(settled) or bool(set(letters) & set("DPR")))


@cache
def _lexer() -> re.Pattern[str]:
    """One pattern of all classes, made when the first marker is read: most verbs read none."""
    kinds = []
    for number, (letter, body) in enumerate(_CLASSES):
        # a word is matched whole; marks are themselves
        whole = f"(?<![\\w'\u2019])(?:{body})(?![\\w'\u2019]|\\.\\w)"
        pattern = body if letter in "CK|" else whole
        kinds.append(f"(?P<c{number}>{pattern})")
    word = "(?P<word>[^\\W_](?:[\\w'\u2019.]*\\w)?)"
    return re.compile("|".join((*kinds, word)), re.IGNORECASE)


def _letter(match: re.Match[str]) -> str:
    group = match.lastgroup or "word"
    return "." if group == "word" else _CLASSES[int(group[1:])][0]


def _part(text: str) -> str:
    """A part of a whole: `3/5`, `2 of 5`, `50%`, none at all."""
    text = _PHASE_OF.sub(" ", text)
    for found in _PART.finditer(text):
        if int(found[1]) < int(found[2]):
            return found[0]
    if not _MEASURE.search(text):
        for found in _PERCENT.finditer(text):
            if float(found[1].replace(",", ".")) < 100:  # noqa: PLR2004 (percent)
                return found[0]
    nothing = _NO_COUNT.search(text)
    return nothing[0] if nothing else ""


def _plain(text: str) -> str:
    """As it is read: one form of each letter, nothing invisible, no addresses, no code but plain words."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = _without_code(text)
    text = re.sub(r"\]\([^)\s]{0,2000}\)", "]", text)
    return re.sub(r"\b[a-z][a-z0-9+.-]{0,20}://\S+", " ", text, flags=re.IGNORECASE)


def _without_code(text: str) -> str:
    """Code in back quotes is no statement; plain words in back quotes are."""
    parts = _TICKS.split(text)  # text, quotes, text, quotes, ...
    ends: dict[str, int] = {}
    closes = [0] * len(parts)
    for at in range(len(parts) - 2, 0, -2):
        closes[at] = ends.get(parts[at], 0)
        ends[parts[at]] = at
    said, at = [parts[0]], 1
    while at < len(parts):
        if closes[at]:
            inside = "".join(parts[at + 1 : closes[at]])
            said.append(inside if re.fullmatch(r"[\sA-Za-z'.!]*", inside) else " code ")
            at = closes[at]
        else:
            said.append(parts[at])
        said.append(parts[at + 1])
        at += 2
    return "".join(said)


def _title(text: str) -> str:
    return _plain(text).strip().rstrip("#").strip(" *_:.!").lower()


def _is_rule(text: str) -> bool:
    """A line drawn across, or below the head of a table."""
    return len(text.strip()) > 1 and set(text) <= set("-*_=|: \t")


def _odd(char: str) -> bool:
    """A sign that is no good sign: a cross, an hourglass, an empty box, a warning."""
    if char in _GOOD_SIGNS or _DRAWN.match(char):
        return False
    return (
        unicodedata.category(char) == "So" and char != "\ufffd"
    ) or char in "\u2717\u2718\u2716\u2715\u274c"


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
    shown = _without_code(row)
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
