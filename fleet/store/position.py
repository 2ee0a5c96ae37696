"""The position of the loop on disk: a bare index for any reader, a sidecar that knows what it means.

Two files cannot be replaced in one step, so a move is three writes: the sidecar with the new place and
`pending`, the index, the sidecar again without it. A watchdog or a verb that finds a pending one finishes it,
which is safe because it says both ends. Without `pending` a disagreement was made by hand, and that is not
ours to fix.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from fleet.core.codec import from_plain, to_plain
from fleet.core.decision import Result
from fleet.core.loop.loop_case import LoopShown, Place
from fleet.core.words import Outcome
from fleet.store.documents import Store, StoreError

SIDECAR = "phase"


@dataclass(frozen=True, slots=True)
class PhaseEntry:
    """What the two files say, or why that cannot be found out."""

    place: Place | None = None
    index: int | None = None
    trouble: str = ""


class _Page(NamedTuple):
    place: Place
    pending: bool = False
    before: int | None = None  # the index that a pending move started from


def _half_made(page: _Page, index: int | None) -> bool:
    return page.pending and index in {page.before, page.place.index}


class PhaseBook:
    """Reads the position, and moves it by compare-and-set."""

    def __init__(
        self, store: Store, lock: Callable[[], AbstractContextManager[object]], state_file: str
    ) -> None:
        self._store = store
        self._lock = lock
        self._file = state_file

    def read(self, *, mend: bool = False) -> PhaseEntry:
        """The position. A move half-way is shown as what it is going to be; `mend` also finishes it."""
        try:
            page, index = self._page(), self._index()
            if mend and page is not None and page.pending:
                self.mend()
                page, index = self._page(), self._index()
        except (OSError, ValueError, StoreError) as error:
            return PhaseEntry(trouble=str(error))
        if page is None:
            return PhaseEntry(index=index)
        return PhaseEntry(page.place, page.place.index if _half_made(page, index) else index)

    def mend(self) -> None:
        """Finish a move whose writer was killed in it."""
        with self._lock():
            page, index = self._page(), self._index()
            if page is not None and _half_made(page, index):
                self._finish(page)

    def move(self, expect: Place | None, to: Place) -> Result:
        """From the expected place to another, durably. Nothing is written if it differs."""
        with self._lock():
            now = self.read()
            if now.trouble:
                return Result(Outcome.REFUSED, now.trouble)
            if now.place != expect:
                where = now.place.id or "the end" if now.place else "nowhere"
                return Result(Outcome.STALE, f"the loop is at {where} meanwhile")
            if expect is not None and now.index not in {None, expect.index}:
                return Result(Outcome.STALE, f"state/{self._file} was changed meanwhile")
            self._write(to)
        return Result(Outcome.DONE)

    def set(self, to: Place) -> None:
        """A person's word: whatever was there, this is the place now."""
        with self._lock():
            self._write(to)

    def _write(self, to: Place) -> None:
        try:
            before = self._index()
        except ValueError:
            before = None  # a person is about to mend it
            self._store.remove_text(self._file)
        page = _Page(to, pending=True, before=before)
        self._store.save(SIDECAR, to_plain(page))
        self._finish(page)

    def _finish(self, page: _Page) -> None:
        self._store.write_text(self._file, f"{page.place.index}\n")
        self._store.save(SIDECAR, to_plain(_Page(page.place)))

    def _page(self) -> _Page | None:
        data = self._store.load(SIDECAR)
        try:
            return from_plain(_Page, data) if data else None
        except ValueError as error:
            path = self._store.path(SIDECAR)
            raise ValueError(
                f"{path}: {error}; run `agents.py phase set ID` with the phase to go on with"
            ) from error

    def _index(self) -> int | None:
        text = self._store.read_text(self._file, 4096)
        if text is None:
            return None
        word = text.strip()
        if not (word.isascii() and word.isdigit()):
            said = word[:20] or "nothing"
            raise ValueError(
                f"state/{self._file} holds {said!r}, expected the number of a phase, from 0:"
                " run `agents.py phase set ID` with the phase to go on with"
            )
        return int(word)


def standing(entry: PhaseEntry) -> LoopShown:
    """What the agents of the loop need to know of the position."""
    place = entry.place
    if entry.trouble or place is None or entry.index != place.index:
        return LoopShown(held=entry.trouble or "the loop's position is in doubt")
    return LoopShown(place.id, place.complete, keep_runs=place.keep_runs)


def shown(entry: PhaseEntry) -> LoopShown:
    """The same for people: a loop that has not begun is not held."""
    return LoopShown() if entry == PhaseEntry() else standing(entry)
