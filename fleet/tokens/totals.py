"""The tokens in any heap of transcripts, whoever wrote them and wherever they lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from fleet.backends.ledger import FIELDS, Counts, sum_counts
from fleet.backends.readers import DocumentFormat, StoreFormat, formats, readers
from fleet.reading import ident_of
from fleet.text import as_object
from fleet.tokens.finder import files_below
from fleet.tokens.parallel import Job, read_all, size_of
from fleet.tokens.places import sniff
from fleet.tokens.report import TOTAL, figures
from fleet.tokens.tokenlog import sum_costs

if TYPE_CHECKING:
    from fleet.tokens.price import PriceBook

_WORTH_MSGSPEC = 32 << 20  # bytes; below that importing it costs more than it saves
_WORTH_A_PROCESS = 64 << 20  # bytes; below that a second process costs more than it brings


def own_places(env: Mapping[str, str]) -> list[str]:
    """Where the CLIs keep their transcripts on this machine."""
    places = (p for reader in readers().values() for home in reader.homes(env) for p in reader.places(home))
    return [place for place in places if os.path.exists(place)]


def jobs_for(paths: Iterable[str]) -> tuple[list[Job], list[str]]:
    """Files with their format, each file once, and those whose format nobody knows."""
    jobs, unread, seen = [], [], set()
    paths = list(paths)
    named = set(paths)  # by hand: what is no transcript there is told, whatever it is called
    for path in files_below(paths):
        try:
            stat = os.stat(path)
        except OSError:
            continue  # a link to nowhere
        if (ident := ident_of(stat)) in seen:
            continue
        seen.add(ident)
        kind = sniff(path)
        if kind and _is_readable(path, kind):
            jobs.append((path, kind))
        elif not S_ISREG(stat.st_mode):
            unread += [path] if path in named else []
        elif stat.st_size and (path in named or kind or path.endswith(".jsonl")):
            unread.append(path)
    return jobs, unread


def _is_readable(path: str, kind: str) -> bool:
    """A database may have the right first bytes and be none."""
    one = formats()[kind]
    return not isinstance(one, StoreFormat) or one.is_readable(path)


def summary(jobs: Sequence[Job], processes: int, prices: PriceBook | None) -> dict[str, Any]:
    """Totals, and the same by model, day and kind of CLI."""
    size = sum(size_of(path) for path, _ in jobs)
    if processes <= 0:
        processes = min(_cores(), 1 + size // _WORTH_A_PROCESS, 8)
    known = formats()
    rest = [job for job in jobs if not isinstance(known[job[1]], DocumentFormat)]
    ledger = read_all(rest, processes, fast=size > _WORTH_MSGSPEC).ledger
    for path, kind in jobs:
        one = known[kind]
        if isinstance(one, DocumentFormat):
            one.count(ledger, path, _document(path))
    models: dict[str, Counts] = {}
    days: dict[str, Counts] = {}
    kinds: dict[str, Counts] = {}
    for source, cells in zip(ledger.sources, ledger.by_source(), strict=True):
        for (model, day), counts in cells.items():
            for heap, key in ((models, model), (days, day), (kinds, source.kind)):
                heap[key] = heap.get(key, Counts()).plus(counts)
    document: dict[str, Any] = {
        "total": sum_counts(models.values()).as_dict(),
        "by_model": {name: models[name].as_dict() for name in sorted(models)},
        "by_day": {name: days[name].as_dict() for name in sorted(days)},
        "by_cli": {name: kinds[name].as_dict() for name in sorted(kinds)},
        "files": len(jobs),
        "messages": ledger.messages(),
        "bytes": size,
    }
    if prices:
        costs = {name: prices.cost(name, counts) for name, counts in models.items()}
        document["cost"] = {"total": sum_costs(costs.values()), "by_model": costs}
        document["prices"] = sorted(prices.sources)
    return document


def _cores() -> int:
    """How many processors this process may use; a container often has fewer than its machine."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as handle:
            return as_object(handle.read())
    except OSError:
        return {}


def report(document: dict[str, Any]) -> Iterator[str]:
    """The same for people: a line per model, and the total."""
    costs = document.get("cost")
    header = ["model", *FIELDS, TOTAL, *(["USD"] if costs else [])]
    grid = [
        [name, *_cells(counts), *([costs["by_model"].get(name)] if costs else [])]
        for name, counts in document["by_model"].items()
    ]
    if len(grid) != 1:
        grid.append([TOTAL, *_cells(document["total"]), *([costs["total"]] if costs else [])])
    yield from figures(header, grid)
    yield f"{_many(document['messages'], 'message')} in {_many(document['files'], 'file')}"


def remarks(document: dict[str, Any]) -> Iterator[str]:
    """What a reader should know about the figures."""
    unpriced = [name for name, cost in document.get("cost", {}).get("by_model", {}).items() if cost is None]
    if unpriced:
        yield f"no price is known for {', '.join(unpriced)}"
    if document.get("prices"):
        yield f"prices: {', '.join(document['prices'])}"
    for path in document.get("unread", ()):
        yield f"{path}: is no transcript that can be read"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _cells(counts: dict[str, int]) -> list[int]:
    return [*(counts[field] for field in FIELDS), sum(counts.values())]
