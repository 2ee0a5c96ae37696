"""Where the loop stands, and when it takes the next step.

The index on disk is a bare number, so it means another phase as soon as one is inserted; the
sidecar remembers the id. When the two, or the sidecar and the file, disagree, the loop is held and says
what would fix it: running the wrong plan is worse than running none.

A step is taken when the status file is really done and has stood still for two looks, when every gate
has passed for this commit, and when all kickoffs of the next phase can be built.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fleet.core.case import SEEN_ONCE
from fleet.core.decision import Note
from fleet.core.effects import Move
from fleet.core.loop.gates import ask_tree, gates, seen_just_now
from fleet.core.loop.loop_case import LoopCase, LoopPart, Place, StatusView
from fleet.core.model import Loop, Phase
from fleet.core.words import EventType
from fleet.times.moment import UNNAMED, Wall, later

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


def locate(case: LoopCase) -> tuple[Place | None, LoopPart]:
    """The place that counts, None when there is none yet or the loop must be held; and what that leads to."""
    loop, seen = case.loop, case.seen
    place, index = seen.place, seen.index
    if seen.trouble:
        return None, LoopPart(case.memory, held=seen.trouble)
    if place is None:
        why = "the loop begins" if index is None else f"index {index} was there without its sidecar"
        first = min(index or 0, len(loop.phases))
        return None, _go(case, None, first, Note(EventType.PHASE_SET, why))
    said = LoopPart(case.memory, held=doubt(loop, place, index))
    if index is None:
        again = Move(place, place, Note(EventType.PHASE_SET, "the index file was missing"))
        said = said._replace(effects=(again,))
    if said.held:
        return None, said
    if not place.complete:
        return place, said
    still, after = _after_the_end(case, place)
    return still, said.joined(after)


def doubt(loop: Loop, place: Place, index: int | None) -> str:
    """Why the position on record cannot be believed, and what fixes that; empty when it can."""
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


def _after_the_end(case: LoopCase, place: Place) -> tuple[Place | None, LoopPart]:
    """Complete stays complete; a phase that was appended to the list opens it again."""
    ids = ids_of(case.loop)
    if place.index > len(ids):
        cut = Note(EventType.PHASE_SET, "phases were removed after the end")
        return place, _go(case, place, len(ids), cut)
    if place.index == len(ids):
        return place, LoopPart(case.memory)
    new = ids[place.index]
    note = Note(EventType.SEQUENCE_REOPENED, f"phase {new} was appended after the end", (("phase", new),))
    return None, _go(case, place, place.index, note)


def _go(case: LoopCase, place: Place | None, index: int, note: Note) -> LoopPart:
    """Move to that index, and look at once at what is there."""
    now = case.now.wall
    to = place_at(case.loop, index, now, commit=case.tip, before=place)
    return LoopPart(case.memory, effects=(Move(place, to, note),), wakes=(now,))


def advance(case: LoopCase, place: Place) -> LoopPart:
    """Take the next step, if everything it needs is true; otherwise say what is missing."""
    phase, status = case.loop.phases[place.index], case.seen.status
    here = f"phase {phase.id} ({place.index + 1}/{len(case.loop.phases)})"
    if status is None:
        return LoopPart(case.memory, state=here)
    said = LoopPart(case.memory.having(looked=phase.id), state=here)
    if not status.reading.done:
        return said.then(case, partial(_not_done, status=status))
    if case.memory.looked != phase.id:
        said = said._replace(notes=(_done_before(phase, status),))
    settled, part = _settled(case.after(said), phase.id, status)
    said = said.joined(part)
    if not settled:
        return said._replace(state=f"{here}: done, {SEEN_ONCE}")
    verdict = gates(case.after(said), phase, place)
    said = said.joined(verdict.part)
    if not verdict.passed:
        return said._replace(state=f"{here}: done, {verdict.said}")
    return said.then(case, partial(_done, place=place, status=status, ratchets=verdict.ratchets, here=here))


def _not_done(case: LoopCase, status: StatusView) -> LoopPart:
    """Forget what read as done; name a marker that was refused."""
    memory = case.memory.having(done_phase="", done_digest="", done_since=UNNAMED, waiting="")
    refused = f"{status.path}:{status.reading.line}: {status.reading.why}"
    return LoopPart(memory, problems=(refused,) if status.reading.line else ())


def _done_before(phase: Phase, status: StatusView) -> Note:
    reason = f"{status.path} said so before phase {phase.id} began"
    return Note(EventType.PHASE_PRE_DONE, reason, (("phase", phase.id),))


def _settled(case: LoopCase, phase: str, status: StatusView) -> tuple[bool, LoopPart]:
    """Whether the same text read as done on an earlier look, long enough ago."""
    memory, now = case.memory, case.now.wall
    settle = min(SETTLE_S, case.fleet.watchdog.signal_interval)
    known = (memory.done_phase, memory.done_digest) == (phase, status.digest) and memory.done_since <= now
    since = memory.done_since if known else now
    memory = memory.having(done_phase=phase, done_digest=status.digest, done_since=since)
    if known and now - since >= settle:
        return True, LoopPart(memory)
    return False, LoopPart(memory, wakes=(later(since, settle),))


def _done(
    case: LoopCase, place: Place, status: StatusView, ratchets: tuple[tuple[str, float], ...], here: str
) -> LoopPart:
    """The phase is done and its gates have passed: move on, if it may and can."""
    phase, trouble = case.loop.phases[place.index], case.seen.next_trouble
    if not case.loop.auto_advance:
        note = Note(
            EventType.PHASE_HELD, f"phase {phase.id} is done; auto_advance is off", (("phase", phase.id),)
        )
        return LoopPart(
            case.memory.having(waiting=phase.id),
            notes=(note,) if case.memory.waiting != phase.id else (),
            state=f"{here}: done, waiting for `agents.py phase next`",
        )
    if trouble:
        held = f"phase {phase.id} is done, but the next one cannot be started: {trouble}"
        return LoopPart(case.memory, held=held, state=f"{here}: {held}")
    if not seen_just_now(case, phase):
        state = f"{here}: done, looking at the work tree once more"
        return LoopPart(case.memory, effects=ask_tree(case), state=state)
    return _step(case, place, status, ratchets)


def _step(
    case: LoopCase, place: Place, status: StatusView, ratchets: tuple[tuple[str, float], ...]
) -> LoopPart:
    evidence = (
        ("status", status.path),
        ("line", str(status.reading.line)),
        ("digest", status.digest),
        ("commit", case.seen.git.head if case.seen.git else ""),
        ("gates", str(len(case.loop.phases[place.index].gates))),
    )
    now = case.now.wall
    kept = tuple(sorted({**dict(place.ratchets), **dict(ratchets)}.items()))
    to = place_at(case.loop, place.index + 1, now, commit=case.tip)
    to = replace(to, ratchets=kept, evidence=evidence)
    reason = f"phase {place.id} is done, {to.id or 'the end'} is next"
    note = Note(EventType.PHASE_ADVANCED, reason, (("phase", place.id), ("to", to.id), *evidence))
    return LoopPart(case.memory, effects=(Move(place, to, note, startable=True),), wakes=(now,))


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
