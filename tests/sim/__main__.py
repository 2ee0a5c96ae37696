"""Run seeds: python -m tests.sim --seeds 40 --hours 24 [--first 0] [--jobs 2] [--shrink]."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext

from tests.sim.marks import missing
from tests.sim.shrink import shrink
from tests.sim.simulation import Report, Simulation


def run(seed: int, hours: float) -> Report:
    """One seed."""
    return Simulation(seed, hours).run()


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
    args = parser.parse_args(argv)
    began = time.monotonic()
    seeds = range(args.first, args.first + args.seeds)
    reports = []
    with ProcessPoolExecutor(args.jobs) if args.jobs > 1 and args.seeds > 1 else nullcontext() as pool:
        for report in (pool.map if pool else map)(run, seeds, [args.hours] * args.seeds):
            reports.append(report)
            if report.failure:  # told at once: a long run may be watched, or cut short
                print(f"seed {report.seed}: {report.failure}")
                again = f"--seeds 1 --first {report.seed} --hours {args.hours:g} --shrink"
                print(f"  again: python -m tests.sim {again}", flush=True)
    spent = time.monotonic() - began
    failed = [r for r in reports if r.failure]
    if failed and args.shrink:
        for fault in shrink(failed[0].seed, args.hours, failed[0].failure):
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
    gaps = [] if args.no_marks or args.trace or failed else missing(reports)
    for gap in gaps:
        print(f"never happened: {gap}")
    return 1 if failed or gaps else 0


if __name__ == "__main__":
    if (
        os.environ.get("PYTHONHASHSEED") != "0"
    ):  # the order of sets must not differ between two runs of a seed
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.sim", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
