"""Parsers of the verbs: argparse with our way of saying what is wrong."""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import NoReturn

from fleet.cli.common import Fail


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
        from fleet.cli.main import same_config

        namespace.config = same_config(namespace.config, str(values))


def parser_for(verb: str, module: ModuleType) -> Parser:
    """The parser of one verb; --config and --json are everybody's."""
    parser = Parser(
        prog=f"agents.py {verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        conflict_handler="resolve",
    )
    parser.add_argument(
        "--config", metavar="PATH", action=_Config, help="the fleet's file; default ./agents.toml"
    )
    parser.add_argument("--json", action="store_true", help="print facts as JSON")
    parser.set_defaults(verb=verb)
    module.add_arguments(parser)
    return parser
