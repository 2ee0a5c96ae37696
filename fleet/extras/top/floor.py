"""What the view needs of a fleet: facts to show, and the verbs to act with. The verb brings the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Record = Mapping[str, Any]
Used = Mapping[str, tuple[int, float | None]]  # by agent: tokens and US dollars


class Floor(Protocol):
    """All of it may be slow, and is called from a thread; `attach` has the terminal for itself."""

    def facts(self) -> Mapping[str, Any]:
        """The document that `status --json` prints."""

    def phases(self) -> Sequence[str]:
        """The ids of the loop's phases."""

    def events(self) -> Sequence[Record]:
        """Events since the last call; at first the newest ones there are."""

    def screen(self, session: str) -> str:
        """What the session's terminal shows now, colours included; empty when it is not there."""

    def used(self) -> Used:
        """Tokens and money so far."""

    def run(self, *words: str, text: str = "") -> tuple[int, str]:
        """Run a verb; its exit code and what it said."""

    def attach(self, name: str) -> int:
        """Hand the terminal over until the person detaches."""
