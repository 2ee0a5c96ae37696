"""<log_dir>/clean/<name>.log: every agent's transcript as a plain log that grows.

Where each transcript was left is kept beside the logs and saved after they are, so that a restart goes on
there; a crash in between repeats a few lines and loses none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fleet.backends.entries import Entry
from fleet.backends.readers import Wanted
from fleet.tokens.follow import Follower
from fleet.tokens.render import Manner, Renderer

CAP = 32 << 20  # a log larger than this becomes <name>.log.1, and the one before it goes
_MARKS = "marks.json"
_FLUSH = 1 << 20


class CleanLogs:
    """Appends what is new to each agent's log."""

    def __init__(self, directory: str, view: Manner) -> None:
        self._directory = directory
        self._view = view
        self._renderers: dict[str, Renderer] = {}
        self._pending: dict[str, list[str]] = {}
        self._waiting = 0
        self._follower: Follower | None = None
        self._wanted: Sequence[Wanted] = ()
        self._saved: dict[str, Any] = {}

    def poll(self, wanted: Sequence[Wanted]) -> None:
        """Bring every log up to date."""
        if self._follower is None or wanted != self._wanted:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            marks = self._follower.marks if self._follower else self._load()
            self._follower, self._wanted = Follower(wanted, marks=marks), wanted
        self._follower.poll(self._tell)
        self._flush()
        self._save(self._follower.marks)

    def _tell(self, name: str, entry: Entry) -> None:
        renderer = self._renderers.setdefault(name, Renderer(self._view))
        for line in renderer.lines([entry]):
            self._pending.setdefault(name, []).append(line + "\n")
            self._waiting += len(line)
        if self._waiting > _FLUSH:
            self._flush()

    def _flush(self) -> None:
        for name, lines in self._pending.items():
            path = os.path.join(self._directory, f"{name}.log")
            with suppress(OSError):
                if os.stat(path).st_size > CAP:
                    os.replace(path, f"{path}.1")
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as stream:
                stream.writelines(lines)
        self._pending.clear()
        self._waiting = 0

    def _load(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._directory, _MARKS), encoding="utf-8") as handle:
                data = json.load(handle)
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _save(self, marks: dict[str, Any]) -> None:
        if marks == self._saved:
            return
        path = os.path.join(self._directory, _MARKS)
        handle = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(marks, stream)
        os.replace(f"{path}.tmp", path)
        self._saved = dict(marks)
