"""Does a start go on in the conversation on record, and with which words does it begin?

A heal, a restart and a new phase go on where the CLI can: the work of hours is in there. A task that is
called for again and another backend begin anew.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from fleet.core.actions import LearnId
from fleet.core.decision import Note
from fleet.core.kickoff import continue_line
from fleet.core.memory import AgentMemory, Run
from fleet.core.model import Backend, Member
from fleet.core.words import EventType


class Talk(StrEnum):
    """What becomes of the conversation at a start."""

    CONTINUED = "continued"
    NEW = "new"


UNSAID = "unsaid"  # the digest of a kickoff that reached no one


def goes_on(agent: Member, backend: Backend, last: Run | None, *, planned: bool) -> bool:
    """May this start go on where the last run was? `planned`: nobody died, it was called for."""
    if not (agent.resume and backend.supports_resume):
        return False
    if agent.is_task and planned:
        return False
    return last is None or last.backend in {"", backend.name}


def first_words(prompt: str, brief: str, last: Run | None, *, phase: str, resumed: bool) -> str:
    """The kickoff; in a conversation that holds it already, one line. A new or edited one is said in full."""
    told, said = (last.told, last.brief) if last is not None else ("", "")
    return continue_line(phase) if resumed and told == phase and said in {"", brief} else prompt


def learn_id(
    memory: AgentMemory, agent: str, conversation: str
) -> tuple[AgentMemory, tuple[Note, ...], tuple[LearnId, ...]]:
    """Memory with the id that the CLI itself told, if it told one: a restart resumes there."""
    run = memory.run
    if not conversation or run is None or run.conversation == conversation:
        return memory, (), ()
    known = replace(memory, run=replace(run, conversation=conversation))
    note = Note(EventType.AGENT_RESUME_ID_LEARNED, conversation)
    return known, (note,), (LearnId(agent, conversation, run.session, run.id),)
