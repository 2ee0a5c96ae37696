"""What a screen says: one pure function from a profile and a capture to a Reading.

A profile with patterns is read by structure (layout.py): each pattern looks at one region, and the first
that matches in the order of RANK decides; a screen that matches nothing is unknown, never idle. A
contract-style backend has only three regexes: not active is idle, and a limit or a fatal text counts only
near the bottom of a screen that is not active, and not where it is quoted or where we typed it ourselves.
No project's limit_re or fatal_re looks at a block of the agent's own words, where a profile can tell them.

Regions a pattern may name:
  notice    what the CLI itself said since the last user's turn, with nothing of the agent's below it
  live      the newest block since then, if the CLI or the agent wrote it
  status    the spinner or summary line below everything
  opening   a screen without any turn: its lines, and those below the composer
  footer    each line below the composer
  composer  the composer's first line
  box       the second of two boxes in a row, with nothing said below: where boxed CLIs show an error
  dialog    the text of an open dialog
  end       the last words on a screen without composer or dialog; if the program is gone they say why
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from fleet.backends.layout import Block, Kind, Layout, Parts
from fleet.backends.markers import waiting_until
from fleet.core.model import Backend, Dialog, Pattern
from fleet.core.seen import Marker, Reading, ScreenState
from fleet.times.moment import Wall
from fleet.times.resets import parse_reset

CONTRACT_LINES = 15  # where a contract-style limit or fatal text still counts as now
FOOTER_LINES = 4  # where footer_ui backends show activity
LAST_WORDS = 10  # lines of a dead program that may say why
EVIDENCE = 200
LINE = 4096  # characters of a line that are looked at: no CLI draws a longer one, but a program may print it

# Who wins when several patterns match. A retry line also has a spinner; nothing final counts while working.
RANK = {
    state: i
    for i, state in enumerate(
        (
            ScreenState.DEAD,
            ScreenState.RETRYING,
            ScreenState.WORKING,
            ScreenState.LIMITED,
            ScreenState.AUTH,
            ScreenState.CONTEXT,
            ScreenState.WEDGED,
            ScreenState.ERROR,
            ScreenState.ASKING,
            ScreenState.STARTING,
            ScreenState.UNKNOWN,
            ScreenState.IDLE,
            ScreenState.SHELL,
        )
    )
}
_DATED = {ScreenState.LIMITED, ScreenState.RETRYING}
# Said by a CLI that waits: its composer must be there, or what is seen is the past, or half of a screen.
_AT_PROMPT = {ScreenState.LIMITED, ScreenState.WEDGED, ScreenState.IDLE}
_ABOVE_PROMPT = {"notice", "box"}
_SPOKEN = {Kind.NOTICE, Kind.SAID, Kind.OTHER}  # never a tool's output, never the user's own words
_BAD = {ScreenState.LIMITED, ScreenState.AUTH, ScreenState.CONTEXT, ScreenState.WEDGED, ScreenState.ERROR}
_BY_MOUTH = {"notice", "live", "box"}  # regions in which an agent's words may look like the CLI's
ABOVE = 2  # lines above a piece of evidence that tell it from the same words said anew

# What any program may say as it ends and what to do about it, beside the patterns of a profile.
ENDINGS = tuple(
    Pattern(name, ScreenState.DEAD, expression, "end", fix=fix)
    for name, expression, fix in (
        (
            "no-program",
            r"(?i)command not found|: not found\s*$",
            "install the program, or correct backend.bin or PATH",
        ),
        (
            "no-option",
            r"(?i)unknown option|unrecognized (?:option|argument)|unexpected argument|unknown flag",
            "correct backend.flags",
        ),
        (
            "no-model",
            r"(?i)(?:unknown|invalid|unsupported) model|model\b.{0,80}\b(?:not found|does not exist)",
            "correct the agent's model",
        ),
        (
            "no-credentials",
            r"(?i)invalid api key|authentication[_ ](?:failed|error)|not logged in",
            "log in or set the key",
        ),
    )
)

# Colours, links and other sequences of a capture that was made with them.
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\^-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
_SPINNER = re.compile(r"[⠀-⣿▀-▟·✢✳✶✻✽●⏺○◦•◐◓◑◒⬝■▪□]+")
_WORD = re.compile(r"[^\W_]")
_STILL = b"0123456789 \t\n|/\\-*"
_UNSTILL = dict.fromkeys(_STILL)
_PROMPTS = ">❯›»"  # before the words of whoever types; also how mails and agents quote
_QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("«", "»"))
_VALUES = (":", "=", "{", "[", ",")  # before a quotation mark that belongs to data
WRAPPED = 12  # characters of a line from which it is told as a piece of a longer text
_DEAD = re.compile(r"^Pane is dead(?: \((?P<how>[^,)]*))?")
# A word is never given back (++): one of two hundred letters would be cut in four in every way there is.
_SHELL = re.compile(r"^(?:[\w.@:~/+()\[\]-]++ ?){0,4}[$#%]$")
# Below a marker only this may stand: rules and boxes, an empty prompt, a line of key hints.
_CHROME = re.compile(
    r"[\s─━═╭╮╰╯│┃╹▀▄▁▔|+_=-]*$|\s*(?:[│┃]\s*)?[\u276f\u203a>$](?:\s|$)|\s*[⏵?]"
    r"|.*\b(?:shift\+tab|ctrl\+\w|esc) "
)


_Cut = Callable[[Parts, list[str]], list[str]]


class _Rule:
    """A pattern, compiled."""

    __slots__ = ("cut", "fix", "name", "region", "search", "state", "unless")

    def __init__(self, pattern: Pattern) -> None:
        self.name, self.region, self.state = pattern.name, pattern.region, ScreenState(pattern.state)
        self.fix = pattern.fix
        self.cut: _Cut = _REGIONS.get(pattern.region, lambda _parts, _lines: [])
        self.search = re.compile(pattern.re, re.MULTILINE).search
        self.unless = re.compile(pattern.unless).search if pattern.unless else None


class _Profile:
    """Everything of a Backend that reading needs, compiled once."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.layout = Layout(dict(backend.screen))
        rules = [_Rule(p) for p in backend.patterns]
        self.fixes = {p.name: p.fix for p in backend.patterns if p.fix}
        self.endings = [r for r in (*rules, *map(_Rule, ENDINGS)) if r.region == "end" and r.fix]
        self.rules = sorted(rules, key=lambda rule: RANK[rule.state])
        self.dialogs = [(re.compile(d.re, re.MULTILINE | re.DOTALL), d) for d in backend.dialogs]
        self.active = re.compile(backend.active_re) if backend.active_re else None
        self.limit = re.compile(backend.limit_re) if backend.limit_re else None
        self.fatal = re.compile(backend.fatal_re) if backend.fatal_re else None
        self._apart = {rule.name for rule in rules if rule.region not in _BY_MOUTH}

    def spoken(self, pattern: str) -> bool:
        """Does this pattern look where an agent's own words may stand?"""
        return pattern not in self._apart


_profiles: dict[int, _Profile] = {}
_PROFILES_KEPT = 64


def _profile(backend: Backend) -> _Profile:
    """By identity, because hashing a whole profile would cost more than reading with it."""
    kept = _profiles.get(id(backend))
    if kept is None or kept.backend is not backend:
        if len(_profiles) >= _PROFILES_KEPT:
            _profiles.clear()
        kept = _profiles[id(backend)] = _Profile(backend)
    return kept


def read(backend: Backend, screen: str, *, now: Wall, zone: str, ours: Sequence[str] = ()) -> Reading:
    """What this screen says.

    `now` is when it was written, `zone` the host's, for banners that name none, `ours` what we typed there.
    """
    profile = _profile(backend)
    if "\x1b" in screen:
        screen = _ESCAPE.sub("", screen)
    lines = [line.rstrip() for line in screen.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not profile.rules:
        return _read_contract(profile, lines, now, zone, [text for text in map(_squeezed, ours) if text])
    return _read_profile(profile, [line[:LINE].rstrip() for line in lines], now, zone)


def _read_profile(profile: _Profile, lines: list[str], now: Wall, zone: str) -> Reading:
    if not lines:
        return Reading(ScreenState.STARTING, "blank", content_hash=_still([]))
    gone = _DEAD.match(lines[-1])
    if gone:
        return _ended(profile, lines, gone)
    if _SHELL.match(lines[-1]):
        return Reading(ScreenState.SHELL, "shell", _evidence(lines[-1]), content_hash=_still(lines))
    parts = profile.layout.cut(lines)
    state, pattern, line, until = _verdict(profile, parts, lines, now, zone)
    dialog = _dialog(profile, parts.dialog) if parts.dialog else None
    if dialog and not _beside(dialog, state, asked=line == parts.dialog):
        state, pattern, line, until = ScreenState.ASKING, dialog.name, _first(parts.dialog), None
    return Reading(
        state=state,
        pattern=pattern,
        line=_evidence(line),
        until=until,
        dialog=dialog.name if dialog else "",
        key=dialog.key if dialog else "",
        fix=dialog.fix if dialog else profile.fixes.get(pattern, ""),
        draft=parts.draft,
        commands=parts.commands,
        queued=parts.queued,
        marker=_marker(parts, now),
        above=_above(parts, lines, line) if state in _BAD else "",
        spoken=state in _BAD and profile.spoken(pattern),
        beside=() if state in _BAD else tuple(_evidence(block.text) for block in parts.notices),
        content_hash=_still(line for b in parts.live if b.kind is not Kind.STATUS for line in b.lines),
    )


def _beside(dialog: Dialog, state: ScreenState, *, asked: bool) -> bool:
    """Does the dialog only say the same? A login does; so does a limit's own menu, which a key may close."""
    return (state is ScreenState.AUTH and asked) or (state is ScreenState.LIMITED and bool(dialog.key))


def _verdict(
    profile: _Profile, parts: Parts, lines: list[str], now: Wall, zone: str
) -> tuple[ScreenState, str, str, Wall | None]:
    regions: dict[str, list[str]] = {}
    seen = parts.composer is not None or bool(parts.dialog)
    if seen:
        regions["end"] = []
    for rule in profile.rules:
        if not seen and (rule.state in _AT_PROMPT or rule.region in _ABOVE_PROMPT):
            continue
        texts = regions.get(rule.region)
        if texts is None:
            texts = regions[rule.region] = rule.cut(parts, lines)
        for text in texts:
            if rule.search(text) and not (rule.unless and rule.unless(text)):
                until = parse_reset(text, now=now, zone=zone) if rule.state in _DATED else None
                if rule.state is not ScreenState.IDLE:
                    return rule.state, rule.name, text, until
                return _contract_beside(profile, parts, now, zone) or (rule.state, rule.name, text, until)
    return _contract_beside(profile, parts, now, zone) or (ScreenState.UNKNOWN, "", "", None)


def judge_notice(backend: Backend, text: str, gutters: Sequence[str], *, now: Wall, zone: str) -> Reading:
    """What the CLI's own words mean where there is no screen around them: in a hook or a transcript.

    `gutters` is what they would stand behind on a screen.
    """
    for gutter in gutters:
        for rule in _profile(backend).rules:
            line = gutter + " ".join(text.split())
            if rule.region == "notice" and rule.search(line) and not (rule.unless and rule.unless(line)):
                until = parse_reset(line, now=now, zone=zone) if rule.state in _DATED else None
                return Reading(rule.state, rule.name, _evidence(line[len(gutter) :]), until)
    return Reading(ScreenState.UNKNOWN)


def _opening(parts: Parts) -> list[str]:
    only = parts.live[0] if len(parts.live) == 1 else None
    return ["\n".join((*only.lines, *parts.footer))] if only and only.kind is Kind.OTHER else []


def _last_box(live: list[Block]) -> list[str]:
    said = [block for block in live if block.kind is not Kind.STATUS][-2:]
    boxes = [block.text for block in said if block.kind is Kind.BAR]
    return boxes[1:]


# Each is cut out of the screen when the first rule asks for it; most screens are known by one or two.
_REGIONS: dict[str, _Cut] = {
    "notice": lambda parts, _: [block.text for block in parts.notices],
    "live": lambda parts, _: [parts.newest.text] if parts.newest and parts.newest.kind in _SPOKEN else [],
    "opening": lambda parts, _: _opening(parts),
    "status": lambda parts, _: [parts.status.text] if parts.status else [],
    "footer": lambda parts, _: parts.footer,
    "composer": lambda parts, _: [parts.composer] if parts.composer is not None else [],
    "box": lambda parts, _: _last_box(parts.live),
    "dialog": lambda parts, _: [parts.dialog] if parts.dialog else [],
    "end": lambda _, lines: _last_words(lines),
}


def _contract_beside(
    profile: _Profile, parts: Parts, now: Wall, zone: str
) -> tuple[ScreenState, str, str, Wall | None] | None:
    """A project's own active_re, limit_re and fatal_re, where the profile itself has nothing to report."""
    newest, status = parts.newest, parts.status
    if profile.active:
        for text in ([status.text] if status else []) + parts.footer:
            if profile.active.search(text):
                return ScreenState.WORKING, "active_re", text, None
    if newest and newest.kind in {Kind.NOTICE, Kind.OTHER}:
        head = newest.text if newest.kind is Kind.NOTICE else newest.lines[0]
        if profile.fatal and profile.fatal.search(head):
            return ScreenState.WEDGED, "fatal_re", head, None
        if profile.limit and profile.limit.search(head):
            return ScreenState.LIMITED, "limit_re", head, parse_reset(head, now=now, zone=zone)
    return None


def _read_contract(profile: _Profile, lines: list[str], now: Wall, zone: str, ours: Sequence[str]) -> Reading:
    filled = [line for line in lines if line]
    tail = filled[-CONTRACT_LINES:]
    where = filled[-FOOTER_LINES:] if profile.backend.footer_ui else filled
    active = profile.active and _last(profile.active, where)
    at = len(filled) - len(tail)
    fatal = _evident(profile.fatal, tail, ours)
    limit = _evident(profile.limit, tail, ours)
    found, state, pattern = (
        (fatal, ScreenState.WEDGED, "fatal_re")
        if fatal is not None
        else (limit, ScreenState.LIMITED, "limit_re")
    )
    beside = tuple(_evidence(tail[n]) for n in (fatal, limit) if n is not None)
    still = _still(filled)
    if active or found is None:
        state, pattern = (ScreenState.WORKING, "active_re") if active else (ScreenState.IDLE, "")
        marker = _last_marker(tail, now)
        line = _evidence(active or "")
        return Reading(state, pattern, line, marker=marker, beside=beside, content_hash=still)
    # A banner may go on in the next line, and the time often stands there.
    words = " ".join(text.strip() for text in tail[found : found + 2])
    return Reading(
        state=state,
        pattern=pattern,
        line=_evidence(tail[found]),
        until=parse_reset(words, now=now, zone=zone) if state is ScreenState.LIMITED else None,
        marker=_last_marker(tail, now),
        above=_stilled(filled[max(0, at + found - ABOVE) : at + found]),
        below=sum(_is_said(line, ours) for line in tail[found + 1 :]),
        spoken=True,
        content_hash=still,
    )


def _evident(expression: re.Pattern[str] | None, lines: list[str], ours: Sequence[str]) -> int | None:
    """The lowest line that says so for itself: neither quoted, nor typed by us or by anybody else."""
    for n in range(len(lines) - 1, -1, -1) if expression else ():
        found = expression.search(lines[n]) if expression else None
        if found and not _is_quoted(lines[n], found.start()) and not _is_ours(lines[n], ours):
            return n
    return None


def _is_quoted(line: str, at: int) -> bool:
    """Does it stand behind a prompt, or in quotation marks that are no program's JSON?"""
    if line.lstrip()[:1] in _PROMPTS:
        return True
    before = line[:at]
    for opening, closing in _QUOTES:
        start = before.rfind(opening)
        even = before.count(opening) % 2 == 0 if opening == closing else before.rfind(closing) > start
        if start >= 0 and not even and not before[:start].rstrip().endswith(_VALUES):
            return True
    return False


def _is_said(line: str, ours: Sequence[str]) -> bool:
    """Are these an agent's words: neither typed nor drawn?"""
    return not _CHROME.match(line) and line.lstrip()[:1] not in _PROMPTS and not _is_ours(line, ours)


def _is_ours(line: str, ours: Sequence[str]) -> bool:
    """Is it a line of what we typed, whole or wrapped, with a prompt before it or without?"""
    words = _squeezed(line)
    return any(text in words or (len(words) >= WRAPPED and words in text) for text in ours)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lstrip(_PROMPTS)


def _above(parts: Parts, lines: list[str], text: str) -> str:
    """What stands right above a piece of evidence."""
    first = next((b.lines[0] for b in reversed(parts.live) if b.text == text), text)
    filled = [line for line in lines if line]
    at = next((n for n in range(len(filled) - 1, -1, -1) if filled[n].startswith(first)), 0)
    return _stilled(filled[max(0, at - ABOVE) : at])


def ending(backend: Backend, words: str) -> Reading | None:
    """What the last words of a dead program say that a person must do; None when they do not."""
    for rule in _profile(backend).endings:
        found = rule.search(words)
        if found:
            return Reading(ScreenState.DEAD, rule.name, _line_at(words, found.start()), fix=rule.fix)
    return None


def _line_at(text: str, at: int) -> str:
    return _evidence(text[text.rfind("\n", 0, at) + 1 :].split("\n", maxsplit=1)[0])


def _ended(profile: _Profile, lines: list[str], gone: re.Match[str]) -> Reading:
    """The program is gone; its last words may say why."""
    words = "\n".join(_last_words(lines[:-1]))
    for rule in profile.rules:
        found = rule.search(words) if rule.region == "end" else None
        if found:
            line = _line_at(words, found.start())
            return Reading(ScreenState.DEAD, rule.name, line, fix=rule.fix, content_hash=_still(lines))
    return Reading(ScreenState.DEAD, "exited", _evidence(words or gone[0]), content_hash=_still(lines))


def _last_words(lines: list[str]) -> list[str]:
    return [line for line in lines if line][-LAST_WORDS:]


def _dialog(profile: _Profile, text: str) -> Dialog:
    for expression, dialog in profile.dialogs:
        if expression.search(text):
            return dialog
    return Dialog("unknown", "", fix="Answer the question in the agent's terminal.")


def _marker(parts: Parts, now: Wall) -> Marker | None:
    newest = parts.newest
    return waiting_until(newest.last, now) if newest and newest.kind in {Kind.SAID, Kind.OTHER} else None


def _last_marker(tail: list[str], now: Wall) -> Marker | None:
    for line in reversed(tail):
        marker = waiting_until(line, now)
        if marker or not _CHROME.match(line):
            return marker
    return None


def _last(expression: re.Pattern[str], lines: list[str]) -> str:
    return next((line for line in reversed(lines) if expression.search(line)), "")


def _first(text: str) -> str:
    """The first line with words in it."""
    return next((line for line in text.split("\n") if _WORD.search(line)), "")


def _still(lines: Iterable[str]) -> str:
    """A hash that digits, clocks and spinners do not change: the same means nothing was written."""
    text = "\n".join(line if line.isascii() else _SPINNER.sub("", line) for line in lines)
    return blake2b(text.encode().translate(None, _STILL), digest_size=8).hexdigest()


def _stilled(lines: Iterable[str]) -> str:
    """The ends of some lines, without what changes by itself."""
    return "\n".join(_SPINNER.sub("", line).translate(_UNSTILL)[-EVIDENCE:] for line in lines)


def _evidence(text: str) -> str:
    line = " ".join(text.split())[:EVIDENCE]
    return line if line.isprintable() else "".join(c for c in line if c.isprintable())
