"""token-log.jsonl: one record a phase, exactly one, whatever is killed in between.

A record carries the id of the phase run it belongs to. Whoever writes looks first whether that id is
already there, so writing again is harmless; a line that a crash left torn is not a record and is closed
off before the next one. Readers pass over what they cannot read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fleet.backends.ledger import Cells, Counts, add_cells, number, sum_counts
from fleet.ports import LogDisk
from fleet.text import as_object
from fleet.tokens.places import SHARED

VERSION = 1
Record = dict[str, Any]


class Prices(Protocol):
    """What tokens cost; None where no price is known. `sources` tells where the prices are from."""

    @property
    def sources(self) -> set[str]: ...

    def cost(self, model: str, counts: Counts) -> float | None: ...


class PlainDisk:
    """The real one, for whoever brings none."""

    def read(self, path: str, cap: int = 1 << 20) -> bytes:  # noqa: ARG002 - our own file, written by us
        with open(path, "rb") as handle:
            return handle.read()

    def append(self, path: str, data: bytes, *, sync: bool) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)


class TokenLog:
    """The file and its one promise: a run is written once."""

    CAP = 64 << 20

    def __init__(self, path: str, disk: LogDisk | None = None) -> None:
        self.path = path
        self._disk = disk or PlainDisk()

    def records(self) -> list[Record]:
        return parse_records(self._bytes())

    def write(self, record: Record) -> bool:
        """Append it unless its run is already there; says whether it had to."""
        raw = self._bytes()
        if any(known.get("run") == record["run"] for known in parse_records(raw)):
            return False
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        torn = b"\n" if raw and not raw.endswith(b"\n") else b""
        self._disk.append(self.path, torn + line, sync=True)
        return True

    def _bytes(self) -> bytes:
        try:
            return self._disk.read(self.path, self.CAP)
        except FileNotFoundError:
            return b""


def token_records(path: str) -> list[Record]:
    """The records of a log file, oldest first; none when there is no file yet."""
    return TokenLog(path).records()


def parse_records(raw: bytes) -> list[Record]:
    """Whole records only, each run once: a torn or foreign line is nobody's record."""
    found: dict[str, Record] = {}
    for number_, line in enumerate(raw.split(b"\n")):
        data = as_object(line)
        if isinstance(data.get("phase"), str):
            run = data.get("run")
            found.setdefault(run if isinstance(run, str) else f"line {number_}", data)
    return list(found.values())


def figures(cells: Cells | None, prices: Prices) -> dict[str, Any] | None:
    """One column of a record: four counts, total and cost, and the same for each model."""
    if cells is None:
        return None
    models: dict[str, Counts] = {}
    for (model, _), counts in sorted(cells.items()):
        models[model] = models.get(model, Counts()).plus(counts)
    costs = {model: prices.cost(model, counts) for model, counts in models.items()}
    return {
        **_flat(sum_counts(models.values()), sum_costs(costs.values())),
        "models": {model: _flat(counts, costs[model]) for model, counts in models.items()},
    }


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """A sum is known only when every part of it is."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return round(total, 9)


def _flat(counts: Counts, cost: float | None) -> dict[str, Any]:
    return {**counts.as_dict(), "total": counts.total, "cost": cost}


def make_record(
    *,
    run: str,
    phase: str,
    start: float,
    end: float,
    limited_s: float,
    used: Mapping[str, Cells | None],
    shared: Cells,
    prices: Prices,
) -> Record:
    """What one phase took: time, and tokens per agent, model and day."""
    everything: Cells = {}
    for cells in (*used.values(), shared):
        add_cells(everything, cells or {})
    days: dict[str, dict[str, dict[str, int]]] = {}
    for (model, day), counts in sorted(everything.items()):
        days.setdefault(day, {})[model] = counts.as_dict()
    whole = figures(everything, prices) or {}
    return {
        "v": VERSION,
        "run": run,
        "phase": phase,
        "start": start,
        "end": end,
        "duration_s": round(max(0.0, end - start), 1),
        "limited_s": round(max(0.0, limited_s), 1),
        "agents": {name: figures(cells, prices) for name, cells in used.items()},
        **({"shared": figures(shared, prices)} if shared else {}),
        "models": whole.get("models", {}),
        "days": days,
        "total": whole.get("total", 0),
        "cost": whole.get("cost"),
    }


def record_cells(record: Record) -> dict[str, dict[str, Counts] | None]:
    """Per agent, and for what several share, the counts by model; None where there is no transcript."""
    columns = dict(record.get("agents") or {})
    if isinstance(record.get("shared"), dict):
        columns[SHARED] = record["shared"]
    return {name: _models(column) for name, column in columns.items()}


def _models(column: Any) -> dict[str, Counts] | None:
    if column is None:
        return None
    if not isinstance(column, dict):  # a bare figure, as other writers of this file put it
        return {"": Counts(input=number(column))}
    models = column.get("models")
    if isinstance(models, dict):
        return {model: Counts.of(counts) for model, counts in models.items()}
    return {"": Counts.of(column)}
