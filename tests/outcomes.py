"""What tmux answers to a wish for a session, as the tests compare it."""

from __future__ import annotations

from fleet.core.decision import Result
from fleet.core.words import Outcome

DONE, EXISTS = Result(Outcome.DONE), Result(Outcome.EXISTS)
