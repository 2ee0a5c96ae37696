"""The loop of a simulated fleet, by name: who takes part, its phases and their gates."""

from __future__ import annotations

import re

BUILDER, ADVERSARY, CLOSER = "builder", "adversary", "closer"
PHASES = ("p1", "p2", "p3", "p4")
TRIGGER = "CLEANUP"
INBOXES = ("TO-ADVERSARY.md", "TO-BUILDER.md")
GATES = {
    "p1": ("{ run = 'check' }", '{ review = "PASS" }'),
    "p2": ("{ clean = true }", "{ run = 'check' }"),
    "p3": ("{ ratchet = 'measure', metric = 'coverage' }", '{ review = "PASS" }'),
    "p4": (),
}
_PHASE = re.compile(r"[Pp]hase (p\d)")


def status_of(phase: str) -> str:
    """The name of a phase's status file."""
    return f"STATUS-{phase}.md"


def phase_in(kickoff: str) -> str:
    """Which phase the words at an agent's start are about."""
    found = _PHASE.search(kickoff)
    return found[1] if found else ""
