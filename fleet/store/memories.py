"""Memory on disk: one document per agent, one for the fleet, one plain record per run. Messages have theirs.

Facts that the next look gives anyway (what the screen says, since when it is still) are not worth a
durable write each time they change; they go along with the next one that is.
"""

from __future__ import annotations

import json
from operator import attrgetter

from fleet.core.codec import from_plain, to_plain
from fleet.core.memory import AgentMemory, FleetMemory, Limit, Run
from fleet.core.queue import SAID
from fleet.core.seen import ScreenState
from fleet.ports import FileStat
from fleet.store.house import House
from fleet.times.moment import NEVER, Steady

LAZY_S = 60.0
_MOVING = frozenset({str(ScreenState.WORKING), str(ScreenState.RETRYING)})


class Records:
    """Load at start, save what changed, forget nothing."""

    def __init__(self, house: House, *, durable: bool = True) -> None:
        """A verb's memory need not be durable: what it was asked for is a wish on disk, and is done again."""
        self._durable = durable
        self._house = house
        self._saved: dict[str, tuple[AgentMemory, tuple[object, ...]]] = {}  # and what of it lasts
        self._saved_at: dict[str, Steady] = {}
        self._runs: dict[str, tuple[FileStat, Run | None]] = {}

    def agent(self, name: str, session: str) -> AgentMemory:
        """What is remembered of an agent; a damaged record counts as none and has been set aside."""
        data = self._house.store.load(f"agents/{name}")
        try:
            memory = from_plain(AgentMemory, data) if data else AgentMemory()
        except ValueError as error:
            self._house.store.troubles.append(
                f"state/agents/{name}.json: {error}; starting from what is seen"
            )
            memory = AgentMemory()
        outbox, ended = self._house.outbox.open_of(name), self._house.outbox.ended_of(name)
        typed = sorted((m for m in (*ended, *outbox) if m.at), key=lambda m: m.at)
        # a stop in progress is decided anew from what is seen, never carried out from a record
        memory = memory._replace(
            stopping=None,
            limit=self._limit(session) if memory.limit is None else memory.limit,
            outbox=outbox,
            typed=tuple(m.at for m in typed),
            said=tuple(m.text or m.tail for m in typed)[-SAID:],
        )
        self._saved[name] = (memory, _lasting(memory))
        return memory

    def _limit(self, session: str) -> Limit | None:
        data = self._house.store.read_plain(f"limited-{session}.json")
        try:
            return from_plain(Limit, data) if data else None
        except ValueError:
            return None

    def save(self, name: str, session: str, memory: AgentMemory, steady: Steady) -> None:
        """Durably, if anything changed that the next look would not give anyway."""
        saved, lasted = self._saved.get(name, (None, ()))
        if saved is memory:
            return
        lasting = _lasting(memory)
        if saved is not None and lasted == lasting:
            same = _passing(saved) == _passing(memory)
            if same or steady - self._saved_at.get(name, NEVER) < LAZY_S:
                return
        if (saved.limit if saved else None) != memory.limit:
            self._save_limit(session, memory.limit)
        kept = memory._replace(stopping=None, outbox=(), typed=(), said=())
        self._house.store.save(f"agents/{name}", to_plain(kept), sync=self._durable)
        self._saved[name], self._saved_at[name] = (memory, lasting), steady

    def _save_limit(self, session: str, limit: Limit | None) -> None:
        name = f"limited-{session}.json"
        if limit is None:
            self._house.store.remove_text(name)
        else:
            self._house.store.write_plain(name, to_plain(limit))

    def fleet(self) -> FleetMemory:
        """What concerns all."""
        data = self._house.store.load("fleet")
        try:
            return from_plain(FleetMemory, data) if data else FleetMemory()
        except ValueError as error:
            self._house.store.troubles.append(f"state/fleet.json: {error}; starting from what is seen")
            return FleetMemory()

    def save_fleet(self, memory: FleetMemory) -> None:
        """Durably."""
        self._house.store.save("fleet", to_plain(memory))

    def run(self, session: str) -> Run | None:
        """How the newest run of a session was started; read only when the file is another one."""
        path = self._house.path(f"runs/{session}.json")
        try:
            found = self._house.disk.stat(path)
            if found is None:
                return None
            known = self._runs.get(session)
            if known is None or known[0] != found:
                known = self._runs[session] = (found, self._read_run(path))
            return known[1]
        except OSError:
            return None

    def _read_run(self, path: str) -> Run | None:
        try:
            return from_plain(Run, json.loads(self._house.disk.read(path)))
        except (ValueError, RecursionError):
            return None

    def save_run(self, run: Run) -> None:
        """Atomically, not durably: a loss of power ends the run, and `supersedes` knows an older record."""
        body = json.dumps(to_plain(run)).encode() + b"\n"
        self._house.disk.write(self._house.path(f"runs/{run.session}.json"), body, sync=False)


_IN_OUTBOX = ("outbox", "typed", "said")  # follows from the documents of its messages
_VOLATILE = frozenset(
    {
        "quiet_since", "content", "still_since", "activity", "state", "state_since", "state_looks",
        "shell_since", "detail", "since", "limit_hint", "stopping", *_IN_OUTBOX,
    }
)  # fmt: skip
_lasting = attrgetter(*(name for name in AgentMemory._fields if name not in _VOLATILE))


def _passing(memory: AgentMemory) -> tuple[object, ...]:
    """What is worth a lazy write: not the moving parts of an agent at work."""
    if memory.state in _MOVING:
        return (memory.state, memory.detail)
    return (memory.state, memory.detail, memory.quiet_since, memory.shell_since)
