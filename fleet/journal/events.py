"""events.jsonl: everything that was decided or done, and why. One JSON object a line, only ever appended to.

A record that was cut short by a crash costs that record alone: whoever writes next, and finds the file not
as it was left, begins a new line first. When the disk refuses, ordinary records wait in memory and are
written with the next one that succeeds; a record asked for with `sync` fails loudly, because its caller
must not go on without it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleet.core.text import redact
from fleet.world.ports import Disk

VERSION = 1
CAP = 10 << 20
KEEP = 5
WAITING_MAX = 1000
RECENT = 200
_READ_CAP = CAP + (2 << 20)  # a file is rotated after the record that filled it

Record = dict[str, Any]


class EventType(StrEnum):
    """Everything that can have happened. Past tense: an event is a fact."""

    AGENT_STARTED = "agent.started"
    AGENT_READY = "agent.ready"
    AGENT_STOPPED = "agent.stopped"
    AGENT_SURVIVED_STOP = "agent.survived_stop"
    AGENT_EXITED = "agent.exited"
    AGENT_DIED = "agent.died"
    AGENT_HEALED = "agent.healed"
    AGENT_START_FAILED = "agent.start_failed"
    AGENT_FLAPPED = "agent.flapped"
    AGENT_FAILED_FOR_GOOD = "agent.failed_for_good"
    AGENT_RECOVERED = "agent.recovered"
    AGENT_RESET = "agent.reset"
    AGENT_STATE_CHANGED = "agent.state_changed"
    AGENT_LIMITED = "agent.limited"
    AGENT_LIMIT_WITHOUT_RESET = "agent.limit_without_reset"
    AGENT_PROBED = "agent.probed"
    AGENT_RESUMED = "agent.resumed"
    AGENT_WAITING = "agent.waiting"
    AGENT_MARKER_LAPSED = "agent.marker_lapsed"
    AGENT_MARKER_MALFORMED = "agent.marker_malformed"
    AGENT_STALLED = "agent.stalled"
    AGENT_WEDGED = "agent.wedged"
    AGENT_MISMATCHED = "agent.mismatched"
    AGENT_ASKED = "agent.asked"
    AGENT_UNKNOWN = "agent.unknown"
    AGENT_PAUSED = "agent.paused"
    AGENT_UNPAUSED = "agent.unpaused"
    AGENT_FROZEN = "agent.frozen"
    AGENT_RESUME_ID_LEARNED = "agent.resume_id_learned"
    AGENT_RESUME_ID_SET_ASIDE = "agent.resume_id_set_aside"

    MESSAGE_QUEUED = "message.queued"
    MESSAGE_CONFIRMED = "message.confirmed"
    MESSAGE_FAILED = "message.failed"

    PHASE_ADVANCED = "phase.advanced"
    PHASE_PRE_DONE = "phase.pre_done"
    PHASE_HELD = "phase.held"
    PHASE_SET = "phase.set"
    SEQUENCE_COMPLETED = "sequence.completed"
    SEQUENCE_REOPENED = "sequence.reopened"
    TASK_TRIGGERED = "task.triggered"

    GATE_STARTED = "gate.started"
    GATE_PASSED = "gate.passed"
    GATE_FAILED = "gate.failed"

    HANDOFF_CLAIMED = "handoff.claimed"
    HANDOFF_REVIEWED = "handoff.reviewed"
    HANDOFF_INBOX_CHANGED = "handoff.inbox_changed"
    HANDOFF_REBASELINED = "handoff.rebaselined"
    HANDOFF_FETCH_FAILED = "handoff.fetch_failed"
    HANDOFF_FETCH_RECOVERED = "handoff.fetch_recovered"

    CONFIG_LOADED = "config.loaded"
    CONFIG_REJECTED = "config.rejected"
    CONFIG_RECOVERED = "config.recovered"
    CONFIG_SHRUNK = "config.shrunk"

    WATCHDOG_STARTED = "watchdog.started"
    WATCHDOG_STOPPED = "watchdog.stopped"
    WATCHDOG_DEGRADED = "watchdog.degraded"
    WATCHDOG_RECOVERED = "watchdog.recovered"
    WATCHDOG_RESUMED = "watchdog.resumed"
    WATCHDOG_STEP_FAILED = "watchdog.step_failed"
    WATCHDOG_ENSURED = "watchdog.ensured"

    STATE_RESTORED = "state.restored"
    SERVER_FOUNDED = "server.founded"
    SERVER_LOST = "server.lost"

    INTENT_ABANDONED = "intent.abandoned"
    ACTION_STALE = "action.stale"
    ACTION_FAILED = "action.failed"
    DESIRED_CHANGED = "desired.changed"
    SIGNAL_DISAGREED = "signal.disagreed"
    TOKENS_RECORDED = "tokens.recorded"
    NOTIFY_SENT = "notify.sent"
    NOTIFY_FAILED = "notify.failed"


def _redacted(value: object, secrets: tuple[str, ...]) -> object:
    """The same value, its strings without secrets."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {str(k): _redacted(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(v, secrets) for v in value]
    return value


class Events:
    """The writer. `recent` holds the last records of this process, for whoever needs no file."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        wall: Callable[[], float],
        tick: Callable[[], int] = lambda: 0,
        secrets: Iterable[str] = (),
    ) -> None:
        self.path = path
        self.recent: deque[Record] = deque(maxlen=RECENT)
        self.trouble = ""  # why the disk refuses, while it does
        self._disk = disk
        self._wall = wall
        self._tick = tick
        self._secrets = tuple(secrets)
        self._seq = 0
        self._size = -1  # the file as we left it; -1: never looked
        self._lead = b""  # what must come first, if that was in the middle of a line
        self._waiting: deque[bytes] = deque(maxlen=WAITING_MAX)

    def record(
        self, kind: EventType | str, *, agent: str = "", reason: str = "", sync: bool = False, **facts: Any
    ) -> Record:
        """Write down that it happened. Raises OSError only when asked to `sync`."""
        happened = EventType(kind)
        size, lead = self._look()
        now = round(self._wall(), 3)
        self._seq += 1
        record: Record = {
            "v": VERSION,
            "seq": self._seq,
            "at": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "ts": now,
            "type": happened.value,
            "agent": agent,
            "reason": redact(reason, self._secrets),
            "tick": self._tick(),
            "facts": _redacted(facts, self._secrets),
        }
        self.recent.append(record)
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
        self._waiting.append(line)
        self._flush(size, lead, sync=sync)
        return record

    def _look(self) -> tuple[int, bytes]:
        """How large the file is, and what must come before our line when the last one may be unfinished."""
        try:
            found = self._disk.stat(self.path)
            size = found.size if found else 0
            if size == self._size:
                return size, self._lead
            raw = self._disk.read(self.path, _READ_CAP) if size else b""
        except OSError:
            return self._size, b"\n"
        for line in reversed(raw[-65536:].split(b"\n")):
            last = parse(line)
            if last is not None:
                self._seq = max(self._seq, int(last.get("seq", 0)))
                break
        return size, b"\n" if raw and not raw.endswith(b"\n") else b""

    def _flush(self, size: int, lead: bytes, *, sync: bool) -> None:
        data = lead + b"".join(self._waiting)
        try:
            if self._size < 0 and not size:
                self._disk.make_dir(self.path.rpartition("/")[0])
            if size >= CAP:
                self._rotate()
                size = 0
            self._disk.append(self.path, data, sync=sync)
        except OSError as error:
            self._size, self._lead = self._torn_at(), b"\n"
            self.trouble = (
                f"{self.path}: {error.strerror or error}; {len(self._waiting)} records wait in memory"
            )
            if sync:
                self._waiting.pop()  # its caller is told, and will not do what it announced
                raise
            return
        self._waiting.clear()
        self.trouble = ""
        self._size, self._lead = size + len(data), b""

    def _torn_at(self) -> int:
        """How large a write that failed left the file; -1 when that cannot be seen either."""
        try:
            found = self._disk.stat(self.path)
        except OSError:
            return -1
        return found.size if found and found.size else -1

    def _rotate(self) -> None:
        for number in range(KEEP - 1, 0, -1):
            old = self.path if number == 1 else f"{self.path}.{number - 1}"
            if self._disk.stat(old) is not None:
                self._disk.rename(old, f"{self.path}.{number}")


def parse(line: bytes) -> Record | None:
    """One record, or None for a torn or foreign line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(record, dict) and isinstance(record.get("type"), str) and "ts" in record:
        return record
    return None


def _wanted(record: Record, since: float, agent: str, kind: str) -> bool:
    if agent and record.get("agent") != agent:
        return False
    if kind and not (record["type"] == kind or record["type"].startswith(f"{kind}.")):
        return False
    ts = record["ts"]
    return isinstance(ts, int | float) and ts >= since


def read(disk: Disk, path: str, *, since: float = 0.0, agent: str = "", kind: str = "") -> Iterator[Record]:
    """Records in the order they were written, oldest file first. `kind` may be a whole family: "agent"."""
    for file in [*(f"{path}.{n}" for n in range(KEEP - 1, 0, -1)), path]:
        try:
            raw = disk.read(file, _READ_CAP)
        except FileNotFoundError:
            continue
        for line in raw.split(b"\n"):
            record = parse(line)
            if record is not None and _wanted(record, since, agent, kind):
                yield record


def follow(disk: Disk, path: str, wait: Callable[[], bool]) -> Iterator[Record]:
    """Records written from now on. `wait` is called when there is nothing new; False from it ends this."""
    found = disk.stat(path)
    inode, offset = (found.inode, found.size) if found else (0, 0)
    while wait():
        found = disk.stat(path)
        if found is None or (found.inode == inode and found.size == offset):
            continue
        if found.inode != inode:
            if inode:  # rotated away: what was added before that is in the file's new place
                yield from _rest(disk, f"{path}.1", inode, offset)[0]
            inode, offset = found.inode, 0
        records, offset = _rest(disk, path, inode, min(offset, found.size))
        yield from records


def _rest(disk: Disk, path: str, inode: int, offset: int) -> tuple[list[Record], int]:
    """The records after an offset, and the offset of the first line that is not finished."""
    found = disk.stat(path)
    if found is None or found.inode != inode:
        return [], offset
    raw = disk.read(path, _READ_CAP)[offset:]
    whole = raw.rfind(b"\n") + 1
    lines = map(parse, raw[:whole].split(b"\n"))
    return [record for record in lines if record is not None], offset + whole
