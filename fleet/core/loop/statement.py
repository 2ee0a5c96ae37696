"""What one statement of a status file says: by its signs, its counts and the polarity of its words.

- A hedge (until, almost, will, ...) stands against the marker.
- A word of trouble (fails, remaining, TODO, ...) does, unless a negation belongs to it ("no open issues",
  "nothing is pending", "failures: 0") or a remedy does ("fixed the failing test").
- A negation does, unless such a word belongs to it.
- So do an open box, a question, struck words, a blank to be filled in, a sign that is no good sign, and a
  part of a whole (`3/5`, `2 of 5`, `50%`; coverage is none).

Polarity is decided on classes of words, one letter each: the tables below are the grammar.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

_TICKS = re.compile("(`+)")
_BOX = re.compile(r"^[\s>]*(?:[-*+\u2022]|\d+[.)])\s+\[(.?)\](?!\()")
TICKED = re.compile(r"\[[xX\u2713\u2714]\]")
TAGS = re.compile(
    r"</?(?:details|summary|br|p|b|i|em|strong|code|pre|kbd|ul|ol|li|a|div|span|sub|sup)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
GOOD_SIGNS = frozenset(
    "\u2705\u2714\u2713\u2611\U0001f389\U0001f38a\U0001f3c1\U0001f7e2\U0001f7e9\U0001f44d\U0001f4af"
    "\U0001f680\U0001f947\U0001f3c6\U0001f973\U0001f64c\u2b50\u2728\U0001f48e\U0001f512\U0001f4dd"
    "\U0001f4cb\U0001f4e6\U0001f4ca\U0001f517\U0001f50d\U0001f9ea\u25cf\u25a0\u25aa\u25b6\u25c6\u00a9\u00ae\u00b0"
)
_DRAWN = re.compile("[\u2500-\u259f\u2190-\u21ff]")  # boxes of a tree or a table, arrows
EVIDENCE = (  # a date, perhaps with a time; a commit
    r"\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?\s?(?:z|utc|[+-]\d{2}:?\d{2})?)?"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
)


def _words(text: str) -> str:
    return "|".join(re.sub(r"\\? ", r"[\\s-]+", word.strip()) for word in text.split(",") if word.strip())


# One letter each. Earlier rows win; what no row knows is ".".
_CLASSES: tuple[tuple[str, str], ...] = (
    ("P", EVIDENCE + "|" + _words("next phase, may \\d+, no longer\\b(?= fails?| errors?), error free")),
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
TRAILS_OFF = ("...", "\u2026")


class Statement(NamedTuple):
    """What a statement says: what stands against the marker in it, and whether it says that something is."""

    against: str = ""
    speaks: bool = False


def has_open_box(text: str) -> bool:
    """Does it begin with a box that is not ticked?"""
    box = _BOX.match(text)
    return box is not None and not TICKED.search(box[0])


def read_statement(text: str, *, fenced: bool = False) -> Statement:
    """One statement, by its signs, its counts and the polarity of its words."""
    if has_open_box(text) or re.search(r"\[\s\]", text):
        return Statement("[ ]")
    ticked = bool(TICKED.search(text))
    text = plain(TAGS.sub(" ", TICKED.sub(" ", text)))
    if "~~" in text and not fenced:
        return Statement("~~")
    if fenced:
        text = re.sub(r"\[\s*\d+%\]", " ", text)
    blank = None if fenced else _BLANK.search(text)
    if blank:
        return Statement(blank[0])
    odd = next((c for c in text if _odd(c)), "")
    if odd:
        return Statement(odd)
    good = ticked or any(c in GOOD_SIGNS for c in text)
    frown = re.search(r"\?|(?<!\S)[:;]-?[(/|]", text)
    if frown:
        return Statement(frown[0])
    if not fenced and text.rstrip().endswith(TRAILS_OFF):
        return Statement("...")
    part = _part(text)
    if part:
        return Statement(part)
    text = re.sub(r"(?<!\w)[_*]+|[_*]+(?!\w)", " ", text)
    text = _PYTEST.sub(lambda m: " passed " if int(m[1]) else " failed ", text)
    return _by_words(text.lower(), good=good)


def _by_words(text: str, *, good: bool) -> Statement:
    found = [(_letter(m), m) for m in _lexer().finditer(text)]
    letters = "".join(letter for letter, _ in found)
    settled = bytearray(len(letters))
    for chain in _REASSURES.finditer(letters):
        settled[chain.start() : chain.end()] = b"\1" * (chain.end() - chain.start())
    for (letter, match), done in zip(found, settled, strict=True):
        if letter == "H" or (letter in "TNZ" and not done):
            return Statement(match[0])
    return Statement("", speaks=good or any(settled) or bool(set(letters) & set("DPR")))


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


def plain(text: str) -> str:
    """As it is read: one form of each letter, nothing invisible, no addresses, no code but plain words."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = without_code(text)
    text = re.sub(r"\]\([^)\s]{0,2000}\)", "]", text)
    return re.sub(r"\b[a-z][a-z0-9+.-]{0,20}://\S+", " ", text, flags=re.IGNORECASE)


def without_code(text: str) -> str:
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


def _odd(char: str) -> bool:
    """A sign that is no good sign: a cross, an hourglass, an empty box, a warning."""
    if char in GOOD_SIGNS or _DRAWN.match(char):
        return False
    return (
        unicodedata.category(char) == "So" and char != "\ufffd"
    ) or char in "\u2717\u2718\u2716\u2715\u274c"
