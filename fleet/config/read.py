"""Find and read an agents.toml: a Fleet, or every error at once with its line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fleet import reading
from fleet.config import toml
from fleet.config.build import Build
from fleet.config.problems import ConfigError, Findings, Problem, placed
from fleet.core.model import Fleet
from fleet.core.outline import Cause

FILE_NAME = "agents.toml"
SIZE_CAP = 256 * 1024


def find(given: str | None, launcher_dir: str, cwd: str) -> tuple[str, bool]:
    """The config to use, and whether it is the fallback beside the launcher, if that has a directory.

    A file that was named, or that is here but broken, is never passed over for another one.
    """
    if given is not None:
        return os.path.join(cwd, os.path.expanduser(given)), False
    here = os.path.join(cwd, FILE_NAME)
    if os.path.lexists(here):
        return here, False
    beside = os.path.join(os.path.realpath(launcher_dir), FILE_NAME) if launcher_dir else ""
    if beside and os.path.lexists(beside):
        return beside, True
    raise ConfigError(
        [
            Problem(
                here,
                None,
                "",
                "there is no config here" + (", nor one beside agents.py" if beside else ""),
                "give --config PATH, or run: agents.py init",
            )
        ],
        Cause.MISSING,
    )


def here(given: str | None = None) -> str:
    """The current directory, from which `given` is found. One that is absolute needs none."""
    if given is not None and os.path.isabs(os.path.expanduser(given)):
        return os.sep
    try:
        return os.getcwd()
    except FileNotFoundError:
        gone = Problem("the current directory", None, "", "does not exist any more", "cd to one that does")
        raise ConfigError([gone]) from None


def load(path: str, *, strict: bool = False) -> Fleet:
    """The fleet that a file declares. Raises ConfigError with everything that is wrong."""
    return parse(text_of(path), path, strict=strict)


def parse(
    text: str,
    path: str,
    *,
    strict: bool = False,
    ground: bool = False,
    is_file: Callable[[str], bool] = os.path.isfile,
    profiles: Mapping[str, dict[str, Any]] | None = None,
) -> Fleet:
    """The same for a text that was already read; `profiles` stand in for the shipped ones.

    With `ground` it is an error, too, that a repository which the loop stands on is not there.
    """
    document, text = toml.read(text, path)
    report = Findings()
    build = Build(document, path, report, strict=strict, ground=ground, is_file=is_file, profiles=profiles)
    fleet = build.fleet()
    lines = toml.Lines(text, document)
    if report.errors:
        raise ConfigError(placed(report.errors, path, lines))
    if report.warnings:
        return replace(fleet, warnings=tuple(map(str, placed(report.warnings, path, lines))))
    return fleet


def text_of(path: str) -> str:
    """The text of a regular file of sane size. Never waits for a pipe, never opens a device."""
    try:
        data = reading.read(path, SIZE_CAP + 1)
    except FileNotFoundError:
        raise _unreadable(
            path, "there is no such file", "give --config PATH, or run: agents.py init", cause=Cause.MISSING
        ) from None
    except IsADirectoryError:
        raise _unreadable(path, "is a directory", f"did you mean {os.path.join(path, FILE_NAME)}?") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > SIZE_CAP:
        raise _unreadable(
            path, f"is larger than {SIZE_CAP // 1024} KiB", "keep long prompts in files of their own"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([Problem(path, line, "", "is not valid UTF-8", "save the file as UTF-8")]) from None


def _unreadable(path: str, text: str, hint: str = "", *, cause: Cause = Cause.UNREADABLE) -> ConfigError:
    return ConfigError([Problem(path, None, "", text, hint)], cause)
