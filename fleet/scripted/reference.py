"""docs/scripted.md, made from the table of actions, so that it cannot say anything that is not so."""

from __future__ import annotations

import inspect
import os

from fleet.scripted.actions import ACTIONS

HEAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted.md")


def reference() -> str:
    """The whole page."""
    with open(HEAD, encoding="utf-8") as file:
        parts = [file.read().rstrip(), "\n\n## Actions\n"]
    for name, action in ACTIONS.items():
        does = inspect.cleandoc(action.act.__doc__ or "")
        parts.append(f"\n### `{name}` = {action.value}\n\n{does}\n\n```toml\n{action.example}\n```\n")
        if action.options:
            parts.append("\n")
            parts += [f"- `{option}`: {text}\n" for option, text in action.options.items()]
    return "".join(parts)
