"""The board: what the supervisor last decided about each member, as the one document that readers get.

The watchdog writes it to view.json when a state changes, and at most once a second otherwise. A verb that
finds none makes the same by a look of its own. Nothing is ever decided from it.

    version, tick, at, degraded, config    of the watchdog: what it is, when it looked, what it cannot do
    declared                               the outline of the file, and the stamp of the file that it is of
    agents, services                       a row each: what is so, and the trace of why
    loop, problems                         where the phases stand; what a person should know
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fleet import __version__
from fleet.core.agent.decide import AgentDecision
from fleet.core.case import Case
from fleet.core.codec import all_fields, to_plain
from fleet.core.loop.loop_case import NO_LOOP, LoopShown
from fleet.core.memory import AgentMemory
from fleet.core.model import Fleet, Member
from fleet.core.trace import trace
from fleet.core.views import Row, problem, row
from fleet.ports import FileStat
from fleet.store.house import House
from fleet.supervisor.perform import drift_between, fingerprint
from fleet.supervisor.world import World
from fleet.times.moment import LONG_AGO, Steady

EVERY_S = 1.0  # reasons that only count seconds are not worth more
ALIVE_S = 60.0  # an unchanged board is written again this often
BUNDLES = 100

_json = json.JSONEncoder(ensure_ascii=False).encode


class Line(NamedTuple):
    """A member as it is written: most stay as they are from one writing to the next."""

    row: Row
    judged: tuple[Case, AgentDecision, AgentMemory] | None
    text: str
    problem: str | None


class Board:
    """Rows by name, and the documents made of them."""

    def __init__(self, world: World, house: House) -> None:
        self._world = world
        self._house = house
        self._written = LONG_AGO
        self._moved = self._changed = False
        self._words: tuple[object, ...] = ()
        self._prints: tuple[Fleet | None, dict[str, str]] = (None, {})
        self._lines: dict[str, Line] = {}
        self._judged: dict[str, tuple[Case, AgentDecision, AgentMemory]] = {}
        self._outline: tuple[Fleet | None, str] = (None, "")
        self.rows: dict[str, Row] = {}

    def post(self, fleet: Fleet, case: Case, memory: AgentMemory, decision: AgentDecision) -> None:
        """Put up one row. `memory`: after what was decided has been done."""
        spec, seen = case.agent, case.seen
        drift = self._drift(fleet, spec, memory) + _other_model(seen.model, memory)
        new = row(spec, seen, memory, decision.shown, drift)
        self._judged[spec.name] = case, decision, memory
        old = self.rows.get(spec.name)
        if old == new:
            return
        if old is None or _state(old) != _state(new):
            self._moved = True
        self._changed = True
        self.rows[spec.name] = new

    def keep_only(self, names: Iterable[str]) -> None:
        """Take down the rows of members that are not in the file any more."""
        gone = self.rows.keys() - set(names)
        for name in gone:
            del self.rows[name]
            self._judged.pop(name, None)
        self._moved = self._moved or bool(gone)

    def due(self, steady: Steady, words: tuple[object, ...]) -> bool:
        """Is it worth writing? `words` stands for everything on the board that is not a row."""
        age = steady - self._written
        if not (self._moved or words != self._words or (self._changed and age >= EVERY_S) or age >= ALIVE_S):
            return False
        self._moved = self._changed = False
        self._words, self._written = words, steady
        return True

    def write(self, document: bytes) -> None:
        """Leave it for readers in other processes."""
        self._world.disk.write(self._house.path("view.json"), document, sync=False)

    def document(
        self,
        fleet: Fleet,
        stamp: FileStat | None,
        loop: LoopShown | None,
        troubles: Iterable[str],
        facts: Mapping[str, object],
    ) -> bytes:
        """The whole board as JSON. `stamp`: of the fleet's file, if it holds this declaration."""
        lines = self._lines = {name: self._line(name, shown) for name, shown in self.rows.items()}
        agents, services = (
            ", ".join(lines[spec.name].text for spec in specs if spec.name in lines)
            for specs in (fleet.agents, fleet.services)
        )
        problems = [*troubles, *(line.problem for line in lines.values() if line.problem)]
        problems += loop.problems if loop else ()
        rest = {"loop": _loop(fleet, loop), "problems": problems, **facts}
        body = (
            f'{{"version": {_json(__version__)}, {self._declared(fleet, stamp)}'
            f'"agents": [{agents}], "services": [{services}],'
            f" {_json(rest).removeprefix('{')}"
        )
        return body.encode("utf-8", "replace")

    def _declared(self, fleet: Fleet, stamp: FileStat | None) -> str:
        """The outline of the file, so that it need not be read again while its stamp is the same.

        Without a stamp when reading it leads to remarks: those are about other files, which come and go.
        """
        if self._outline[0] is not fleet:
            self._outline = (fleet, _json(to_plain(fleet.outline)))
        mark = None if stamp is None or fleet.warnings else [stamp.size, stamp.mtime_ns, stamp.inode]
        return f'"declared": {{"stamp": {_json(mark)}, "outline": {self._outline[1]}}}, '

    def _line(self, name: str, shown: Row) -> Line:
        known, judged = self._lines.get(name), self._judged.get(name)
        if known is not None and known.row is shown and known.judged is judged:
            return known
        plain = all_fields(shown)
        traced = {"trace": trace(*judged)} if judged else {}
        return Line(shown, judged, _json(plain | traced), problem(plain))

    def bundle(self, tick: int, spec: Member, case: Case, decision: AgentDecision) -> None:
        """The case behind an action, so that any surprise can be decided again at leisure."""
        body = {
            "case": to_plain(case),
            "kind": "service" if spec.is_service else "agent",
            "rule": decision.shown.rule,
            "reason": decision.shown.reason,
            "action": " ".join(type(effect).__name__ for effect in decision.effects),
        }
        self._world.disk.make_dir(self._house.path("bundles"))
        path = self._house.path(f"bundles/{tick % BUNDLES:03d}-{spec.name}.json")
        self._world.disk.write(path, json.dumps(body).encode(), sync=False)

    def _drift(self, fleet: Fleet, spec: Member, memory: AgentMemory) -> tuple[str, ...]:
        """What it still runs that the file no longer says."""
        run = memory.run
        if run is None or not run.print:
            return ()
        here = self._print(fleet, spec)
        return () if run.print == here else drift_between(run.print, here)

    def _print(self, fleet: Fleet, spec: Member) -> str:
        if self._prints[0] is not fleet:
            self._prints = (fleet, {})
        known = self._prints[1]
        if spec.name not in known:
            known[spec.name] = fingerprint(fleet, spec)
        return known[spec.name]


def _other_model(answers: str, memory: AgentMemory) -> tuple[str, ...]:
    """The model that really answers, if it is certainly not the one that was asked for."""
    asked = memory.run.model.partition("[")[0] if memory.run is not None else ""
    if not (answers and asked) or asked in answers or answers in asked or not any(c.isdigit() for c in asked):
        return ()  # an alias such as "opus" names no model in particular
    return (f"{answers} answers",)


def _state(shown: Row) -> tuple[object, ...]:
    return (shown.state, shown.detail, shown.until, shown.pid, shown.drift)


def _loop(fleet: Fleet, loop: LoopShown | None) -> dict[str, Any] | None:
    if fleet.loop is None:
        return None
    loop = loop or NO_LOOP
    ids = [p.id for p in fleet.loop.phases]
    index = ids.index(loop.phase) if loop.phase in ids else None
    if loop.complete:
        index = len(ids)
    return {
        "index": index,
        "id": loop.phase,
        "total": len(ids),
        "complete": loop.complete,
        "held": loop.held or loop.stays,
        "state": loop.state,
    }
