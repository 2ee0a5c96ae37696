"""The key table of agents.toml as a page for people and as a JSON schema for editors."""

from __future__ import annotations

from typing import Any

from fleet.config.explain import default_of, type_of
from fleet.config.keys import BY_SECTION, SECTIONS
from fleet.config.schema import REQUIRED, Key, Type

_INTRODUCTION = """\
# agents.toml

Generated from the key table in `fleet/config/keys.py`. `agents.py validate` checks a file,
`agents.py validate --explain KEY` explains one key, and `agents.py validate --resolved` prints the file
with every default filled in.

Relative paths start at `project_dir`, and `~` is your home. Durations are seconds and may be fractions. A key
that does not exist is an error in `validate` and a warning elsewhere. Inline tables may span several lines.
"""


def reference() -> str:
    """docs/config.md."""
    parts = [_INTRODUCTION]
    for section, (header, text) in SECTIONS.items():
        parts.append(f"## `{header}`\n\n{text}\n")
        parts.append("| key | holds | default | meaning |\n|---|---|---|---|")
        parts += [_row(key) for key in BY_SECTION[section].values()]
        examples = [f"{key.name} = {key.example}" for key in BY_SECTION[section].values() if key.example]
        parts.append("\n```toml\n" + "\n".join([header, *examples]) + "\n```\n")
    return "\n".join(parts)


def _row(key: Key) -> str:
    default = default_of(key)
    shown = default if key.derived or default.startswith("none") else f"`{default}`"
    cells = (f"`{key.name}`", type_of(key), shown, key.text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_JSON: dict[Type, dict[str, Any]] = {
    Type.STRING: {"type": "string"},
    Type.PATH: {"type": "string"},
    Type.REGEX: {"type": "string", "format": "regex"},
    Type.FLAG: {"type": "boolean"},
    Type.SECONDS: {"type": "number"},
    Type.COUNT: {"type": "integer"},
    Type.AMOUNT: {"type": "number"},
    Type.STRINGS: {"type": "array", "items": {"type": "string"}},
    Type.NAMES: {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    Type.WORDS: {"type": "object", "additionalProperties": {"type": "string"}},
}


def json_schema() -> dict[str, Any]:
    """For editors that complete and check TOML by a JSON schema."""
    top: dict[str, Any] = {}
    for section, (header, text) in SECTIONS.items():
        if "." in section:
            continue
        shape = _json_table(section)
        if header.startswith("[["):
            shape = {"type": "array", "items": shape}
        elif section in {"backend", "price"}:
            shape = {"type": "object", "additionalProperties": shape}
        top[section] = {"description": text} | shape
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "agents.toml",
        "type": "object",
        "additionalProperties": False,
        "required": ["defaults"],
        "properties": top,
    }


def _json_table(section: str) -> dict[str, Any]:
    keys = BY_SECTION[section]
    shape: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _json_key(key) for name, key in keys.items()},
    }
    # A backend may inherit what it does not say.
    required = [name for name, key in keys.items() if key.default is REQUIRED and not key.derived]
    return shape | ({"required": required} if required else {})


def _json_key(key: Key) -> dict[str, Any]:
    inner = f"{key.section}.{key.name}"
    if key.type is Type.TABLE:
        shape = _json_table(inner)
    elif key.type is Type.TABLES:
        shape = {"type": "array", "items": _json_table(inner)}
    else:
        shape = dict(_JSON[key.type])
    if key.words:
        closed = {"enum": [str(choice) for choice in key.words]}
        if key.type is Type.STRINGS:
            shape["items"] = shape["items"] | closed
        elif key.type is Type.WORDS:
            shape["propertyNames"] = closed
        else:
            shape |= closed
    if isinstance(key.default, str | float | int) and key.default != "":
        shape["default"] = key.default
    return {"description": key.text} | shape
