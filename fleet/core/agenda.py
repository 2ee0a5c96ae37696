"""When to look next. All dates of a tick come together here, on one clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fleet.times.moment import Moment, Steady, later

SHORTEST_S = 0.01
DYING_S = 0.004  # a death that tmux has not noticed: it is asked again after this
UNREAPED_S = 0.5  # a status that tmux has not collected
BLIND_S = 2.0  # tmux does not answer
HURRIED = 50  # so many shortest waits in a row are followed by ...
PAUSE_S = 0.5  # ... a forced one


class Agenda(NamedTuple):
    """Everything that may make the next look due."""

    listed: Steady  # the last look
    interval: float  # seconds after which it is repeated in any case
    agents: Iterable[Steady] = ()  # when each is due
    config_s: float | None = None  # seconds until a suspicious config is read again
    loop: Steady | None = None
    unreaped: bool = False
    blind: bool = False
    dying: bool = False
    hurried: int = 0  # shortest waits in a row so far


def rest(agenda: Agenda, now: Moment) -> tuple[float, int]:
    """Seconds to sleep, and how many shortest waits in a row that makes."""
    dates = [later(agenda.listed, agenda.interval), *agenda.agents]
    if agenda.loop is not None:
        dates.append(agenda.loop)
    waits = [now.ahead(min(dates))]
    if agenda.config_s is not None:
        waits.append(agenda.config_s)
    if agenda.blind:
        waits.append(BLIND_S)
    if agenda.unreaped:
        waits.append(UNREAPED_S)
    wait, shortest = min(waits), SHORTEST_S
    if agenda.dying:
        wait = shortest = DYING_S
    hurried = agenda.hurried + 1 if wait < SHORTEST_S else 0
    return max(wait, shortest if hurried < HURRIED else PAUSE_S), hurried
