"""What became of an action. Apart from the actions: the ports answer with it, and `status` loads those."""

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
