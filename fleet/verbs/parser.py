"""Parsers of the verbs: argparse with our way of saying what is wrong."""

from __future__ import annotations

import argparse
import os
from types import ModuleType
from typing import NoReturn

from fleet import engine
from fleet.verbs.common import Fail


def same_config(before: object, path: str) -> str:
    """The file that was named; named twice it must be the same one."""
    if not path:
        raise Fail("--config needs a path", hint="agents.py --help", code=2)
    if before not in {None, path} and os.path.abspath(str(before)) != os.path.abspath(path):
        raise Fail(f"--config was given twice: {before} and {path}", hint="name one file", code=2)
    return path


class Parser(argparse.ArgumentParser):
    """argparse with our way of saying what is wrong."""

    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        raise Fail(message, hint=f"{self.prog} --help", code=2)


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
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        conflict_handler="resolve",
    )
    parser.add_argument(
        "--config", metavar="PATH", action=_Config, help="the agents.toml to use (default: ./agents.toml)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(verb=verb)
    module.add_arguments(parser)
    return parser
