"""Restart what died, at once the first time, then more and more slowly.

Two things come before a start: no process of the old run is left, and the fleet as a whole has not
used up its restarts of the last minute and hour.
"""

from __future__ import annotations

import re

from fleet.core.agent.stopping import begin
from fleet.core.case import Case, Verdict, do, hold
from fleet.core.decision import Note
from fleet.core.effects import Start
from fleet.core.memory import AgentMemory
from fleet.core.seen import PaneView, ScreenState
from fleet.core.words import Detail, EventType
from fleet.text import one_line, plural
from fleet.times.moment import NEVER

BAD_ID_TRIES = 2
LAST_LINE = 160  # characters of it that are shown
EXIT_NOT_FOUND = 127
EXIT_NOT_EXECUTABLE = 126


def fatal(case: Case) -> Verdict | None:
    """What a retry cannot fix stays down, as FATAL, until a person acts."""
    memory, pane = case.memory, case.seen.pane
    alive = pane is not None and not pane.dead
    if memory.fatal:
        return hold(f"{memory.fatal}; {memory.fix}", Detail.FATAL)
    if case.seen.auth_failed:
        refused = f"the credentials are refused: {case.seen.auth_failed}"
        return _give_up(case, refused, "log in or set the key, then `reset`")
    reading = case.seen.reading
    error = reading if alive and reading is not None and reading.state is ScreenState.ERROR else None
    if error is not None and error.fix and memory.state_looks > 1:
        return _give_up(case, f"it says: {error.line}", f"{error.fix}, then `reset`")
    if alive or pane is None or memory.ready or memory.pardoned == pane.ref.run:
        return None
    if pane.exit_code in {EXIT_NOT_FOUND, EXIT_NOT_EXECUTABLE}:
        key = "command" if case.agent.is_service else "backend.bin"
        why = f"the program could not be started (exit {pane.exit_code})"
        return _give_up(case, why, f"correct {key} or PATH")
    if pane.exit_code == 0:
        return None
    if case.seen.ending is not None:
        return _give_up(case, f"it said: {case.seen.ending.line[:160]}", case.seen.ending.fix)
    return None


def heal(case: Case) -> Verdict | None:
    """Restart a run that is over."""
    pane, memory, now = case.seen.pane, case.memory, case.now
    if pane is not None and not pane.dead:
        return None
    if (waits := last_run(case, planned=False)) is not None:
        return waits
    memory, notes = _judge_id(case)
    if now.steady < memory.retry_at:
        wait = now.ahead(memory.retry_at)
        detail = Detail.FLAPPING if memory.flapping else Detail.BACKOFF
        counted = f"{plural(len(memory.deaths), 'death')}, {plural(len(memory.exits), 'clean exit')} counted"
        reason = f"next try in {wait:.0f} s ({counted}){_ended(case)}"
        return hold(reason, detail, memory.retry_at, memory, notes)
    planned = memory.planned or not memory.seen_run
    if not case.may_start and not planned:
        return hold("the fleet has used up its restarts for now", Detail.BACKOFF, now.after(5))
    act = Start(case.agent.name, _cause(case), planned=planned, replace=pane.ref if pane else None)
    return do(act, Detail.STARTING, now.after(0.4), memory, notes)


def may_resume(memory: AgentMemory) -> bool:
    """Does the next start go on in the conversation on record, as far as memory speaks against it?"""
    return memory.bad_resumes < BAD_ID_TRIES and not memory.afresh


def last_run(case: Case, *, planned: bool) -> Verdict | None:
    """What must be known and gone of the last run before the next one starts; None: all of it is."""
    pane, memory, now = case.seen.pane, case.memory, case.now
    if pane is not None and memory.over != pane.ref.run:
        return hold("it ended; waiting for its exit status", Detail.EXITED, now.after(0.05))
    if memory.over and case.seen.survivors is None:
        return hold("it ended; counting what is left of it", Detail.EXITED, now.steady)
    if case.seen.survivors:
        return begin(case, "its last run left processes behind", planned=planned)
    return None


def _ended(case: Case) -> str:
    """How it ended; of one that was never ready also its last line, which mostly says why."""
    pane = case.seen.pane
    if pane is None:
        return ""
    said = case.seen.last_words.strip().rpartition("\n")[2] if not case.memory.ready else ""
    return f"; {_how(pane)}" + (f": {one_line(said)[:LAST_LINE]}" if said else "")


def _how(pane: PaneView) -> str:
    return f"it was {pane.ending}" if pane.exit_signal is not None else f"it {pane.ending}"


def _cause(case: Case) -> str:
    pane = case.seen.pane
    if case.seen.server_lost:
        return "its tmux server was lost"
    if case.memory.planned:
        return "it was stopped to be started again"
    if pane is None:
        return "its session is gone" if case.memory.seen_run else "it should run and does not"
    return _how(pane)


def _judge_id(case: Case) -> tuple[AgentMemory, tuple[Note, ...]]:
    """A conversation that cannot be resumed must not be tried for ever."""
    memory, run = case.memory, case.memory.run
    if run is None or not run.resumed or memory.ready or run.id != memory.over or case.seen.server_lost:
        return memory, ()
    if run.id == memory.pardoned:
        return memory, ()
    refused = case.backend.resume_refused_re
    known = bool(refused) and re.search(refused, case.seen.last_words) is not None
    if known or memory.bad_resumes + 1 >= BAD_ID_TRIES:
        why = f"conversation {run.conversation} could not be resumed"
        told = Note(EventType.AGENT_RESUME_ID_SET_ASIDE, why)
        deaths = memory.deaths[:-1] if known else memory.deaths  # a refusal is no failure of the agent
        changed = memory._replace(bad_resumes=BAD_ID_TRIES, retry_at=NEVER, run=run._replace(resumed=False))
        return changed._replace(deaths=deaths), (told,)
    return memory._replace(bad_resumes=memory.bad_resumes + 1, run=run._replace(resumed=False)), ()


def _give_up(case: Case, why: str, fix: str) -> Verdict:
    note = Note(EventType.AGENT_FAILED_FOR_GOOD, f"{why}; {fix}")
    return hold(note.reason, Detail.FATAL, memory=case.memory._replace(fatal=why, fix=fix), notes=(note,))
