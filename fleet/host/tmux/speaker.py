"""The verbs of the Tmux port over any way of asking.

A batch is some lines, each ending with a marker that is printed only when the line succeeded. One more marker
ends the whole, and names the server that answered. An answer without its last marker is partial, and a
partial answer is no answer. How a batch travels is `ask`: by a short-lived process in client.py, by a
long-lived client in control.py.
"""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from fleet.core.seen import Listing, PaneRef, ServerId
from fleet.host.tmux import language, pane_rows
from fleet.host.tmux.dialects import SINCE_VIS
from fleet.ports import Inherited, Unavailable

_LIST = (
    f"list-panes -a -F '{pane_rows.PANE_FORMAT}'",
    f"list-clients -F '{pane_rows.CLIENT_FORMAT}'",
)


class NoServer(Unavailable):
    """Tmux said so itself: no server listens on this socket."""


class Silent(Unavailable):
    """There is a server, and it did not answer in time; what was asked may still happen."""


class Lost(Unavailable):
    """The server ended under our hands; whether it acted is unknown."""


class Said(NamedTuple):
    """The answer to a batch: each line's output (None: the line failed), whose it is, its complaints."""

    texts: tuple[str | None, ...]
    server: ServerId
    complaint: str = ""


class Batch:
    """Some lines, and the nonce that tells their answers apart, whatever a screen may contain."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._nonce = nonce()
        self._count = len(lines)
        marked = [f"{line} ; display-message -p '{self._nonce} {i}'" for i, line in enumerate(lines)]
        last = f"display-message -p '{self._nonce} end {pane_rows.SERVER_FORMAT}'"
        self.program = "\n".join([*marked, last, ""])

    def is_last(self, text: str) -> bool:
        """Is this the whole last marker?"""
        return text.startswith(f"{self._nonce} end ") and text.endswith("\n")

    def read(self, output: str, complaint: str = "") -> Said | None:
        """The answer; None when its last marker is missing."""
        text, *marked = output.split(self._nonce)
        if not marked or not self.is_last(self._nonce + marked[-1]):
            return None
        texts: list[str | None] = [None] * self._count
        for piece in marked[:-1]:
            number, _, following = piece.partition("\n")
            texts[int(number)] = text.removesuffix("\n")
            text = following
        return Said(tuple(texts), pane_rows.server_id(marked[-1].removeprefix(" end ")), complaint)


class Speaker(ABC):
    """The verbs of the Tmux port over any way of asking."""

    def __init__(self, project_id: str) -> None:
        self.project_id = project_id
        self._rows = pane_rows.Rows(project_id)
        self._given: dict[str, dict[str, str]] = {}  # by session, as last asked for

    @abstractmethod
    def ask(self, lines: Sequence[str]) -> Said:
        """Say these lines; NoServer, Lost or Unavailable when there is no whole answer."""

    def look(self, lines: Sequence[str]) -> Said:
        """Ask what may be asked twice."""
        return self.ask(lines)

    @property
    @abstractmethod
    def version(self) -> tuple[int, int]: ...

    def listing(self) -> Listing:
        """Every pane of the server in one answer; server None only when tmux denies there is one."""
        try:
            said = self.look(_LIST)
            panes, clients = said.texts
            if panes is None and self._is_empty():
                return Listing(said.server)
        except NoServer:
            return Listing(None)
        if panes is None or clients is None:
            raise Unavailable(f"tmux did not list its panes: {said.complaint}; trying again")
        return self._rows.read(said.server, panes, clients)

    def capture(self, refs: Sequence[PaneRef], *, back: int = 0) -> dict[str, str]:
        if not refs:
            return {}
        try:
            said = self.look([language.capture(ref.pane, back) for ref in refs])
        except NoServer:
            return {}
        screens = zip(refs, said.texts, strict=True)
        return {
            ref.session: "\n".join(row.rstrip() for row in text.split("\n"))
            for ref, text in screens
            if text is not None and ref.server == said.server
        }

    def screen(self, session: str) -> str:
        """What a session shows now, with its colours, for a person to look at; empty when it is not there."""
        try:
            return self.look([language.screen(session)]).texts[0] or ""
        except NoServer:
            return ""

    def stranger(self, session: str) -> tuple[int, str]:
        """Of a session that is not ours: its process, 0 if dead, and the log that another fleet gave it."""
        try:
            row = self.look([language.stranger(session)]).texts[0] or ""
        except NoServer:
            return 0, ""
        dead, pid, log = (*row.split("\n")[0].split("|", 2), "", "", "")[:3]
        return (int(pid) if dead == "0" and pid.isdecimal() else 0), "".join(shlex.split(log))

    def remove(self, refs: Sequence[PaneRef], *, keeping: bool = False) -> dict[str, str]:
        if not refs:
            return {}
        asked = [ref.session for ref in refs] if keeping else []
        try:
            said = self.ask([*map(language.given, asked), *map(language.kill, refs)])
        except NoServer:
            return dict.fromkeys((ref.session for ref in refs), "server is gone")
        self._note(asked, said.texts[: len(asked)])
        answers = zip(refs, said.texts[len(asked) :], strict=True)
        return {ref.session: language.reason(text, ref, said.complaint) for ref, text in answers}

    def paste(self, ref: PaneRef, text: str) -> str:
        """Control characters are left out: in a pane they would be keystrokes."""
        clean = language.typable(text)
        if not clean:
            return "" if not text else "nothing in the text can be typed"
        flags = "-S" if self.version >= SINCE_VIS else ""
        return self._guarded(ref, language.paste(ref, clean, f"ao-{nonce()}", flags), at=1)

    def press(self, ref: PaneRef, keys: Sequence[str]) -> str:
        return self._guarded(ref, (language.press(ref, keys),)) if keys else ""

    def log_again(self, sessions: Sequence[str]) -> None:
        """Their logs were taken away: begin new ones, which the caller has made."""
        with suppress(NoServer):
            self.ask([language.log_again(session) for session in sessions])

    def inherited(self, sessions: Sequence[str] = ()) -> Inherited:
        """Of the server only names are wanted: one that we did not found holds its founder's secrets.

        A value may hold line breaks, and then more rows than variables come back: to unset a name that
        is none does no harm.
        """
        names: frozenset[str] = frozenset()
        try:
            rows, *texts = self.look(("show-environment -g", *map(language.given, sessions))).texts
            if rows is None:
                raise Unavailable("tmux did not say what its panes inherit; trying again")
            names = frozenset(row.partition("=")[0] for row in rows.split("\n") if "=" in row)
            self._note(sessions, texts)
        except NoServer:
            pass
        return Inherited(names, {s: self._given[s] for s in sessions if s in self._given})

    def _note(self, sessions: Sequence[str], texts: Sequence[str | None]) -> None:
        found = zip(sessions, texts, strict=True)
        self._given.update((session, language.variables(text)) for session, text in found if text)

    def reap(self) -> None:
        """A child of the server's own makes it collect the exit statuses it missed."""
        self.look(("run-shell -b true",))

    def _is_empty(self) -> bool:
        """A server without a session refuses to list panes; this list it answers, with nothing."""
        return self.look(("list-sessions -F '#{session_id}'",)).texts[0] == ""

    def _guarded(self, ref: PaneRef, lines: Sequence[str], at: int = 0) -> str:
        try:
            said = self.ask(lines)
        except NoServer:
            return "server is gone"
        return language.reason(said.texts[at], ref, said.complaint)


def nonce() -> str:
    """A word that no screen contains."""
    return os.urandom(8).hex()
