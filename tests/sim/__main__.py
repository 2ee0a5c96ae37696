"""Run seeds: python -m tests.sim --seeds 40 --hours 24 [--first 0] [--jobs 2] [--loops] [--shrink]."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import repeat

from tests.sim import golden
from tests.sim.entered import STORIES, entered, entered_by_stories, faults, gaps, shares
from tests.sim.marks import missing
from tests.sim.shrink import shrink
from tests.sim.simulation import run_seed


def main(argv: list[str] | None = None) -> int:
    """Run the seeds, print how it went; 1 when a promise was broken or something never happened."""
    parser = argparse.ArgumentParser(prog="tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--shrink", action="store_true", help="shorten the schedule of the first failure")
    parser.add_argument(
        "--trace", action="store_true", help="print what was done and seen, without any timing"
    )
    parser.add_argument(
        "--no-marks", action="store_true", help="a few seeds cannot be expected to reach everything"
    )
    parser.add_argument("--loops", action="store_true", help="fleets with phases, gates, handoff and hooks")
    parser.add_argument("--goldens", action="store_true", help="compare with what was; see golden.py")
    parser.add_argument("--long", action="store_true", help="with --goldens: the files of long runs as well")
    parser.add_argument("--renew", action="store_true", help="with --goldens: write the files instead")
    parser.add_argument("--entered", action="store_true", help="which lines of the deciding code are entered")
    args = parser.parse_args(argv)
    if args.entered:
        return _entered(args)
    if args.goldens:
        return _goldens(args)
    began = time.monotonic()
    seeds = range(args.first, args.first + args.seeds)
    reports = []
    with ProcessPoolExecutor(args.jobs) if args.jobs > 1 and args.seeds > 1 else nullcontext() as pool:
        each = (seeds, repeat(args.hours), repeat(args.loops))
        for report in (pool.map if pool else map)(run_seed, *each):
            reports.append(report)
            if report.failure:  # told at once: a long run may be watched, or cut short
                print(f"seed {report.seed}: {report.failure}")
                loops = " --loops" if args.loops else ""
                again = f"--seeds 1 --first {report.seed} --hours {args.hours:g}{loops} --shrink"
                print(f"  again: python -m tests.sim {again}", flush=True)
    spent = time.monotonic() - began
    failed = [r for r in reports if r.failure]
    if failed and args.shrink:
        for fault in shrink(failed[0].seed, args.hours, failed[0].failure, loop=args.loops):
            print(f"  {fault}")
    total: Counter[str] = sum((r.acts for r in reports), Counter())
    hours = args.hours * args.seeds
    ticks = sum(r.ticks for r in reports)
    if args.trace:
        print(*reports, sep="\n")
    print(
        f"{args.seeds} seeds x {args.hours:g} h, {ticks} ticks, {sum(total.values())} effects,"
        f" {spent:.1f} s: {hours * 3600 / max(spent, 1e-9):,.0f} x real time with {args.jobs} processes"
    )
    gaps = [] if args.no_marks or args.trace or failed else missing(reports, loops=args.loops)
    for gap in gaps:
        print(f"never happened: {gap}")
    return 1 if failed or gaps else 0


def _entered(args: argparse.Namespace) -> int:
    """The seeds without and with a loop and the stories, traced; 1 when a promise about that is not kept."""
    seeds = range(args.first, args.first + args.seeds)
    with ProcessPoolExecutor(args.jobs) as pool:
        told = [pool.submit(entered_by_stories, file) for file in STORIES]
        run = [pool.submit(entered, seed, args.hours, loop) for loop in (True, False) for seed in seeds]
        found = [one.result() for one in (*told, *run)]
    wrong = list(faults(found))
    print(*gaps(found), *shares(found), *wrong, sep="\n")
    return 1 if wrong else 0


def _goldens(args: argparse.Namespace) -> int:
    """Compare the seeds of each file, or the first of them, with what they were; or renew the files."""
    different = 0
    for name, plan in golden.BOOKS.items():
        if plan.long and not args.long:
            continue
        book = None if args.renew else golden.read(name)
        if book is not None and not book.comparable:
            print(f"{name}: made with Python {book.python}, not compared by {golden.PYTHON}")
            continue
        seeds = range(plan.seeds if args.renew else min(plan.seeds, args.seeds))
        with ProcessPoolExecutor(args.jobs) as pool:
            reports = list(pool.map(run_seed, seeds, repeat(plan.hours), repeat(plan.loop)))
        found = {report.seed: report.golden for report in reports}
        broken = [f"seed {r.seed}: {r.failure}" for r in reports if r.failure]
        if book is None:
            golden.write(name, found)
        else:
            broken += book.differences(found)
        different += len(broken)
        lines = (*broken, f"{len(found)} seeds x {plan.hours:g} h")
        print(*(f"{name}: {line}" for line in lines), sep="\n", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    if (
        os.environ.get("PYTHONHASHSEED") != "0"
    ):  # the order of sets must not differ between two runs of a seed
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.sim", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0", "TZ": "UTC"},  # a pause's end is told in the host's zone
        )
    sys.exit(main())
