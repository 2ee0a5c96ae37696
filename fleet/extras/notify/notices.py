"""What is news. Pure: events in, notices out, and a book of what is still so.

A condition (fatal, asking, limited ...) is news when it begins, however often it is reported while it
lasts. A point (a phase ended, a gate failed) is news once. The book survives restarts, so a watchdog
that starts again and says the same again is not news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from fleet.core.model import NOTICES
from fleet.core.words import Detail, EventType

Record = Mapping[str, Any]
RECENT = 500  # ids remembered

OPENS: dict[str, str] = {
    EventType.AGENT_FAILED_FOR_GOOD: "fatal",
    EventType.AGENT_FLAPPED: "flapping",
    EventType.AGENT_LIMITED: "limited",
    EventType.CONFIG_REJECTED: "config",
    EventType.CONFIG_SHRUNK: "config",
    EventType.WATCHDOG_DEGRADED: "degraded",
}
CLOSES: dict[str, tuple[str, ...]] = {
    EventType.AGENT_RESET: ("fatal", "flapping"),
    EventType.AGENT_RECOVERED: ("flapping",),
    EventType.AGENT_RESUMED: ("limited",),
    EventType.CONFIG_LOADED: ("config",),
    EventType.CONFIG_RECOVERED: ("config",),
    EventType.WATCHDOG_RECOVERED: ("degraded",),
}
POINTS: dict[str, str] = {
    EventType.PHASE_ADVANCED: "phase",
    EventType.PHASE_HELD: "held",  # the loop records each hold once
    EventType.GATE_FAILED: "gate",
    EventType.SEQUENCE_COMPLETED: "complete",
    EventType.WATCHDOG_ENSURED: "stale",
}
SHOWN = {Detail.FATAL: "fatal", Detail.ASKING: "asking", Detail.LIMITED: "limited"}
BLIND = frozenset({Detail.UNSEEN, Detail.UNKNOWN, Detail.FOREIGN})  # not seen is not over
WORKS = frozenset({Detail.WORKING, Detail.IDLE})
# What an agent may show while it is still limited: the way back goes through some of these.
STILL_LIMITED = BLIND | {Detail.LIMITED, Detail.RETRYING, Detail.STARTING, Detail.HELD, Detail.PAUSED}

TITLES = {
    "fatal": "needs you: it cannot run",
    "asking": "waits for an answer",
    "flapping": "keeps dying",
    "limited": "has reached its usage limit",
    "resumed": "goes on after its limit",
    "phase": "next phase",
    "gate": "a gate failed",
    "held": "the loop is held",
    "complete": "all phases are done",
    "stale": "the watchdog stood still",
    "degraded": "the watchdog cannot do all of its work",
    "config": "agents.toml is not in force",
    "drift": "runs with other values than agents.toml says",
    "test": "a test",
    "digest": "several things",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One piece of news. `key` names the condition it began; empty for a point."""

    id: str
    kind: str
    agent: str
    at: float
    text: str
    key: str = ""

    @property
    def title(self) -> str:
        """What a person reads first."""
        return f"{self.agent}: {TITLES[self.kind]}" if self.agent else TITLES[self.kind]


@dataclass(frozen=True, slots=True)
class Book:
    """What is still so (condition to notice id), and which ids were news already."""

    open: dict[str, str]
    recent: tuple[str, ...] = ()


NOTHING_YET = Book({})


def wanted(kind: str, on: Iterable[str]) -> bool:
    """Whether a target with these kinds gets this one; a target without kinds gets what needs an operator."""
    kinds = tuple(on)
    return kind in kinds if kinds else NOTICES.get(kind, True)


def from_event(book: Book, record: Record) -> tuple[Book, tuple[Notice, ...]]:
    """What one event means."""
    kind, agent = str(record["type"]), str(record.get("agent") or "")
    text, at = str(record.get("reason") or ""), float(record["ts"])
    facts = record.get("facts") or {}
    news: list[Notice] = []
    if kind == EventType.AGENT_STATE_CHANGED:
        return _shown(book, agent, str(facts.get("now", "")), text, at)
    for ended in CLOSES.get(kind, ()):
        book, was = ends(book, ended, agent)
        if was and ended == "limited":
            news.append(_notice("resumed", agent, at, text))
    if kind in OPENS:
        book, begun = begins(book, OPENS[kind], agent, at, text)
        news += begun
    if kind in POINTS:
        about = (
            f"{facts.get('phase', '')}{facts.get('commit', '')}" if kind == EventType.GATE_FAILED else f"{at}"
        )
        news.append(_notice(POINTS[kind], agent, at, text, about))
    return _remembered(book, news)


def begins(book: Book, kind: str, agent: str, at: float, text: str) -> tuple[Book, tuple[Notice, ...]]:
    """A condition holds: news if it did not before."""
    key = f"{kind}:{agent}"
    if key in book.open:
        return book, ()
    notice = replace(_notice(kind, agent, at, text), key=key)
    return replace(book, open={**book.open, key: notice.id}), (notice,)


def ends(book: Book, kind: str, agent: str) -> tuple[Book, bool]:
    """A condition does not hold: the book, and whether it did before."""
    key = f"{kind}:{agent}"
    if key not in book.open:
        return book, False
    return replace(book, open={k: v for k, v in book.open.items() if k != key}), True


def still_so(book: Book, notice: Notice) -> bool:
    """Is what the notice tells of still the case? What was a point stays so."""
    return not notice.key or book.open.get(notice.key) == notice.id


def drifted(book: Book, agent: str, keys: Iterable[str], at: float) -> tuple[Book, tuple[Notice, ...]]:
    """What an agent still runs that the file no longer says; news whenever the list is another one."""
    text = ", ".join(keys)
    others = [k for k in book.open if k.startswith(f"drift:{agent}:") and k != f"drift:{agent}:{text}"]
    book = replace(book, open={k: v for k, v in book.open.items() if k not in others}) if others else book
    key = f"drift:{agent}:{text}"
    if not text or key in book.open:
        return book, ()
    said = f"differs: {text}; `agents.py restart {agent}` takes it over"
    notice = replace(_notice("drift", agent, at, said), key=key)
    return replace(book, open={**book.open, key: notice.id}), (notice,)


def _shown(book: Book, agent: str, now: str, text: str, at: float) -> tuple[Book, tuple[Notice, ...]]:
    """An agent shows another detail: some conditions begin by it, some end."""
    if now not in set(Detail):
        return book, ()
    detail, why = Detail(now), text.partition(": ")[2] or text
    news: list[Notice] = []
    if detail not in BLIND:
        for kind in ("fatal", "asking"):
            if SHOWN.get(detail) != kind:
                book, _ = ends(book, kind, agent)
    if detail not in STILL_LIMITED:
        book, was = ends(book, "limited", agent)
        if was and detail in WORKS:
            news.append(_notice("resumed", agent, at, why))
    if detail in SHOWN:
        book, begun = begins(book, SHOWN[detail], agent, at, why)
        news += begun
    return _remembered(book, news)


def _notice(kind: str, agent: str, at: float, text: str, about: str = "") -> Notice:
    identity = f"{kind}\0{agent}\0{about or at}\0{text}"
    return Notice(sha256(identity.encode("utf-8", "replace")).hexdigest()[:16], kind, agent, at, text)


def _remembered(book: Book, news: Iterable[Notice]) -> tuple[Book, tuple[Notice, ...]]:
    fresh = tuple(n for n in news if n.id not in book.recent)
    return replace(book, recent=(*book.recent, *(n.id for n in fresh))[-RECENT:]) if fresh else book, fresh
