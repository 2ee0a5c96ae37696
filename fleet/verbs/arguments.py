"""Arguments of verbs: how a verb declares them, the parser made of them, and what their words mean.

A verb lists its arguments in ARGUMENTS: `flag`, `option`, `positional`, or one that verbs share.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fleet import engine
from fleet.core.outline import WATCHDOG, Outline
from fleet.text import did_you_mean, wrapped
from fleet.verbs.io import Fail

if TYPE_CHECKING:
    from fleet.core.model import Fleet


class Argument(NamedTuple):
    """One argument of a verb, as argparse takes it. Of those in one group only one may be given."""

    names: tuple[str, ...]
    settings: dict[str, Any]
    group: str = ""


def flag(words: str, text: str, group: str = "") -> Argument:
    """An option without a value: `-f --follow`."""
    return Argument(tuple(words.split()), {"action": "store_true", "help": text}, group)


def option(words: str, text: str, group: str = "", **settings: Any) -> Argument:
    """An option with a value, as the help shows it: `-n --lines N`. One with choices has no word for it."""
    parts = words.split()
    names = tuple(part for part in parts if part.startswith("-"))
    value = parts[-1] if parts[-1] not in names else None
    return Argument(names, {"metavar": value, "help": text, **settings}, group)


def positional(name: str, text: str | None, **settings: Any) -> Argument:
    """An argument that is known by its place."""
    return Argument((name,), {"help": text, **settings})


def members(text: str, nargs: str = "*") -> Argument:
    """`names`: agents and services."""
    return positional("names", text, nargs=nargs, metavar="NAME")


def seconds(text: str) -> float:
    """A time to wait."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # nor is nan
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def timeout(default: float, what: str, shown: str = "") -> Argument:
    """How long to wait for what, in seconds."""
    text = " ".join(filter(None, ("how long to wait", what, f"(default: {shown or f'{default:g}'})")))
    return option("--timeout SECONDS", text, type=seconds, default=default)


def count(text: str) -> int:
    """A number of lines."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


# --- the parser -------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """argparse with our way of saying what is wrong."""

    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        program, _, verb = self.prog.rpartition(" ")
        files = [word for word in message.split() if word.endswith(".toml")]
        if message.startswith("unrecognized arguments") and files:
            raise Fail(message, hint=f"{program} --config {files[0]} {verb}", code=2)
        raise Fail(message, hint=f"{self.prog} --help", code=2)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of a docstring. Where the terminal is narrower, paragraphs are wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if all(len(line) <= width for line in text.splitlines()):
            return super()._fill_text(text, width, indent)
        return "\n\n".join(map(partial(_narrowed, room=width), text.split("\n\n")))


def _narrowed(paragraph: str, room: int) -> str:
    if "\n  " in f"\n{paragraph}":  # its lines are rows of a table
        return paragraph
    return "\n".join(wrapped(" ".join(paragraph.splitlines()), room))


class _Config(argparse.Action):
    """The fleet's file, named once, or the same one again."""

    def __call__(
        self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None
    ) -> None:
        namespace.config = same_config(namespace.config, str(values))


def parser_for(verb: str, module: ModuleType) -> Parser:
    """The parser of one verb; every verb takes --config and --json."""
    parser = Parser(
        prog=f"{engine.AGENTS} {verb}",
        description=engine.spoken(module.__doc__ or ""),
        formatter_class=_Help,
        allow_abbrev=False,
        conflict_handler="resolve",
    )
    parser.add_argument(
        "--config", metavar="PATH", action=_Config, help="the agents.toml to use (default: ./agents.toml)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(verb=verb)
    groups = defaultdict[str, Any](parser.add_mutually_exclusive_group)
    for names, settings, group in module.ARGUMENTS:
        place = groups[group] if group else parser
        place.add_argument(*names, **settings)
    return parser


# --- what the words mean ----------------------------------------------------------------------------------


def same_config(before: object, path: str) -> str:
    """The file that was named; named twice it must be the same one."""
    if not path:
        raise Fail("--config needs a path", hint="agents.py --help", code=2)
    if before not in {None, path} and os.path.abspath(str(before)) != os.path.abspath(path):
        raise Fail(f"--config was given twice: {before} and {path}", hint="name one file", code=2)
    return path


def session_of(fleet: Fleet | Outline, name: str) -> str:
    """The session of an agent, a service or the watchdog; an unknown name fails with the nearest one."""
    sessions: Mapping[str, str] = {
        **{m.name: m.session for m in fleet.members},
        WATCHDOG: fleet.watchdog_session,
    }
    if name in sessions:
        return sessions[name]
    raise Fail(f"no agent or service is called {name!r}; {did_you_mean(name, sessions)}", code=2)
