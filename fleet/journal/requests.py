"""Requests: a verb asks the watchdog for something by leaving a file; the answer is a file too.

state/requests/<id>.json holds what is asked, state/receipts/<id>.json how it went. A request that was
answered is gone; receipts are kept for a while, then pruned. Both directories are bounded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.core.faults import Fault
from fleet.core.words import RequestKind
from fleet.world.ports import Disk

PENDING_MAX = 1000
RECEIPTS_MAX = 200
RECEIPT_AGE_S = 86400.0
_CAP = 1 << 20


class RequestsFull(Fault):
    """Too many wait already, or it is too long: the watchdog would not take it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One thing asked for."""

    id: str
    kind: str
    agent: str
    args: Mapping[str, Any] = field(default_factory=dict)
    at: float = 0.0


class Requests:
    """Both ends of the exchange: verbs `submit` and look for a `receipt`, the watchdog takes and answers."""

    def __init__(self, disk: Disk, state_dir: str, now: Callable[[], float]) -> None:
        self._disk = disk
        self.asked = f"{state_dir}/requests"
        self.answered = f"{state_dir}/receipts"
        self._now = now

    def submit(self, kind: RequestKind, agent: str, args: Mapping[str, Any] | None = None) -> str:
        """Ask; returns the id under which the receipt will appear."""
        self._disk.make_dir(self.asked)
        if len(self._ids(self.asked)) >= PENDING_MAX:
            raise RequestsFull(f"{PENDING_MAX} requests wait in {self.asked}: is the watchdog running?")
        now = self._now()
        request_id = f"{int(now * 1000):014d}-{os.urandom(4).hex()}"
        body = {"kind": str(kind), "agent": agent, "args": dict(args or {}), "at": round(now, 3)}
        if len(json.dumps(body)) >= _CAP:
            raise RequestsFull(
                f"a request holds less than {_CAP >> 10} KiB: put it into a file and name that"
            )
        self._write(self.asked, request_id, body)
        return request_id

    def pending(self, known: Container[str] = ()) -> tuple[Request, ...]:
        """Those not answered, and not known already, oldest first. An unreadable one is answered at once."""
        found = []
        for request_id in self._ids(self.asked):
            if request_id in known:
                continue
            try:
                body = json.loads(self._disk.read(f"{self.asked}/{request_id}.json", _CAP))
                found.append(
                    Request(request_id, body["kind"], body["agent"], dict(body["args"]), float(body["at"]))
                )
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                self.answer(request_id, ok=False, text=f"the request could not be read: {error}")
        return tuple(found)

    def answer(self, request_id: str, *, ok: bool, text: str = "", **facts: Any) -> None:
        """Leave the receipt, then take the request away: a crash between answers twice, never not at all."""
        self._disk.make_dir(self.answered)
        self._write(self.answered, request_id, {"ok": ok, "text": text, "at": self._now(), "facts": facts})
        self._disk.remove(f"{self.asked}/{request_id}.json")
        self._prune()

    def withdraw(self, request_id: str) -> None:
        """The asker does not want it any more."""
        self._disk.remove(f"{self.asked}/{request_id}.json")

    def receipt(self, request_id: str) -> dict[str, Any] | None:
        """How it went, or None as long as nobody answered."""
        try:
            body = json.loads(self._disk.read(f"{self.answered}/{request_id}.json", _CAP))
        except (FileNotFoundError, ValueError):
            return None
        return body if isinstance(body, dict) else None

    def _prune(self) -> None:
        ids = self._ids(self.answered)
        limit = (self._now() - RECEIPT_AGE_S) * 1000
        for number, receipt in enumerate(ids):
            stamp = receipt.partition("-")[0]
            old = stamp.isdigit() and int(stamp) < limit
            if old or number < len(ids) - RECEIPTS_MAX:
                self._disk.remove(f"{self.answered}/{receipt}.json")

    def _ids(self, folder: str) -> list[str]:
        names = self._disk.names(folder)
        return [n.removesuffix(".json") for n in names if n.endswith(".json") and not n.startswith(".")]

    def _write(self, folder: str, request_id: str, body: dict[str, Any]) -> None:
        self._disk.write(f"{folder}/{request_id}.json", json.dumps(body).encode() + b"\n")
