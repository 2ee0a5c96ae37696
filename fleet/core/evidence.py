"""Which of a screen's bad words count, and what they mean.

A screen holds what a CLI says of itself and what its agent says, and the two may look alike: a CLI may draw
an answer that begins "You've hit your session limit" exactly as it draws its own banner. Words on a screen
also outlive what they said. So an accusation (a limit, a broken conversation, a refusal) passes three
questions before any rule sees it:

  Who said it?       Where a structured source tells how turns end, and says that the model itself ended this
                     one, the words are the agent's own, and stay so while they stand there. While that source
                     says that the turn still goes on, the words wait for it: 15 s from when they came, and
                     from its newest report, because a screen may be drawn late.
  Is it over?        Words that had their consequence are remembered with what stands right above them. They
                     count no more while they stand there. The same words in another place are said anew, and
                     so are those that came below a text of ours after we typed it.
  When was it said?  A time of day means its next occurrence after the words first came. That first meaning is
                     kept as long as the words stand there, over midnights and restarts of the watchdog.
"""

from __future__ import annotations

import re

from fleet.core.case import AgentSeen, Case
from fleet.core.memory import AgentMemory, Words
from fleet.core.seen import Reading, ScreenState
from fleet.times.moment import NEVER, UNNAMED

ACCUSING = frozenset(
    {ScreenState.LIMITED, ScreenState.WEDGED, ScreenState.AUTH, ScreenState.CONTEXT, ScreenState.ERROR}
)
# A screen in one of these states shows what it shows: what is not on it is gone.
PLAIN = frozenset({ScreenState.IDLE, ScreenState.WORKING, ScreenState.RETRYING})
PATIENCE_S = 15.0  # how long a turn's end may be on the screen before its source reports it
LATE_S = 2.0  # how long words may be on the screen before a look finds them
KEPT = 4  # words that were dealt with and may still stand on one screen
OWN, DEALT, EARLY = "own-words", "dealt-with", "turn-not-over"  # what a reading's pattern is called then


def weigh(case: Case) -> Case:
    """The same case, with a reading that holds only what counts and a memory of what was read."""
    seen = case.seen
    reading, pane = seen.reading, seen.pane
    if seen.blind or reading is None or pane is None or pane.dead:
        return case
    memory, believed = _of_this_run(case.memory, pane.ref.run), reading
    if reading.state in ACCUSING:
        memory = _note(memory, reading, case)
        believed = _judged(reading, memory, case)
        if _is_own(reading, case) and _heard_since(memory.words, case, LATE_S):
            memory = dealt_with(memory)  # also when the next turn has begun and the screen is not drawn anew
    else:
        memory = _forget(memory, reading)
    auth = _refusal(seen, memory, believed)
    if memory is case.memory and believed is reading and auth == seen.auth_failed:
        return case
    return case._replace(memory=memory, seen=seen._replace(reading=believed, auth_failed=auth))


def _of_this_run(memory: AgentMemory, run: str) -> AgentMemory:
    """Without the words of another run: that had another screen."""
    if memory.seen_run == run or not (memory.words or memory.dealt):
        return memory
    return memory._replace(words=None, dealt=())


def _refusal(seen: AgentSeen, memory: AgentMemory, believed: Reading) -> str:
    """The refusal of credentials that a source reports, unless a `reset` came after it."""
    fixed = UNNAMED < seen.heard_at <= memory.pardoned_at
    return "" if fixed and believed.state is not ScreenState.AUTH else seen.auth_failed


def dealt_with(memory: AgentMemory) -> AgentMemory:
    """The same, after what its screen says has had its consequence."""
    words = memory.words
    if words is None or _is_dealt(memory, words):
        return memory
    others = tuple(old for old in memory.dealt if not _is_there(old, words))
    return memory._replace(dealt=(*others, words)[-KEPT:])


def bare(line: str) -> str:
    """A line without the glyph that a screen puts before it."""
    return re.sub(r"^\W+", "", line)


def same_words(one: str, other: str) -> bool:
    """The same line, with or without its glyph, and as far as both go."""
    one, other = bare(one), bare(other)
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def answered_below(memory: AgentMemory, reading: Reading) -> bool:
    """Has anything been written below the words since they came?"""
    return memory.words is not None and reading.below > memory.words.floor


def _note(memory: AgentMemory, reading: Reading, case: Case) -> AgentMemory:
    """Remember the newest accusation: where it stands, and what it meant when it came."""
    known = memory.words
    words = Words(
        reading.state, reading.line, reading.above, reading.until, case.now.steady, reading.below,
        reading.below,
    )  # fmt: skip
    if known is not None and known.state == words.state and same_words(known.line, words.line):
        until = words.until if known.until is None else known.until  # however often it is said or redrawn
        words = (_grown(known, words) if _is_there(known, words) else words)._replace(until=until)
    dealt = tuple(_grown(old, words) for old in memory.dealt if not _is_said_anew(memory, old, words))
    if words == known and dealt == memory.dealt:
        return memory
    return memory._replace(words=words, dealt=dealt)


def _is_own(reading: Reading, case: Case) -> bool:
    return reading.spoken and case.seen.answered


def _heard_since(words: Words | None, case: Case, late: float) -> bool:
    """Is the newest report of a turn as young as the words, or at most so much older?"""
    return words is not None and case.now.since_wall(case.seen.heard_at) <= case.now.since(words.since) + late


def _judged(reading: Reading, memory: AgentMemory, case: Case) -> Reading:
    words = memory.words
    assert words is not None
    if _is_own(reading, case):
        return _harmless(reading, OWN, ScreenState.IDLE)
    if _is_dealt(memory, words):
        return _harmless(reading, DEALT, ScreenState.IDLE)
    works = bool(case.seen.working) and not case.seen.asked
    heard = case.now.since_wall(case.seen.heard_at)  # below zero: the clock was set back since
    waited = min(case.now.since(words.since), heard) if heard >= 0 else case.now.since(words.since)
    if reading.spoken and works and waited < PATIENCE_S:
        return _harmless(reading, EARLY, ScreenState.WORKING)
    return reading if reading.until == words.until else reading._replace(until=words.until)


def _harmless(reading: Reading, why: str, state: ScreenState) -> Reading:
    state = ScreenState.ASKING if reading.dialog else state
    return reading._replace(state=state, pattern=why, until=None)


def _forget(memory: AgentMemory, reading: Reading) -> AgentMemory:
    """What does not stand on the screen any more counts if it comes again."""
    if reading.state not in PLAIN or not (memory.words or memory.dealt):
        return memory
    stands = reading.beside
    words = memory.words if memory.words is not None and memory.words.line in stands else None
    dealt = tuple(old for old in memory.dealt if old.line in stands)
    if words is memory.words and len(dealt) == len(memory.dealt):
        return memory
    return memory._replace(words=words, dealt=dealt)


def _is_dealt(memory: AgentMemory, words: Words) -> bool:
    """Had these very words their consequence?"""
    return any(_is_there(old, words) for old in memory.dealt)


def _is_said_anew(memory: AgentMemory, old: Words, new: Words) -> bool:
    """Do the new words stand where the old ones did, and right below a text that we typed since then?

    Then they are an answer to it, and stay one: the next text that we type does not change who said them.
    """
    if not _is_there(old, new):
        return False
    typed = memory.typed[-1] if memory.typed else NEVER
    right_above = bare(new.above.rpartition("\n")[2])
    ours = "".join(memory.said[-1].split()) if memory.said else ""
    return old.since < typed <= new.since and bool(right_above) and ours.endswith(right_above)


def _is_there(old: Words, new: Words) -> bool:
    """The same words in the same place? What stood above them may have scrolled away since.

    Words only rise: those that stand at the bottom again, with nothing below them any more, were said anew.
    """
    same = old.line == new.line and old.state == new.state and old.above.endswith(new.above)
    return same and not new.below <= old.floor < old.below


def _grown(old: Words, new: Words) -> Words:
    """The same words, with what has been written below them since."""
    return old._replace(below=new.below) if _is_there(old, new) and new.below > old.below else old
