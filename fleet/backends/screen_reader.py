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
from collections.abc import Callable, Sequence

from fleet.backends.layout import Block, Kind, Layout, Parts
from fleet.backends.lines import (
    content_hash,
    evidence,
    first_words,
    is_ours,
    is_quoted,
    is_said,
    last_marker,
    squeezed,
    stilled,
    waiting_until,
)
from fleet.backends.sources import Heading
from fleet.core.model import Backend, Dialog, Pattern
from fleet.core.seen import Marker, Reading, ReportKind, ScreenState
from fleet.times.moment import Wall
from fleet.times.resets import parse_reset

CONTRACT_LINES = 15  # where a contract-style limit or fatal text still counts as now
FOOTER_LINES = 4  # where footer_ui backends show activity
LAST_WORDS = 10  # lines of a dead program that may say why
LINE = 4096  # characters of a line that are looked at, half at each end: what a program prints may be longer

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
            "install the program, or correct PATH, backend.bin or a service's command",
        ),
        (
            "no-option",
            r"(?i)unknown option|unrecognized (?:option|argument)|unexpected argument|unknown flag",
            "correct backend.flags or a service's command",
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
_DEAD = re.compile(r"^Pane is dead(?: \((?P<how>[^,)]*))?")
# A word is never given back (++): one of two hundred letters would be cut in four in every way there is.
_SHELL = re.compile(r"^(?:[\w.@:~/+()\[\]-]++ ?){0,4}[$#%]$")
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

    def matches(self, text: str) -> bool:
        return bool(self.search(text)) and not (self.unless and self.unless(text))

    def until(self, text: str, now: Wall, zone: str) -> Wall | None:
        """When what the text says ends, if that is dated."""
        return parse_reset(text, now=now, zone=zone) if self.state in _DATED else None


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
        # Patterns that look where an agent's own words never stand.
        self.apart = {rule.name for rule in rules if rule.region not in _BY_MOUTH}


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
        return _read_contract(profile, lines, now, zone, [text for text in map(squeezed, ours) if text])
    return _read_profile(profile, [_both_ends(line) for line in lines], now, zone)


def _both_ends(line: str) -> str:
    """The line, cut in its middle. tmux joins what a terminal wrapped; a long draft is known by its end."""
    return line if len(line) <= LINE else f"{line[: LINE // 2]} … {line[-LINE // 2 :]}"


def _read_profile(profile: _Profile, lines: list[str], now: Wall, zone: str) -> Reading:
    if not lines:
        return Reading(ScreenState.STARTING, "blank", content_hash=content_hash([]))
    gone = _DEAD.match(lines[-1])
    if gone:
        return _ended(profile, lines, gone)
    if _SHELL.match(lines[-1]):
        return Reading(ScreenState.SHELL, "shell", evidence(lines[-1]), content_hash=content_hash(lines))
    parts = profile.layout.cut(lines)
    state, pattern, line, until = _verdict(profile, parts, lines, now, zone)
    dialog = _dialog(profile, parts.dialog) if parts.dialog else None
    if dialog and not _beside(dialog, state, asked=line == parts.dialog):
        state, pattern, line, until = ScreenState.ASKING, dialog.name, first_words(parts.dialog), None
    return Reading(
        state=state,
        pattern=pattern,
        line=evidence(line),
        until=until,
        dialog=dialog.name if dialog else "",
        key=dialog.key if dialog else "",
        fix=dialog.fix if dialog else profile.fixes.get(pattern, ""),
        draft=parts.draft,
        commands=parts.commands,
        queued=parts.queued,
        marker=_marker(parts, now),
        above=_above(parts, lines, line) if state in _BAD else "",
        spoken=state in _BAD and pattern not in profile.apart,
        beside=() if state in _BAD else tuple(evidence(block.text) for block in parts.notices),
        content_hash=content_hash(line for b in parts.live if b.kind is not Kind.STATUS for line in b.lines),
    )


def _beside(dialog: Dialog, state: ScreenState, *, asked: bool) -> bool:
    """Does the dialog only say the same? A login does; so does a limit's own menu, which a key may close."""
    return (state is ScreenState.AUTH and asked) or (state is ScreenState.LIMITED and bool(dialog.key))


_Finding = tuple[ScreenState, str, str, Wall | None]  # state, pattern, the text that shows it, until when


def _verdict(profile: _Profile, parts: Parts, lines: list[str], now: Wall, zone: str) -> _Finding:
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
            if rule.matches(text):
                found = rule.state, rule.name, text, rule.until(text, now, zone)
                idle = rule.state is ScreenState.IDLE
                return (_contract_beside(profile, parts, now, zone) if idle else None) or found
    return _contract_beside(profile, parts, now, zone) or (ScreenState.UNKNOWN, "", "", None)


# What a failed turn was, where the CLI's own words say so.
_FAILURES = {
    ScreenState.LIMITED: ReportKind.LIMIT_HIT,
    ScreenState.AUTH: ReportKind.AUTH_FAILED,
    ScreenState.CONTEXT: ReportKind.CONTEXT_FULL,
}


def failure(
    heading: Heading, words: str, gutters: Sequence[str], at: float
) -> tuple[ReportKind, Wall | None]:
    """Why a turn failed, by the CLI's own words in a hook or a transcript; and when a limit ends, if known.

    `gutters` is what such words stand behind on its screen: the patterns of its notices judge them.
    """
    for gutter in gutters:
        line = gutter + " ".join(words.split())
        for rule in _profile(heading.backend).rules:
            if rule.region == "notice" and rule.matches(line):
                until = rule.until(line, Wall(at), heading.zone)
                return _FAILURES.get(rule.state, ReportKind.TURN_FAILED), until
    return ReportKind.TURN_FAILED, None


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


def _contract_beside(profile: _Profile, parts: Parts, now: Wall, zone: str) -> _Finding | None:
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
    active = next((line for line in reversed(where) if profile.active and profile.active.search(line)), "")
    fatal, limit = _evident(profile.fatal, tail, ours), _evident(profile.limit, tail, ours)
    marker, same = last_marker(tail, now), content_hash(filled)
    found = limit if fatal is None else fatal
    if active or found is None:
        state, pattern = (ScreenState.WORKING, "active_re") if active else (ScreenState.IDLE, "")
        beside = tuple(evidence(tail[n]) for n in (fatal, limit) if n is not None)
        return Reading(state, pattern, evidence(active), marker=marker, beside=beside, content_hash=same)
    state, pattern = (ScreenState.LIMITED, "limit_re") if fatal is None else (ScreenState.WEDGED, "fatal_re")
    # A banner may go on in the next line, and the time often stands there.
    words = " ".join(text.strip() for text in tail[found : found + 2])
    at = len(filled) - len(tail) + found
    return Reading(
        state=state,
        pattern=pattern,
        line=evidence(tail[found]),
        until=parse_reset(words, now=now, zone=zone) if state is ScreenState.LIMITED else None,
        marker=marker,
        above=stilled(filled[max(0, at - ABOVE) : at]),
        below=sum(is_said(line, ours) for line in tail[found + 1 :]),
        spoken=True,
        content_hash=same,
    )


def _evident(expression: re.Pattern[str] | None, lines: list[str], ours: Sequence[str]) -> int | None:
    """The lowest line that says so for itself: neither quoted nor typed."""
    for n in range(len(lines) - 1, -1, -1) if expression else ():
        found = expression.search(lines[n]) if expression else None
        if found and not is_quoted(lines[n], found.start()) and not is_ours(lines[n], ours):
            return n
    return None


def _above(parts: Parts, lines: list[str], text: str) -> str:
    """What stands right above a piece of evidence."""
    first = next((b.lines[0] for b in reversed(parts.live) if b.text == text), text)
    filled = [line for line in lines if line]
    at = next((n for n in range(len(filled) - 1, -1, -1) if filled[n].startswith(first)), 0)
    return stilled(filled[max(0, at - ABOVE) : at])


def last_words(screen: str) -> str:
    """What a dead program left on its screen, without the line that tmux adds below it."""
    *lines, last = screen.rstrip().split("\n")
    return "\n".join(lines if _DEAD.match(last) else [*lines, last]).rstrip()


def ending(backend: Backend, words: str) -> Reading | None:
    """What the last words of a dead program say that a person must do; None when they do not."""
    for rule in _profile(backend).endings:
        found = rule.search(words)
        if found:
            return Reading(ScreenState.DEAD, rule.name, _line_at(words, found.start()), fix=rule.fix)
    return None


def _line_at(text: str, at: int) -> str:
    return evidence(text[text.rfind("\n", 0, at) + 1 :].split("\n", maxsplit=1)[0])


def _ended(profile: _Profile, lines: list[str], gone: re.Match[str]) -> Reading:
    """The program is gone; its last words may say why."""
    words = "\n".join(_last_words(lines[:-1]))
    for rule in profile.rules:
        found = rule.search(words) if rule.region == "end" else None
        if found:
            line = _line_at(words, found.start())
            return Reading(ScreenState.DEAD, rule.name, line, fix=rule.fix, content_hash=content_hash(lines))
    return Reading(ScreenState.DEAD, "exited", evidence(words or gone[0]), content_hash=content_hash(lines))


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
