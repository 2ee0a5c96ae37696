"""agents.toml in, a frozen Fleet out; every error names its file, line and key."""

from __future__ import annotations

from fleet.config.override import override
from fleet.config.problems import ConfigError, Problem
from fleet.config.read import FILE_NAME, find, here, load, parse, text_of

__all__ = [
    "FILE_NAME",
    "ConfigError",
    "Problem",
    "find",
    "here",
    "load",
    "override",
    "parse",
    "text_of",
]
