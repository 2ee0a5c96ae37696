"""The queue of notices: each is sent once to every target that wants its kind, also across a kill.

Reading on in the events and queueing what follows from them is one durable step; sending comes after, and
a message leaves the queue when its sending was seen to succeed. So nothing is lost and nothing is sent
twice, except what was on its way when the process was killed: that is sent again, under the same id.

Each target has a sender of its own: one that is slow or down delays no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from fleet.core.codec import from_plain, to_plain
from fleet.core.model import Fleet, Notify
from fleet.core.words import EventType
from fleet.extras.notify.notices import NOTHING_YET, Book, Notice, drifted, from_event, still_so, wanted
from fleet.extras.notify.targets import Dispatch, label
from fleet.ports import Clock
from fleet.store.documents import Store
from fleet.store.eventlog import Bookmark, Events, end_of, read_on

DOCUMENT = "notify"
BURST = 3  # more than this at once become one message
BACK_OFF_S = (5.0, 600.0)
OLD_S = 86_400.0  # news of yesterday is none
QUEUE_CAP = 500  # a target that is down for days does not fill the disk

Deliver = Callable[[Notify, Dispatch], str]
Look = Callable[[Book], tuple[Book, tuple[Notice, ...]]]  # at what is so, rather than at what happened


@dataclass(frozen=True, slots=True)
class Waiting:
    """One notice for one target. `held`: it came in quiet hours."""

    target: str
    notice: Notice
    due: float
    tries: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept on disk."""

    place: Bookmark
    book: Book
    queue: tuple[Waiting, ...] = ()


class Notifier:
    """The queue of one fleet. `turn` is called again and again; it never waits."""

    def __init__(self, fleet: Fleet, store: Store, events: Events, deliver: Deliver, clock: Clock) -> None:
        self._clock = clock
        self.fleet = fleet
        self._store = store
        self._events = events
        self._deliver = deliver
        self._path = events.path
        self._pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="notify")
        self._flying: dict[str, tuple[Future[str], tuple[Waiting, ...]]] = {}
        self.memory = self._load()

    # --- one turn -----------------------------------------------------------------------------------

    def turn(self, now: float, looks: Iterable[Look] = ()) -> None:
        """Read on, look, put what is new into the queue, and send what is due."""
        self._land(now)
        records, place = read_on(self._path, self.memory.place)
        book, news = self.memory.book, list[Notice]()
        for record in records:
            book, fresh = from_event(book, record)
            news += fresh
        for look in looks:
            book, fresh = look(book)
            news += fresh
        queue = (*self.memory.queue, *self._addressed(news, now))
        kept = tuple(w for w in queue if self._is_news(w, book, now))
        self._save(Memory(place, book, self._capped(kept)))
        self._take_off(now)

    def next_due(self, now: float) -> float:
        """Seconds until there is something to send; a day if there is nothing."""
        waits = [w.due - now for w in self.memory.queue if w.target not in self._flying and not w.held]
        return max(0.0, min(waits, default=OLD_S))

    def busy(self) -> bool:
        """Is something on its way?"""
        return bool(self._flying)

    def close(self, patience: float) -> None:
        """Let what is on its way arrive, and remember that it did."""
        deadline = self._clock.mono() + patience
        for future, _ in self._flying.values():
            try:
                future.exception(max(0.0, deadline - self._clock.mono()))
            except TimeoutError:
                break
        self._land(self._clock.wall())
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- which target gets what, and when -----------------------------------------------------------

    def targets(self) -> dict[str, tuple[int, Notify]]:
        """Targets by a name that survives an edit of the others."""
        named: dict[str, tuple[int, Notify]] = {}
        for number, target in enumerate(self.fleet.notify):
            words = f"{target.to}\0{target.command}\0{target.url_env}\0{','.join(target.on)}"
            key = sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
            named.setdefault(key, (number, target))
        return named

    def _addressed(self, news: Iterable[Notice], now: float) -> list[Waiting]:
        fresh = [n for n in news if n.at > now - OLD_S]
        return [
            Waiting(key, notice, min(notice.at, now) + self._patience(target, notice))
            for notice in fresh
            for key, (_, target) in self.targets().items()
            if wanted(notice.kind, target.on)
        ]

    def _patience(self, target: Notify, notice: Notice) -> float:
        if not notice.key:
            return 0.0
        return target.after or (self.fleet.watchdog.notify_after if notice.kind == "asking" else 0.0)

    def _is_news(self, waiting: Waiting, book: Book, now: float) -> bool:
        """Still worth sending: the target is there, and a condition that must last has lasted."""
        if waiting.target not in self.targets() or waiting.notice.at < now - OLD_S:
            return False
        unsent = not waiting.tries and waiting.due > waiting.notice.at and not waiting.held
        return not unsent or still_so(book, waiting.notice)

    def _capped(self, queue: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
        if len(queue) > QUEUE_CAP:
            self._say(
                EventType.NOTIFY_FAILED, f"{len(queue) - QUEUE_CAP} messages were dropped: the queue is full"
            )
        return queue[-QUEUE_CAP:]

    # --- sending ------------------------------------------------------------------------------------

    def _take_off(self, now: float) -> None:
        for key, (_, target) in self.targets().items():
            due = [w for w in self.memory.queue if w.target == key and w.due <= now]
            if key in self._flying or not due:
                continue
            if is_quiet(target.quiet, now):
                held = tuple(replace(w, held=True) if w in due else w for w in self.memory.queue)
                self._save(replace(self.memory, queue=held))
                continue
            together = len(due) > BURST or (len(due) > 1 and any(w.held for w in due))
            batch = tuple(due) if together else (due[0],)
            message = Dispatch(self.fleet.session_prefix.rstrip("-_"), tuple(w.notice for w in batch))
            self._flying[key] = (self._pool.submit(self._deliver, target, message), batch)

    def _land(self, now: float) -> None:
        for key in [k for k, (future, _) in self._flying.items() if future.done()]:
            future, batch = self._flying.pop(key)
            fault = future.exception()
            why = repr(fault) if fault is not None else future.result()
            self._settle(key, batch, why, now)

    def _settle(self, key: str, batch: tuple[Waiting, ...], why: str, now: float) -> None:
        number, target = self.targets().get(key, (0, None))
        ids = {w.notice.id for w in batch}
        mine = [w for w in self.memory.queue if w.target == key and w.notice.id in ids]
        others = tuple(w for w in self.memory.queue if w not in mine)
        who = label(number, target) if target else "a target that is gone"
        facts = {"target": who, "ids": sorted(ids), "kinds": sorted({w.notice.kind for w in batch})}
        tries = max((w.tries for w in batch), default=0) + 1
        again: tuple[Waiting, ...] = ()
        if not why:
            self._say(EventType.NOTIFY_SENT, f"{who}: {batch[0].notice.title}", **facts)
        elif target is not None and tries <= target.retries:
            wait = min(BACK_OFF_S[0] * 2 ** (tries - 1), BACK_OFF_S[1])
            again = tuple(replace(w, tries=tries, due=now + wait) for w in mine)
        else:
            self._say(EventType.NOTIFY_FAILED, f"{who}: given up after {tries} tries: {why}", **facts)
        self._save(replace(self.memory, queue=(*others, *again)))

    # --- remembering --------------------------------------------------------------------------------

    def _load(self) -> Memory:
        """What is on record. Without a record: what happened before this watchdog is no news."""
        data = self._store.load(DOCUMENT)
        try:
            if data:
                return from_plain(Memory, data)
        except ValueError as fault:
            self._say(EventType.NOTIFY_FAILED, f"state/notify.json: {fault}; starting from now")
        return Memory(end_of(self._path, (EventType.WATCHDOG_STARTED,)), NOTHING_YET)

    def _save(self, memory: Memory) -> None:
        if memory != self.memory:
            self._store.save(DOCUMENT, to_plain(memory))
            self.memory = memory

    def _say(self, kind: EventType, reason: str, **facts: Any) -> None:
        self._events.record(kind, reason=reason, **facts)


def is_quiet(span: str, now: float) -> bool:
    """Is it one of the silent hours ("22:00-07:00") by the clock on this machine's wall?"""
    if not span:
        return False
    begin, end = span.split("-")
    here = time.strftime("%H:%M", time.localtime(now))
    return begin <= here < end if begin <= end else here >= begin or here < end


def drift_of(view: Mapping[str, Any], now: float) -> Look:
    """A look at view.json: which agents run with values that the file no longer has."""

    def look(book: Book) -> tuple[Book, tuple[Notice, ...]]:
        news: list[Notice] = []
        for row in (*view.get("agents", ()), *view.get("services", ())):
            book, fresh = drifted(book, str(row.get("name", "")), row.get("drift", ()), now)
            news += fresh
        return book, tuple(news)

    return look
