"""What a start is given: its words, its conversation, its environment.

A loop agent's kickoff is the project's template, with its slots filled, followed by its role's text as
it stands. Slots are found literally and in one pass: prompts are full of braces, a plan may be called
`{role}.md`, and neither is taken for a slot. A kickoff holds no text of agent-fleet's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from fleet.core.decision import Note
from fleet.core.effects import LearnId
from fleet.core.memory import AgentMemory, Run
from fleet.core.model import Backend, Member, Phase
from fleet.core.words import EventType, Origin

SLOTS = ("phase_id", "plan", "status", "role")
_SLOT = re.compile("|".join(re.escape("{" + name + "}") for name in SLOTS))


def assemble(template: str, role_text: str, slots: Mapping[str, str]) -> str:
    """Template with its slots filled, a blank line, the role's text. Unknown braces stay as they are."""
    filled = _SLOT.sub(lambda found: slots.get(found[0][1:-1], found[0]), template)
    parts = [part.strip("\n") for part in (filled, role_text) if part.strip()]
    return "\n\n".join(parts) + "\n" if parts else ""


def slots_for(phase: Phase, role: str) -> dict[str, str]:
    """What the slots mean in one phase for one role; paths as the config wrote them."""
    return {"phase_id": phase.id, "plan": phase.plan, "status": phase.status, "role": role}


def continue_line(phase: str = "") -> str:
    """The one line that goes with a resumed conversation, which already holds its kickoff."""
    where = f" Phase {phase} is still the current one." if phase else ""
    return (
        "Your session was restarted and resumed."
        f"{where} Look at the files and the git log again, they may have moved on; then carry on."
    )


# --------------------------------------------------------------------------------------------------
# Does a start go on in the conversation on record, and with which words does it begin?
# A heal, a restart and a new phase go on where the CLI can: the work of hours is in there. A task that is
# called for again and another backend begin anew.


class Talk(StrEnum):
    """What becomes of the conversation at a start."""

    CONTINUED = "continued"
    NEW = "new"


UNSAID = "unsaid"  # the digest of a kickoff that was not delivered


def goes_on(agent: Member, backend: Backend, last: Run | None, *, planned: bool) -> bool:
    """May this start go on where the last run was? `planned`: it was called for, no end is answered."""
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
    known = memory._replace(run=run._replace(conversation=conversation))
    note = Note(EventType.AGENT_RESUME_ID_LEARNED, conversation)
    return known, (note,), (LearnId(agent, conversation, run.session, run.id),)


# --------------------------------------------------------------------------------------------------
# Whose environment a run starts with.
# A start by a person has that person's. A heal has what the last start by a person had: tmux keeps it with
# the session, in memory and nowhere else, and it is handed on from the run that is replaced. Once the
# session is lost (its server died, or a person closed it) there is only the watchdog's own.


STAMP = "AO_RUN_ID"  # among the variables of a session: the run that they were given to


def origin(last: Run | None, kept: str, *, by_person: bool) -> Origin:
    """`last`: the newest run on record. `kept`: the run whose variables are still known, "" for none."""
    if by_person:
        return Origin.CALLER
    if last is None or not kept:
        return Origin.WATCHDOG
    if kept == last.id:
        return Origin.WATCHDOG if last.origin is Origin.WATCHDOG else Origin.HANDED_ON
    # starts that came to nothing change nothing; one by a person does, and its variables are lost
    return Origin.WATCHDOG if last.origin in {None, Origin.CALLER} else Origin.HANDED_ON


def source(
    whose: Origin, own: Mapping[str, str], kept: Mapping[str, str], *, as_declared: bool
) -> Mapping[str, str]:
    """What a run may take its variables from: `own` of the process that starts it, `kept` of the run before.

    A run that was declared otherwise (under another backend, say) had other names to pass on: what it lacks
    is taken from `own`. One that was declared as now lacks what the person did not have.
    """
    if whose is not Origin.HANDED_ON:
        return own
    return kept if as_declared else {**own, **kept}


ORIGINS: dict[Origin | None, str] = {
    None: "not on record",
    Origin.CALLER: "of the verb that started it",
    Origin.HANDED_ON: "of the last start by a person, handed on from the run before",
    Origin.WATCHDOG: "the watchdog's own: nothing of a start by a person is left to hand on",
}
