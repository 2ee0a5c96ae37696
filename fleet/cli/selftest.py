"""Check that screens are still read right: every shipped profile against its recorded screens.

Needs no config, no network and no agent CLI.
"""

from __future__ import annotations

import argparse

from fleet.backends import selftest
from fleet.cli.common import Io


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How much to tell."""
    parser.add_argument("-v", "--verbose", action="store_true", help="also list what passed")


def run(args: argparse.Namespace, io: Io) -> int:
    """0 when every recorded screen is read as it was labelled."""
    results = selftest.run(args.verbose)
    failed = [result for result in results if not result.ok]
    if args.json:
        rows = [{"name": r.name, "ok": r.ok, "detail": r.detail} for r in results]
        io.json({"passed": len(results) - len(failed), "failed": len(failed), "results": rows})
        return 1 if failed else 0
    for result in results if args.verbose else failed:
        io.print(
            f"{'ok  ' if result.ok else 'FAIL'} {result.name}{': ' if result.detail else ''}{result.detail}"
        )
    io.print(f"selftest: {len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0
