"""Check agents.toml or explain one of its keys.

Prints every error at once, each with its line, its key and what was expected. --explain needs no
file.

Example: agents.py validate --explain agent.watch
"""

from __future__ import annotations

import argparse
import re

from fleet import bootstrap, config
from fleet.config.explain import explain, facts, resolved
from fleet.text import plural
from fleet.verbs.arguments import flag, option
from fleet.verbs.fleets import config_path
from fleet.verbs.io import Io

GROUP = "set up"


ARGUMENTS = (
    flag("--resolved", "print the configuration with defaults, profiles and paths merged, as TOML"),
    option("--explain KEY", "print meaning, type, default and an example of a key, such as agent.watch"),
)


def run(args: argparse.Namespace, io: Io) -> int:
    """0 when the file is right, 2 when it is not."""
    if args.explain is not None:
        if args.json:
            io.json(facts(args.explain))
        else:
            for line in explain(args.explain).splitlines():
                lead, text = re.split(r"^( *\S+ {2,})?", line, maxsplit=1)[1:]
                io.paragraph(text, lead or "")
        return 0
    path = config_path(args, io)
    try:
        fleet = config.load(path, strict=True)
    except config.ConfigError as wrong:
        if not args.json:
            raise
        io.json({"config": path, "valid": False, "errors": wrong.lines(), "warnings": []})
        return 2
    if args.json:
        document = {"config": path, "valid": True, "errors": [], "warnings": list(fleet.warnings)}
        io.json(document | ({"resolved": resolved(fleet)} if args.resolved else {}))
        return 0
    for warning in fleet.warnings:
        io.warn(warning)
    if args.resolved:
        bootstrap.enter(["tomli_w"])
        import tomli_w

        io.write(tomli_w.dumps(resolved(fleet)))
        return 0
    phases = len(fleet.loop.phases) if fleet.loop else 0
    counts = {"agent": len(fleet.agents), "service": len(fleet.services), "phase": phases}
    io.print(f"{path}: fine: {', '.join(plural(number, noun) for noun, number in counts.items())}")
    return 0
