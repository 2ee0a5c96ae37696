"""The tokens in any heap of transcripts, wherever they lie (`agentlog.py usage`).

Files are dealt out by size to forked children. A child sends back what it counted; the parent adds it up
under the same rule as if it had read the files itself, so a message that is repeated across files counts
once. Where a child fails, the parent reads its share.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from fleet.backends.ledger import Counts, Transcript, sum_counts
from fleet.backends.readers import DocumentFormat, StoreFormat, formats, readers
from fleet.reading import ident_of
from fleet.text import as_object
from fleet.tokens.files import sniff
from fleet.tokens.meter import Meter
from fleet.tokens.report import TOTAL, TableRow, kind_table, unpriced
from fleet.tokens.tokenlog import sum_costs

if TYPE_CHECKING:
    from fleet.tokens.price import PriceBook

_WORTH_MSGSPEC = 32 << 20  # bytes; below that importing it costs more than it saves
_WORTH_A_PROCESS = 64 << 20  # bytes; below that a second process costs more than it brings

Job = tuple[str, str]  # path and kind


def own_places(env: Mapping[str, str]) -> list[str]:
    """Where the CLIs keep their transcripts on this machine."""
    places = (p for reader in readers().values() for home in reader.homes(env) for p in reader.places(home))
    return [place for place in places if os.path.exists(place)]


def jobs_for(paths: Iterable[str]) -> tuple[list[Job], list[str]]:
    """Files with their format, each file once, and those of an unknown format."""
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


def files_below(paths: Iterable[str]) -> Iterator[str]:
    """Every transcript file among some files and directories, each once, in a stable order."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for root, folders, names in os.walk(path):
            folders.sort()
            yield from (
                os.path.join(root, name)
                for name in sorted(names)
                if name.endswith((".jsonl", ".json", ".db"))
            )


def _is_readable(path: str, kind: str) -> bool:
    """A database may have the right first bytes and be none."""
    one = formats()[kind]
    return not isinstance(one, StoreFormat) or one.is_readable(path)


@dataclass(frozen=True, slots=True)
class Totals:
    """What some files hold: counts by model, by day and by kind of CLI."""

    models: dict[str, Counts]
    days: dict[str, Counts]
    clis: dict[str, Counts]
    files: int
    messages: int
    bytes: int

    @property
    def total(self) -> Counts:
        return sum_counts(self.models.values())

    @property
    def rows(self) -> list[TableRow]:
        """One per model."""
        return [TableRow(name, {name: counts}) for name, counts in self.models.items()]

    def document(self, prices: PriceBook | None) -> dict[str, Any]:
        """For a program."""
        heaps = {"by_model": self.models, "by_day": self.days, "by_cli": self.clis}
        document: dict[str, Any] = {
            "total": self.total.as_dict(),
            **{key: {name: c.as_dict() for name, c in heap.items()} for key, heap in heaps.items()},
            "files": self.files,
            "messages": self.messages,
            "bytes": self.bytes,
        }
        if prices:
            costs = {name: prices.cost(name, counts) for name, counts in self.models.items()}
            document["cost"] = {"total": sum_costs(costs.values()), "by_model": costs}
            document["prices"] = sorted(prices.sources)
        return document

    def lines(self, prices: PriceBook | None) -> Iterator[str]:
        """For people: one line per model, and the total."""
        total = TableRow(TOTAL, self.models) if len(self.models) != 1 else None
        yield from kind_table(self.rows, "model", prices, total).lines()
        yield f"{_many(self.messages, 'message')} in {_many(self.files, 'file')}"

    def remarks(self, prices: PriceBook) -> Iterator[str]:
        """What to know about the cost."""
        if missing := unpriced(self.rows, prices):
            yield f"no price is known for {', '.join(missing)}"
        if prices.sources:
            yield f"prices: {', '.join(sorted(prices.sources))}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def totals_of(jobs: Sequence[Job], processes: int = 0) -> Totals:
    """Read them all, in so many processes; 0: in as many as help."""
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
    models, days, kinds = (dict(sorted(heap.items())) for heap in (models, days, kinds))
    return Totals(models, days, kinds, len(jobs), ledger.messages(), size)


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


def read_all(jobs: Sequence[Job], processes: int, *, fast: bool = True) -> Meter:
    """A meter that has read every file."""
    meter = Meter(fast=fast)
    shares = _deal(jobs, max(1, processes))
    children = [(share, *_start(share, fast=fast)) for share in shares[1:] if share]
    _read(meter, shares[0])
    for share, child, pipe in children:
        if not _take(meter, child, pipe):
            _read(meter, share)
    return meter


def _deal(jobs: Sequence[Job], processes: int) -> list[list[Job]]:
    """The files of each process: largest first, each to the one with the fewest bytes."""
    shares: list[list[Job]] = [[] for _ in range(processes)]
    weights = [0] * processes
    for size, job in sorted(((size_of(job[0]), job) for job in jobs), reverse=True):
        lightest = weights.index(min(weights))
        shares[lightest].append(job)
        weights[lightest] += size + 1
    return shares


def size_of(path: str) -> int:
    """The bytes of a file; 0 for one that is gone."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _read(meter: Meter, jobs: Sequence[Job]) -> None:
    for path, kind in sorted(jobs):
        meter.read_file(path, kind)


def _start(jobs: Sequence[Job], *, fast: bool) -> tuple[int, int]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    status = 1
    try:
        os.close(ours)
        meter = Meter(fast=fast)
        _read(meter, jobs)
        sources = [(s.path, s.kind, s.session, s.cwd) for s in meter.ledger.sources]
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(marshal.dumps((sources, meter.ledger.dump())))
        status = 0
    finally:
        os._exit(status)  # the child must not run what the parent meant to run at its own end


def _take(meter: Meter, child: int, pipe: int) -> bool:
    """Add up what a child counted; False when it did not come through."""
    with os.fdopen(pipe, "rb") as stream:
        raw = stream.read()
    _, status = os.waitpid(child, 0)
    if status:
        return False
    sources, rows = marshal.loads(raw)  # noqa: S302 - written by our own fork a moment ago
    numbers = [meter.ledger.source(Transcript(*source)) for source in sources]
    for source, *rest in rows:
        meter.ledger.add(numbers[source], *rest)
    return True
