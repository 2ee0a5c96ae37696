"""agents.py VERB: find the verb, import only its module, run it, turn every fault into a sentence.

A verb is a file in this directory with a docstring (its help), GROUP (its place in the overview),
ARGUMENTS and `run(args, io) -> int`. Exit codes: 0 fine, 1 not as desired, 2 usage or
config. A traceback is a bug of agent-fleet and is shown only when AO_DEBUG is set.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from fleet.core.decision import Fault
from fleet.text import did_you_mean
from fleet.verbs.arguments import parser_for, same_config
from fleet.verbs.io import Fail, Io

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = ("run", "look", "set up")  # of the overview; "inner": `up` and `ensure` run it
# The first line of a verb's docstring is its help; the constant GROUP says that the file holds a verb.
_OFFER = re.compile(r'\A"""([^\n]+)\.\n.*?^GROUP = "([a-z ]+)"$', re.DOTALL | re.MULTILINE)

# verb: (modules, set of libraries, must it have them). All others start on the standard library alone; one
# that needs a library for a certain option asks for it there. What a verb can do without is used where it is,
# and nothing is built for it; `up` hands its Python on to the watchdog.
LIBRARIES = {
    "up": (("watchfiles",), "base", False),
    "watchdog": (("watchfiles",), "base", False),
    "top": (("rich", "textual"), "full", True),
}


# What other tools call it: no verb of ours, but what was meant is known.
OTHER_WORDS = {"start": "up", "run": "up", "stop": "down", "kill": "down", "ps": "status", "list": "status"}


class Offer(NamedTuple):
    """A verb as the overview shows it."""

    text: str
    group: str


def offer(name: str) -> Offer | None:
    """What the file of a verb says of itself, read without running it; None: there is no such verb."""
    if not re.fullmatch(r"[a-z]+", name):
        return None
    try:
        with open(os.path.join(HERE, f"{name}.py"), encoding="utf-8") as file:
            found = _OFFER.match(file.read())
    except FileNotFoundError:
        return None
    return Offer(*found.groups()) if found is not None else None


def verbs() -> dict[str, Offer]:
    """The verbs this engine has, by name."""
    names = sorted(file.removesuffix(".py") for file in os.listdir(HERE) if file.endswith(".py"))
    return {name: found for name in names if (found := offer(name)) is not None}


def split(argv: Sequence[str]) -> tuple[dict[str, str | bool], list[str]]:
    """What stands before the verb, and the verb with what follows it."""
    given: dict[str, str | bool] = {}
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--config" or word.startswith("--config="):
            path = word.removeprefix("--config=")
            if "=" not in word:
                path = rest.pop(0) if rest else ""
            given["config"] = same_config(given.get("config"), path)
        elif word == "--json":
            given["json"] = True
        elif word in {"-h", "--help"}:
            return given, ["--help"]
        elif word in {"-V", "--version"}:
            rest.insert(0, "version")
        else:
            raise Fail(f"unknown option {word}", hint="agents.py --help", code=2)
    return given, rest


def overview() -> str:
    """What `agents.py --help` prints."""
    lines = [
        "agents.py [--config PATH] [--json] VERB ...",
        "",
        "agent-fleet: run a team of AI coding agents unattended, from one file.",
    ]
    known = verbs()
    for group in GROUPS:
        members = [f"  {name:<13}{text}" for name, (text, where) in known.items() if where == group]
        lines += ["", f"{group}:", *members] if members else []
    return "\n".join([*lines, "", "agents.py VERB --help shows its options and an example."])


def parse(argv: Sequence[str]) -> tuple[ModuleType, Namespace]:
    """The verb's module and its arguments, with what stood before the verb folded in."""
    given, rest = split(argv)
    verb = rest[0]
    if offer(verb) is None:
        meant = f'did you mean "{OTHER_WORDS[verb]}"?' if verb in OTHER_WORDS else did_you_mean(verb, verbs())
        raise Fail(f"unknown verb {verb!r}; {meant}", hint="agents.py --help", code=2)
    module = importlib.import_module(f"fleet.verbs.{verb}")
    args = parser_for(verb, module).parse_args(rest[1:])
    if "config" in given:
        args.config = same_config(given["config"], args.config or str(given["config"]))
    args.json = bool(args.json or given.get("json"))
    return module, args


def run(argv: Sequence[str], io: Io) -> int:
    """One command from words to exit code; faults are raised."""
    first = split(argv)[1][:1]
    if first == ["help"] and (about := split(argv)[1][1:2]):
        return run([*about, "--help"], io)
    if first in ([], ["--help"], ["help"]):
        io.print(overview())
        return 0 if first else 2
    if first[0] in LIBRARIES and not {"-h", "--help"} & set(argv):
        from fleet import bootstrap

        modules, wanted, needed = LIBRARIES[first[0]]
        bootstrap.enter(modules, wanted, optional=not needed, build=needed)
    module, args = parse(argv)
    code: int = module.run(args, io)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Never a traceback: every way to end is an exit code and, if need be, a sentence."""
    warnings.simplefilter("ignore", FutureWarning)  # what a pattern like [[a] will mean to a later Python
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    io = Io()
    try:
        code = run(sys.argv[1:] if argv is None else argv, io)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BrokenPipeError:
        io.hang_up()
        code = 141
    except Exception as fault:
        code = told(fault, io)
    return io.close(code)


def told(fault: Exception, io: Io) -> int:
    """Print what went wrong, as the exception says it; return the exit code."""
    if os.environ.get("AO_DEBUG"):
        import traceback

        traceback.print_exception(fault)
    if isinstance(fault, Fault):
        for line in fault.lines():
            io.error(line, hint=fault.hint)
        return fault.code
    if isinstance(fault, OSError):
        io.error(f"{fault.filename or 'the system'}: {fault.strerror or fault}")
        return 1
    from fleet.bootstrap import (
        CannotBuild,  # no Fault: bootstrap.py also runs by its path, without the package
    )

    if isinstance(fault, CannotBuild):
        io.error(str(fault))
        return 1
    io.error(f"a bug of agent-fleet: {type(fault).__name__}: {fault}", hint="AO_DEBUG=1 shows where")
    return 1


if __name__ == "__main__":
    sys.exit(main())
