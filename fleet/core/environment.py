"""Whose environment a run starts with.

A start by a person has that person's. A heal has what the last start by a person had: tmux keeps it with
the session, in memory and nowhere else, and it is handed on from the run that is replaced. Once the session
is lost (its server died, or a person closed it) there is only the watchdog's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fleet.core.memory import Run

STAMP = "AO_RUN_ID"  # among the variables of a session: the run that they were given to


class Origin(StrEnum):
    """Where the environment of a run is from."""

    CALLER = "caller"
    HANDED_ON = "handed on"
    WATCHDOG = "watchdog"


def origin(last: Run | None, kept: str, *, by_person: bool) -> Origin:
    """`last`: the newest run on record. `kept`: the run whose variables are still known, "" for none."""
    if by_person:
        return Origin.CALLER
    if last is None or not kept:
        return Origin.WATCHDOG
    if kept == last.id:
        return Origin.WATCHDOG if last.origin == Origin.WATCHDOG else Origin.HANDED_ON
    # starts that came to nothing change nothing; one by a person does, and its variables are lost
    return Origin.WATCHDOG if last.origin in {"", Origin.CALLER} else Origin.HANDED_ON


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


ORIGINS = {
    "": "not on record",
    Origin.CALLER: "of the verb that started it",
    Origin.HANDED_ON: "of the last start by a person, handed on from the run before",
    Origin.WATCHDOG: "the watchdog's own: nothing of a start by a person is left to hand on",
}
