"""The key table, told to people (explain, docs/config.md) and to editors (the JSON schema)."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from fleet.config.keys import BY_SECTION, SECTIONS
from fleet.config.problems import ConfigError, Problem
from fleet.config.schema import REQUIRED, Key, Type
from fleet.text import did_you_mean

_INTRODUCTION = """\
# agents.toml

Generated from the key table in `fleet/config/keys.py`. `agents.py validate` checks a file,
`agents.py validate --explain KEY` explains one key, and `agents.py validate --resolved` prints the file
with every default filled in.

Relative paths start at `project_dir`, and `~` is your home. Durations are seconds and may be fractions. A key
that does not exist is an error in `validate` and a warning elsewhere. Inline tables may span several lines.
"""


def explain(key: str) -> str:
    """What a key or a section means: agent.wake.interval, backend.NAME.bin, loop, or just interval."""
    keys, sections = _meant(key)
    return "\n\n".join([*map(_explain_key, keys), *map(_explain_section, sections)])


def facts(key: str) -> list[dict[str, str]]:
    """The same for a program: every key that is meant, those of a section in its order."""
    keys, sections = _meant(key)
    inside = [inner for section in sections for inner in BY_SECTION[section].values()]
    return [
        {
            "key": f"{one.section}.{one.name}",
            "text": one.text,
            "type": _type(one),
            "default": _default(one),
            "example": one.example,
        }
        for one in [*keys, *inside]
    ]


def _meant(key: str) -> tuple[list[Key], list[str]]:
    """The keys and the sections that a word stands for. ConfigError for one that stands for none."""
    wanted = _plain_name(key)
    section, _, name = wanted.rpartition(".")
    keys = [BY_SECTION[section][name]] if name in BY_SECTION.get(section, {}) else []
    sections = [wanted] if wanted in SECTIONS else []
    if not keys and not sections:
        keys = [inside[wanted] for inside in BY_SECTION.values() if wanted in inside]
    if keys or sections:
        return keys, sections
    full = {f"{section}.{name}" for section, inside in BY_SECTION.items() for name in inside}
    known = (
        full if "." in wanted else {name for inside in BY_SECTION.values() for name in inside} | set(SECTIONS)
    )
    meant = did_you_mean(wanted, known)
    raise ConfigError([Problem("agents.toml", None, key, "there is no such key", meant)])


def _plain_name(key: str) -> str:
    """A key without what varies: brackets, positions in lists, names of backends and models."""
    header = re.fullmatch(r"\[+([^\[\]]+)\]+", key.strip())
    plain = re.sub(r"\[\w*\]", "", header[1] if header else key.strip())
    for section in ("backend", "price"):
        match = re.fullmatch(rf'{section}\.(?:"[^"]*"|[^.]+)(\..+)?', plain)
        first = plain.removeprefix(f"{section}.").partition(".")[0]
        if match and first not in BY_SECTION[section]:
            plain = section + (match[1] or "")
    return plain


def _explain_section(section: str) -> str:
    header, text = SECTIONS[section]
    width = max(map(len, BY_SECTION[section]))
    rows = [f"  {name:<{width}}  {key.text}" for name, key in BY_SECTION[section].items()]
    return "\n".join([header, text, "", *rows])


def _explain_key(key: Key) -> str:
    lines = [f"{key.section}.{key.name}", key.text, "", f"type     {_type(key)}", f"default  {_default(key)}"]
    if key.example:
        lines.append(f"example  {key.name} = {key.example}")
    return "\n".join(lines)


def _type(key: Key) -> str:
    if not key.words:
        return key.type.value
    words = ", ".join(key.words)
    if key.type is Type.STRINGS:
        return f"a list of {words}"
    return f"{key.type.value}, by {words}" if key.type is Type.WORDS else f"one of {words}"


def _default(key: Key) -> str:
    if key.derived:
        return key.derived
    if key.default is REQUIRED:
        return "none: required"
    if key.default is None or key.default in {"", ()}:
        return "none"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return f"{key.default:g}" if isinstance(key.default, float | int) else f'"{key.default}"'


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
    default = _default(key)
    shown = default if key.derived or default.startswith("none") else f"`{default}`"
    cells = (f"`{key.name}`", _type(key), shown, key.text)
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


def main() -> None:
    """Write the two generated documents into docs/ of the checkout that this file is part of."""
    docs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
    with open(os.path.join(docs, "config.md"), "w", encoding="utf-8") as file:
        file.write(reference())
    with open(os.path.join(docs, "agents.schema.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(json_schema(), indent=1) + "\n")


if __name__ == "__main__":
    main()
