"""Reading many transcripts at once: the files are dealt out to forked children by size.

A child sends back what it counted; the parent adds it up under the same rule as if it had read the files
itself, so messages that are repeated across files still count once. A child that fails costs time, not
figures: the parent reads its share.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Sequence

from fleet.backends.ledger import Transcript
from fleet.tokens.meter import Meter

Job = tuple[str, str]  # path and kind


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


def _deal(jobs: Sequence[Job], hands: int) -> list[list[Job]]:
    """Largest first, each to the hand that holds least."""
    shares: list[list[Job]] = [[] for _ in range(hands)]
    weights = [0] * hands
    for size, job in sorted(((size_of(job[0]), job) for job in jobs), reverse=True):
        lightest = weights.index(min(weights))
        shares[lightest].append(job)
        weights[lightest] += size + 1
    return shares


def size_of(path: str) -> int:
    """Of a file, in bytes; one that is gone has none."""
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
        sources = [(s.path, s.kind, s.session, s.cwd, s.records) for s in meter.ledger.sources]
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
