"""What structured sources said of an agent, folded into the little that rules ask for.

Signals are dated by their source, so the order in which they were read does not matter: the newest word on
each question counts. A level that is told again and again (a registry, a server) simply repeats itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fleet.core.seen import Report, ReportKind
from fleet.core.words import Witness
from fleet.times.moment import UNNAMED, Wall

PROMPTS = 16  # that are remembered: several may arrive between two looks
SAME_S = 30.0  # two sources that report a limit within this time speak of the same one

_WORKS = {
    ReportKind.TURN_BEGAN: True,
    ReportKind.PROMPT_TAKEN: True,
    ReportKind.RETRYING: True,
    ReportKind.ASKED: True,
    ReportKind.TURN_ENDED: False,
    ReportKind.TURN_FAILED: False,
    ReportKind.LIMIT_HIT: False,
    ReportKind.AUTH_FAILED: False,
    ReportKind.CONTEXT_FULL: False,
}
_SAME_TURN = frozenset({ReportKind.TURN_ENDED, ReportKind.ASKED})  # these say nothing of how a turn went


class Heard(NamedTuple):
    """The newest word on each question; times are on the wall clock, 0 means never."""

    working: bool | None = None  # None: no source spoke of it
    at: Wall = UNNAMED  # of `working`
    source: Witness | None = None  # who said so
    asked: str = ""  # a question is open
    answered: Wall = UNNAMED  # the model itself ended a turn
    troubled: Wall = UNNAMED  # a turn began, or ended in anything else
    limit: Report | None = None  # the last turn ended in a usage limit
    auth: str = ""  # the last turn ended because the credentials were refused
    prompts: tuple[tuple[Wall, str], ...] = ()  # that arrived, with how each begins: the newest, oldest first
    conversation: str = ""
    conversation_at: Wall = UNNAMED
    model: str = ""
    model_at: Wall = UNNAMED

    @property
    def own_words(self) -> bool:
        """Did the model itself end the last turn? Then no notice of the CLI stands at its end."""
        return UNNAMED < self.troubled <= self.answered

    @property
    def newest(self) -> Wall:
        """When the last of it was said."""
        arrived = max((at for at, _ in self.prompts), default=UNNAMED)
        return max(self.at, self.answered, self.troubled, arrived, self.conversation_at, self.model_at)


def fold(heard: Heard, signals: Iterable[Report]) -> Heard:
    """What is known after these signals too."""
    for signal in sorted(signals, key=lambda s: s.at):
        heard = _one(heard, signal)
    return heard


def _one(heard: Heard, signal: Report) -> Heard:
    at = Wall(signal.at)
    if signal.session_id and at >= heard.conversation_at and signal.kind is not ReportKind.EXITED:
        heard = heard._replace(conversation=signal.session_id, conversation_at=at)
    match signal.kind:
        case ReportKind.MODEL:
            return heard._replace(model=signal.text, model_at=at) if at >= heard.model_at else heard
        case ReportKind.ANSWERED:
            return heard._replace(answered=max(at, heard.answered))
        case ReportKind.PROMPT_TAKEN:
            heard = heard._replace(prompts=tuple(sorted((*heard.prompts, (at, signal.text)))[-PROMPTS:]))
        case ReportKind.LIMIT_HIT if heard.limit is not None:
            signal = _more_exact(heard.limit, signal)
            if at < heard.at and signal.at == heard.limit.at:
                return heard._replace(limit=signal)
    return _with_turn(heard, at, signal)


def _with_turn(heard: Heard, at: Wall, signal: Report) -> Heard:
    """What a report says of the turn: does one go on, and how did the last one end?"""
    kind, works = signal.kind, _WORKS.get(signal.kind)
    if works is None:
        return heard
    if kind not in _SAME_TURN and at > heard.troubled:
        heard = heard._replace(troubled=at)
    if at < heard.at:
        return heard
    limit = signal if kind is ReportKind.LIMIT_HIT else _unless_turned(heard.limit, kind)
    asked, auth = "", ""
    if kind is ReportKind.ASKED:
        asked = signal.text or "a question"
    elif kind is ReportKind.AUTH_FAILED:
        auth = signal.text or "authentication failed"
    return heard._replace(working=works, at=at, source=signal.source, asked=asked, limit=limit, auth=auth)


def _more_exact(known: Report, told: Report) -> Report:
    """A banner drops the seconds, and often the zone: where a source has the number itself, that counts."""
    if known.exact == told.exact or abs(known.at - told.at) > SAME_S:
        return told
    newer, number = (known if known.at > told.at else told), (known if known.exact else told)
    return newer._replace(until=number.until, exact=True)


def _unless_turned(limit: Report | None, kind: ReportKind) -> Report | None:
    """A turn's end after its limit is the same turn, and so is the limit's own menu; the rest is another."""
    return limit if kind in _SAME_TURN else None
