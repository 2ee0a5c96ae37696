"""What a tmux may answer: its versions, the fields it may leave empty, its sentences. Only this file knows.

A version is proved when `tests/contract` passes with it: that is what gets it into `PROVED`. Any other one is
used as well, and `doctor` names it as what it is.
"""

from __future__ import annotations

import re
from enum import StrEnum

from fleet.ports import Unavailable

OLDEST = (3, 2)  # argv panes, -e, brace blocks, -N
SINCE_VIS = (3, 7)  # from here a paste is escaped unless -S says not to
PROVED = ("3.3a", "3.5a", "3.7c", "3.8")

# From 3.8 on the pid of a pane whose process is gone is empty. `create` stamps it, so that the dead are known
# by the number they had alive; a pane that was made before pids were stamped is known by none.
PANE_PID, STAMPED_PID = "#{pane_pid}", "#{@ao_pid}"
EITHER_PID = f"#{{?pane_pid,{PANE_PID},{STAMPED_PID}}}"


class Confidence(StrEnum):
    """How far a version of tmux can be trusted."""

    PROVED = "proved"
    BETWEEN = "not among the proved versions"
    NEWER = "newer than any proved version"
    TOO_OLD = "too old"


class Complaint(StrEnum):
    """What tmux complained of."""

    NO_SERVER = "no server"
    LOST = "server ended"
    TAKEN = "name is taken"
    EXITED = "pane is dead"
    NO_PANE = "pane is gone"
    OTHER = "refused"


# The first that is found, anywhere in what tmux wrote to us.
_SENTENCES = (
    (Complaint.NO_SERVER, r"no server running on "),
    (Complaint.NO_SERVER, r"error connecting to .*\((?:No such file|Connection refused)"),
    (Complaint.LOST, r"server exited|lost server"),
    (Complaint.TAKEN, r"duplicate session: "),
    (Complaint.EXITED, r"target pane has exited"),  # dead, while pane_dead still says 0
    (Complaint.NO_PANE, r"can't find pane: "),
)


def complaint_of(text: str) -> Complaint:
    """The kind of a complaint; one in other words than ours is OTHER."""
    return next((kind for kind, words in _SENTENCES if re.search(words, text)), Complaint.OTHER)


def is_taken(session: str, text: str) -> bool:
    """Whether one of these lines says that the session is there already."""
    return any(
        complaint_of(line) is Complaint.TAKEN and line.endswith(f": {session}") for line in text.split("\n")
    )


def number(text: str, row: str) -> int:
    """A number that must be there: without it the whole answer means nothing."""
    if not text.isascii() or not text.isdigit():
        raise Unavailable(f"tmux answered {text[:40]!r} for a number, in {row[:120]!r}; trying again")
    return int(text)


def number_or_none(text: str, row: str) -> int | None:
    """A number that tmux may leave out."""
    return number(text, row) if text else None


def parse_version(text: str) -> tuple[int, int]:
    """`tmux 3.3a`, `tmux next-3.6`; a development build without a number counts as the newest."""
    found = re.search(r"(\d+)\.(\d+)", text)
    version = (int(found[1]), int(found[2])) if found else (99, 0)
    if version < OLDEST:
        raise Unavailable(f"{text.strip()} is too old: install tmux 3.2 or newer")
    return version


def standing(text: str) -> Confidence:
    """What `tmux -V` answered, held against the proved versions."""
    try:
        version = parse_version(text)
    except Unavailable:
        return Confidence.TOO_OLD
    if text.strip().removeprefix("tmux ") in PROVED:
        return Confidence.PROVED
    return Confidence.NEWER if version > max(map(parse_version, PROVED)) else Confidence.BETWEEN
