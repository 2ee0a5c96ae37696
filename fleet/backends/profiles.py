"""The profiles that come with the engine: one folder each, found by looking."""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # looking for folders needs no word of the model
    from fleet.core.model import Backend

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = "profile.toml"


def folders(file: str, directory: str = HERE) -> list[str]:
    """The CLIs whose folder holds this file."""
    return sorted(entry.name for entry in os.scandir(directory) if os.path.exists(f"{entry.path}/{file}"))


def names(directory: str = HERE) -> list[str]:
    """The names of all profiles."""
    return folders(FILE, directory)


def path_of(name: str, directory: str = HERE) -> str:
    """Where the profile of that name lies, if there is one."""
    return os.path.join(directory, name, FILE)


def written(name: str, directory: str = HERE) -> dict[str, Any]:
    """The profile of that name as it is written. One that is not in `names()` raises FileNotFoundError."""
    with open(path_of(name, directory), "rb") as file:
        return tomllib.load(file)


def load(name: str) -> Backend:
    """The same as a Backend, without any project's file."""
    from fleet.core.model import Backend, Dialog, Pattern, TextRule

    make = {"patterns": Pattern, "dialogs": Dialog, "texts": TextRule}
    keys = written(name)
    for key, value in keys.items():
        if key in make:
            keys[key] = tuple(make[key](**row) for row in value)
        elif isinstance(value, dict):
            keys[key] = tuple(value.items())
        elif isinstance(value, list):
            keys[key] = tuple(value)
    return Backend(name=name, **keys)
