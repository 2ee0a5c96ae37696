"""What structured sources said of an agent, folded into the little that rules ask for.

Signals are dated by their source, so the order in which they were read does not matter: the newest word on
each question counts. A level that is told again and again (a registry, a server) simply repeats itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest word on each question; times are on the wall clock, 0 means never."""

    working: bool | None = None  # None: nobody spoke of it
    at: Wall = UNNAMED  # of `working`
    source: Witness | None = None  # who said so
    asked: str = ""  # a question is open
    answered: Wall = UNNAMED  # the model itself ended a turn
    troubled: Wall = UNNAMED  # a turn began, or ended in anything else
    limit: Report | None = None  # the last turn ended in a usage limit
    auth: str = ""  # the last turn ended because the credentials were refused
    receipt: Wall = UNNAMED
    prompt: str = ""  # the beginning of the prompt that arrived then
    prompts: tuple[tuple[Wall, str], ...] = ()  # the newest of them, oldest first
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
        return max(self.at, self.answered, self.troubled, self.receipt, self.conversation_at, self.model_at)


def fold(heard: Heard, signals: Iterable[Report]) -> Heard:
    """What is known after these signals too."""
    for signal in sorted(signals, key=lambda s: s.at):
        heard = _one(heard, signal)
    return heard


def _one(heard: Heard, signal: Report) -> Heard:
    kind, at = signal.kind, Wall(signal.at)
    if signal.session_id and at >= heard.conversation_at and kind is not ReportKind.EXITED:
        heard = replace(heard, conversation=signal.session_id, conversation_at=at)
    if kind is ReportKind.MODEL and at >= heard.model_at:
        return replace(heard, model=signal.text, model_at=at)
    if kind is ReportKind.PROMPT_TAKEN:
        heard = replace(heard, prompts=(*heard.prompts, (at, signal.text))[-PROMPTS:])
        if at > heard.receipt:
            heard = replace(heard, receipt=at, prompt=signal.text)
    if kind is ReportKind.LIMIT_HIT and heard.limit is not None:
        signal = _more_exact(heard.limit, signal)
        if at < heard.at and signal.at == heard.limit.at:
            return replace(heard, limit=signal)
    if kind is ReportKind.ANSWERED:
        return replace(heard, answered=max(at, heard.answered))
    if kind not in _SAME_TURN and at > heard.troubled and kind in _WORKS:
        heard = replace(heard, troubled=at)
    works = _WORKS.get(kind)
    if works is None or at < heard.at:
        return heard
    return replace(
        heard,
        working=works,
        at=at,
        source=signal.source,
        asked=(signal.text or "a question") if kind is ReportKind.ASKED else "",
        limit=signal if kind is ReportKind.LIMIT_HIT else _unless_turned(heard.limit, kind),
        auth=(signal.text or "authentication failed") if kind is ReportKind.AUTH_FAILED else "",
    )


def _more_exact(known: Report, told: Report) -> Report:
    """A banner drops the seconds, and often the zone: where a source has the number itself, that counts."""
    if known.exact == told.exact or abs(known.at - told.at) > SAME_S:
        return told
    newer, number = (known if known.at > told.at else told), (known if known.exact else told)
    return replace(newer, until=number.until, exact=True)


def _unless_turned(limit: Report | None, kind: ReportKind) -> Report | None:
    """A turn's end after its limit is the same turn, and so is the limit's own menu; the rest is another."""
    return limit if kind in _SAME_TURN else None
