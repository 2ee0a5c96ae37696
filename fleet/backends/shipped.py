"""The profiles that come with the engine, as Backends, without any project's file."""

from __future__ import annotations

import os
import tomllib

from fleet.core.model import Backend, Dialog, Pattern, TextRule

HERE = os.path.dirname(os.path.abspath(__file__))
_MAKE = {"patterns": Pattern, "dialogs": Dialog, "texts": TextRule}


def names() -> list[str]:
    """Which profiles there are."""
    return sorted(entry[:-5] for entry in os.listdir(HERE) if entry.endswith(".toml"))


def load(name: str) -> Backend:
    """The profile of that name. A name that is not in `names()` raises FileNotFoundError."""
    with open(os.path.join(HERE, f"{name}.toml"), "rb") as file:
        keys = tomllib.load(file)
    for key, value in keys.items():
        if key in _MAKE:
            keys[key] = tuple(_MAKE[key](**row) for row in value)
        elif isinstance(value, dict):
            keys[key] = tuple(value.items())
        elif isinstance(value, list):
            keys[key] = tuple(value)
    return Backend(name=name, **keys)
