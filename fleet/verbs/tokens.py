"""Show tokens, time and cost per phase and agent.

The watchdog writes the figures to <log_dir>/token-log.jsonl when log_tokens = true. --since and
--until choose the phases that ran then, each as a whole; `events --help` lists what WHEN can be.
`-` means unknown: the backend keeps no transcript, or the model has no price.

Example: agents.py tokens --by model --cost
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Sequence
from typing import Any

from fleet import umask
from fleet.core.model import Fleet
from fleet.host.disk import RealDisk
from fleet.ports import Clock
from fleet.store.documents import Store
from fleet.text import escaped, plural
from fleet.tokens.books import PhaseMeter
from fleet.tokens.files import SHARED, conversations, sharing, wanted_of
from fleet.tokens.meter import Meter
from fleet.tokens.page import report
from fleet.tokens.price import PriceBook
from fleet.tokens.report import (
    BY,
    Table,
    TableRow,
    agents_of,
    by_phase,
    kind_table,
    phase_table,
    plot,
    total_row,
    unpriced,
)
from fleet.tokens.tokenlog import Record, TokenLog
from fleet.verbs.arguments import flag, option
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Fail, Io
from fleet.verbs.moments import span

GROUP = "look"


ARGUMENTS = (
    option("--by", "one row per agent, model or day in UTC (default: per phase)", choices=sorted(BY)),
    option("--since WHEN", 'only phases that ran after this time: 2d, "mon 09:00", an ISO time', default=""),
    option("--until WHEN", "only phases that ran before this time", default=""),
    flag("--live", "add the running phase, up to now"),
    flag("--cost", "add the cost in US dollars, by the price table"),
    flag("--csv", "print CSV", group="form"),
    flag("--plot", "print bars per phase and agent", group="form"),
    option("--html FILE", "write one self-contained HTML page with charts", group="form"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the report. No record yet is not an error, but it is said."""
    since, until = span(args.since, args.until, now=io.clock.wall())
    fleet = running_fleet(args, io)
    log = TokenLog(fleet.log_dir, RealDisk())
    try:
        records = log.records()
    except OSError as fault:
        raise Fail(f"{log.path}: {fault.strerror}", hint="agents.py doctor") from None
    if args.live:
        records += _running(fleet, log, io)
    if known := len(records):
        records = [record for record in records if _ran(record, since, until)]
        if not records and not (args.json or args.csv):
            io.note(f"{plural(known, 'phase')} on record, and none of them ran in that time")
            return 0
    prices = PriceBook(fleet.prices) if args.cost or args.html else None
    if args.html:
        return _write_page(args.html, records, prices, io)
    if not records and not (args.json or args.csv):
        _explain_emptiness(fleet, args, io)
        return 0
    rows = BY[args.by](records) if args.by else by_phase(records)
    if args.plot and not args.json:
        return _plot(records, io)
    total = total_row(rows) if len(rows) > 1 else None
    if args.by:
        table = kind_table(rows, args.by, prices, total)
    else:
        table = phase_table(rows, agents_of(records), prices, total)
    if args.json:
        io.json(_document(records, args.by, table, rows, prices))
    elif args.csv:
        io.write(table.csv())
    else:
        for line in table.lines(io.paint):
            io.print(line)
        if SHARED in agents_of(records):
            _explain_shared(fleet, io)
        if prices:
            _print_sources(rows, prices, io)
    return 0


def _ran(record: Record, since: float, until: float | None) -> bool:
    """Did any of it happen in that span?"""
    start, end = (record.get(key) for key in ("start", "end"))
    began_in_time = until is None or (isinstance(start, int | float) and start <= until)
    return began_in_time and (not since or (isinstance(end, int | float) and end >= since))


def _running(fleet: Fleet, log: TokenLog, io: Io) -> list[Record]:
    if not (found := live_record(fleet, log, io.clock)):
        io.note("no phase is being measured" + ("" if fleet.watchdog.log_tokens else ": log_tokens is off"))
    return found


def live_record(fleet: Fleet, log: TokenLog, clock: Clock, meter: Meter | None = None) -> list[Record]:
    """The record the running phase would get now, measured from its saved baseline; empty without one."""
    store = Store(RealDisk(), os.path.join(fleet.log_dir, "state"), clock.wall, repair=False)
    books = PhaseMeter(store, log, PriceBook(fleet.prices, library=False), meter=meter)
    record = books.live(wanted_of(fleet, os.environ, conversations(fleet)), clock.wall())
    return [record] if record else []


def _explain_emptiness(fleet: Fleet, args: argparse.Namespace, io: Io) -> None:
    if not fleet.watchdog.log_tokens:
        io.note("no phase was measured: set log_tokens = true under [watchdog] in agents.toml")
    elif not args.live:
        io.note("no phase has ended yet; --live shows the one that is running")


def _explain_shared(fleet: Fleet, io: Io) -> None:
    groups = [" and ".join(names) for names in sharing(wanted_of(fleet, os.environ, {}))]
    whose = f" by {'; '.join(groups)}" if groups else ""
    io.note(f"{SHARED}: used{whose} in one directory; a dir or log_signature for each would separate them")


def _document(
    records: Sequence[Record],
    by: str | None,
    table: Table,
    rows: Sequence[TableRow],
    prices: PriceBook | None,
) -> dict[str, Any]:
    """The same for a program; unknown figures are null."""
    total = total_row(rows).counts
    document: dict[str, Any] = {"by": by or "phase", "rows": table.objects(), "records": list(records)}
    document["total"] = None if total is None else {**total.as_dict(), "total": total.total}
    if prices:
        document["cost"] = total_row(rows).cost(prices)
        document["unpriced"] = unpriced(rows, prices)
        document["prices"] = sorted(prices.sources)
    return document


def _print_sources(rows: Sequence[TableRow], prices: PriceBook, io: Io) -> None:
    missing = unpriced(rows, prices)
    if missing:
        io.note(
            f'no price is known for {", ".join(missing)}; give one as [price."{missing[0]}"] in agents.toml'
        )
    if prices.sources:
        io.note(f"prices: {', '.join(sorted(prices.sources))}")


def _plot(records: Sequence[Record], io: Io) -> int:
    encoding = getattr(io.out, "encoding", None) or "utf-8"
    room = shutil.get_terminal_size((80, 24)).columns
    for line in plot(by_phase(records), agents_of(records), room, plain="utf" not in encoding.lower()):
        io.print(escaped(line))
    return 0


def _write_page(path: str, records: Sequence[Record], prices: PriceBook | None, io: Io) -> int:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(io.clock.wall()))
    text = report(records, prices, title="Tokens per phase", note=f"Written {when} from token-log.jsonl.")
    try:
        with umask.as_operator(), open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
    except OSError as fault:
        raise Fail(
            f"{path}: {fault.strerror}", hint="give a file in a directory that you may write to"
        ) from None
    io.note(f"wrote {path}")
    return 0
