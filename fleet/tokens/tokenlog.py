"""token-log.jsonl: exactly one record per phase run, whatever is killed in between.

A record carries the id of its run. `write` appends it only if that id is not in the log yet, so writing again
is harmless. A line that a crash left torn is no record: it is closed off before the next one, and readers
pass over it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fleet.backends.ledger import Cells, Counts, add_cells, sum_counts
from fleet.ports import LogDisk
from fleet.text import as_object
from fleet.tokens.files import SHARED

if TYPE_CHECKING:  # prices need the whole model, reading the log does not
    from fleet.tokens.price import PriceBook

NAME = "token-log.jsonl"
VERSION = 1
CAP = 64 << 20  # bytes
Record = dict[str, Any]


class TokenLog:
    """The log of one fleet."""

    def __init__(self, log_dir: str, disk: LogDisk) -> None:
        self.path = f"{log_dir}/{NAME}"
        self._disk = disk

    def records(self) -> list[Record]:
        """Oldest first; none when there is no file yet."""
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
            return self._disk.read(self.path, CAP)
        except FileNotFoundError:
            return b""


def parse_records(raw: bytes) -> list[Record]:
    """Whole records only, each run once: a torn or foreign line is none."""
    found: dict[str, Record] = {}
    for number_, line in enumerate(raw.split(b"\n")):
        data = as_object(line)
        if isinstance(data.get("phase"), str):
            run = data.get("run")
            found.setdefault(run if isinstance(run, str) else f"line {number_}", data)
    return list(found.values())


def figures(cells: Cells | None, prices: PriceBook) -> dict[str, Any] | None:
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
    prices: PriceBook,
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
    columns = _dict(record.get("agents")) | {SHARED: record.get("shared")}
    if not isinstance(columns[SHARED], dict):
        del columns[SHARED]
    return {name: None if column is None else _models(column) for name, column in columns.items()}


def record_days(record: Record) -> dict[str, dict[str, Counts]]:
    """By day in universal time, the counts by model."""
    days = _dict(record.get("days"))
    return {day: {name: Counts.of(c) for name, c in _dict(models).items()} for day, models in days.items()}


def _models(column: Any) -> dict[str, Counts]:
    """A column of ours is by model; other writers of this file may put four counts or one figure there."""
    models = column.get("models") if isinstance(column, dict) else None
    named = models if isinstance(models, dict) else {"": column}
    return {name: Counts.of(counts) for name, counts in named.items()}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
