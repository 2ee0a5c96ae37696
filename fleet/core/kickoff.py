"""The words an agent starts with. The same inputs give the same bytes, so provider caches keep hitting.

A loop agent's kickoff is the project's template, with its slots filled, followed by its role's text as
it stands. Slots are found literally and in one pass: prompts are full of braces, a plan may be called
`{role}.md`, and neither may surprise anybody. There is no text of ours in a kickoff.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fleet.core.model import Phase

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
