"""Check every shipped profile against its recorded screens.

Needs no config, no network and no agent CLI. --live NAME drives the installed CLI (claude, codex or
opencode) through start, work, tool, queue, limit, error, resume and quit, against a scripted model
server on the loopback, and reports which lines of the profile no longer hold.

Example: agents.py selftest --live claude
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from fleet import engine
from fleet.backends import corpus
from fleet.backends.corpus import Trial
from fleet.verbs.arguments import flag, option
from fleet.verbs.io import Fail, Io

GROUP = "set up"


ARGUMENTS = (
    flag("-v --verbose", "also list what passed"),
    option("--live NAME", "drive this installed CLI; needs tmux, and npm to install the CLI"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """0 when every recorded screen is read as it was labelled."""
    results = drive(args.live, io, quiet=args.json) if args.live else corpus.run(verbose=args.verbose)
    failed = [result for result in results if not result.ok]
    if args.json:
        rows = [{"name": r.name, "ok": r.ok, "detail": r.detail} for r in results]
        io.json({"passed": len(results) - len(failed), "failed": len(failed), "results": rows})
        return 1 if failed else 0
    for result in results if args.verbose else failed:
        detail = f": {result.detail}" if result.detail else ""
        io.print(f"{_mark(result)} {result.name}{detail}")
    io.print(f"selftest: {len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def drive(cli: str, io: Io, *, quiet: bool) -> list[Trial]:
    """The drill lies with the live tests of the engine's checkout."""
    path = engine.shipped("tests/live/drill.py")
    spec = importlib.util.spec_from_file_location("drill", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise Fail("the live drill is part of a checkout, and is not installed", hint="use a checkout")
    drill = importlib.util.module_from_spec(spec)
    sys.modules["drill"] = drill
    spec.loader.exec_module(drill)
    if cli not in drill.WAYS:
        raise Fail(f"there is no live drill for {cli!r}", hint=f"one of {', '.join(drill.WAYS)}", code=2)

    def tell(result: Trial) -> None:
        if not quiet:
            io.note(f"{_mark(result)} {result.name} ({result.got})")

    results: list[Trial] = drill.run(cli, tell)
    return results


def _mark(result: Trial) -> str:
    return "ok  " if result.ok else "FAIL"
