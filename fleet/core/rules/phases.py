"""Where the loop stands, and when it takes the next step.

The index on disk is a bare number, so it means another phase as soon as somebody inserts one; the
sidecar remembers the id. When the two, or the sidecar and the file, disagree, the loop is held and says
what would mend it: running the wrong plan is worse than running none.

A step is taken when the status file is really done and has stood still for two looks, when every gate
has passed for this commit, and when all kickoffs of the next phase can be built.
"""

from __future__ import annotations

from dataclasses import replace

from fleet.core.decision import Note
from fleet.core.loop import Draft, Move, Place, StatusView
from fleet.core.model import Loop
from fleet.core.moment import UNNAMED, Wall, later
from fleet.core.rules.gates import gates, still_so
from fleet.core.words import EventType

SETTLE_S = 1.0  # a status file must stay the same for this long, or one signal interval if shorter


def ids_of(loop: Loop) -> tuple[str, ...]:
    """The phase ids, in order."""
    return tuple(p.id for p in loop.phases)


def place_at(loop: Loop, index: int, now: Wall, *, commit: str = "", before: Place | None = None) -> Place:
    """The place of that index; the number of phases stands for the end. Ratchets are carried over."""
    ids = ids_of(loop)
    ratchets = before.ratchets if before else ()
    id_ = ids[index] if index < len(ids) else ""
    return Place(index=index, id=id_, ids=ids, since=now, commit=commit, ratchets=ratchets)


def locate(draft: Draft) -> Place | None:
    """The place that counts; None when there is none yet, or when the loop must be held."""
    loop, seen = draft.loop, draft.seen
    ids, place, index = ids_of(loop), seen.place, seen.index
    if seen.trouble:
        draft.held = seen.trouble
        return None
    if place is None:
        why = "the loop begins" if index is None else f"index {index} was there without its sidecar"
        _move(draft, None, min(index or 0, len(ids)), Note(EventType.PHASE_SET, why))
        return None
    if index is None:
        draft.steps.append(Move(place, place, Note(EventType.PHASE_SET, "the index file was missing")))
    draft.held = doubt(loop, place, index)
    if draft.held:
        return None
    return _after_the_end(draft, place) if place.complete else place


def doubt(loop: Loop, place: Place, index: int | None) -> str:
    """Why the position on record cannot be believed, and what mends that; empty when it can."""
    ids = ids_of(loop)
    if index not in {None, place.index}:
        return (
            f"{loop.state_file} says {_name(ids, index or 0)},"
            f" phase.json says {_name(ids, place.index, place.id)}:"
            f" run `agents.py phase set N` with the one you mean"
        )
    if place.complete:
        if place.index >= len(ids) or not place.ids or place.ids[: place.index] == ids[: place.index]:
            return ""
        return (
            f"all {place.index} phases were done, and the list has changed before its end, not only after it:"
            f" run `agents.py phase set ID` with the phase to go on with"
        )
    if place.index < len(ids) and ids[place.index] == place.id:
        return ""
    where = f"it is number {ids.index(place.id)} now" if place.id in ids else "it is not in the file any more"
    return (
        f"the loop was in phase {place.id!r} at number {place.index}, but {where}, and the file's"
        f" {_name(ids, place.index)} is another: run `agents.py phase set ID` with the phase to go on with"
    )


def _after_the_end(draft: Draft, place: Place) -> Place | None:
    """Complete stays complete; a phase appended to the list, which nobody doubts, opens it again."""
    ids = ids_of(draft.loop)
    if place.index > len(ids):
        _move(draft, place, len(ids), Note(EventType.PHASE_SET, "phases were removed after the end"))
        return place
    if place.index == len(ids):
        return place
    new = ids[place.index]
    note = Note(EventType.SEQUENCE_REOPENED, f"phase {new} was appended after the end", (("phase", new),))
    _move(draft, place, place.index, note)
    return None


def _move(draft: Draft, place: Place | None, index: int, note: Note) -> None:
    to = place_at(draft.loop, index, draft.now, commit=draft.tip, before=place)
    draft.steps.append(Move(place, to, note))
    draft.wakes.append(draft.now)


def advance(draft: Draft, place: Place) -> None:
    """Take the next step, if everything it needs is true; otherwise say what is missing."""
    loop, status = draft.loop, draft.seen.status
    phase = loop.phases[place.index]
    draft.state = here = f"phase {phase.id} ({place.index + 1}/{len(loop.phases)})"
    if status is None:
        return
    first = draft.memory.looked != phase.id
    draft.remember(looked=phase.id)
    if not status.reading.done:
        draft.remember(done_phase="", done_digest="", done_since=UNNAMED, waiting="")
        if status.reading.line:
            draft.problems.append(f"{status.path}:{status.reading.line}: {status.reading.why}")
        return
    if first:
        draft.note(
            EventType.PHASE_PRE_DONE, f"{status.path} said so before phase {phase.id} began", phase=phase.id
        )
    if not _settled(draft, phase.id, status):
        draft.state = f"{here}: done, looking once more"
        return
    verdict = gates(draft, phase, place)
    if not verdict.passed:
        draft.state = f"{here}: done, {verdict.said}"
    elif not loop.auto_advance:
        draft.state = f"{here}: done, waiting for `agents.py phase next`"
        if draft.memory.waiting != phase.id:
            draft.remember(waiting=phase.id)
            draft.note(EventType.PHASE_HELD, f"phase {phase.id} is done; auto_advance is off", phase=phase.id)
    elif draft.seen.next_trouble:
        trouble = draft.seen.next_trouble
        draft.held = f"phase {phase.id} is done, but the next one cannot be started: {trouble}"
        draft.state = f"{here}: {draft.held}"
    elif not still_so(draft, phase):
        draft.state = f"{here}: done, looking at the work tree once more"
    else:
        _step(draft, place, status, verdict.ratchets)


def _settled(draft: Draft, phase: str, status: StatusView) -> bool:
    """Whether the same text read as done on an earlier look, long enough ago."""
    memory, now = draft.memory, draft.now
    settle = min(SETTLE_S, draft.fleet.watchdog.signal_interval)
    known = (memory.done_phase, memory.done_digest) == (phase, status.digest) and memory.done_since <= now
    since = memory.done_since if known else now
    draft.remember(done_phase=phase, done_digest=status.digest, done_since=since)
    if known and now - since >= settle:
        return True
    draft.wakes.append(later(since, settle))
    return False


def _step(draft: Draft, place: Place, status: StatusView, ratchets: tuple[tuple[str, float], ...]) -> None:
    evidence = (
        ("status", status.path),
        ("line", str(status.reading.line)),
        ("digest", status.digest),
        ("commit", draft.seen.git.head if draft.seen.git else ""),
        ("gates", str(len(draft.loop.phases[place.index].gates))),
    )
    kept = tuple(sorted({**dict(place.ratchets), **dict(ratchets)}.items()))
    to = place_at(draft.loop, place.index + 1, draft.now, commit=draft.tip)
    to = replace(to, ratchets=kept, evidence=evidence)
    reason = f"phase {place.id} is done, {to.id or 'the end'} is next"
    note = Note(EventType.PHASE_ADVANCED, reason, (("phase", place.id), ("to", to.id), *evidence))
    draft.steps.append(Move(place, to, note))
    draft.wakes.append(draft.now)


def starts_over(loop: Loop, *, bare: bool, running: bool) -> bool:
    """Whether this `up` goes back to the first phase: only a bare one may, and never under running loops."""
    return not loop.resume_phase and bare and not running


def find(loop: Loop, word: str) -> int | None:
    """The index that a person means by a phase id or a number; the id wins. None: no such phase."""
    ids = ids_of(loop)
    if word in ids:
        return ids.index(word)
    if word.isascii() and word.isdigit() and int(word) < len(ids):
        return int(word)
    return None


def _name(ids: tuple[str, ...], index: int, id_: str = "") -> str:
    known = id_ or (ids[index] if index < len(ids) else "past the end")
    return f"{index} ({known})"
