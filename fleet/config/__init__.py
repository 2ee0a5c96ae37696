"""agents.toml in, a frozen Fleet out; every error names its file, line and key."""

from __future__ import annotations

from fleet.config.load import find, load, parse
from fleet.config.problems import ConfigError, Problem

__all__ = ["ConfigError", "Problem", "find", "load", "parse"]
