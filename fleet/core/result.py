"""How it went: what became of an action, and what went wrong in a way that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.core.words import Outcome

if TYPE_CHECKING:
    from fleet.core.memory import Run


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an action: the word that counts, and the reason for people."""

    outcome: Outcome
    why: str = ""
    run: Run | None = None  # that a start began

    @property
    def ok(self) -> bool:
        """It was done."""
        return self.outcome is Outcome.DONE


# --------------------------------------------------------------------------------------------------
# What went wrong in a way that a person can act on. `fleet/verbs/main.py` prints it as it is.


class Fault(Exception):
    """Its text says what failed and what to do. Any other exception is a fault of this program."""

    code = 1  # the exit code of a verb that ends with it
    hint = ""

    def lines(self) -> list[str]:
        """All that is to be said, one line for each thing that is wrong."""
        return [str(self)]
