"""The keys, and a fleet, written out for people: `validate --explain` and `validate --resolved`."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

from fleet.config.keys import BY_SECTION, SECTIONS
from fleet.config.problems import ConfigError, Problem
from fleet.config.schema import REQUIRED, Key, Type
from fleet.core.model import Fleet, Member
from fleet.text import did_you_mean


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
            "type": type_of(one),
            "default": default_of(one),
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
    lines = [f"{key.section}.{key.name}", key.text, ""]
    lines += [f"type     {type_of(key)}", f"default  {default_of(key)}"]
    if key.example:
        lines.append(f"example  {key.name} = {key.example}")
    return "\n".join(lines)


def type_of(key: Key) -> str:
    """What it holds, in words."""
    if not key.words:
        return key.type.value
    words = ", ".join(key.words)
    if key.type is Type.STRINGS:
        return f"a list of {words}"
    return f"{key.type.value}, by {words}" if key.type is Type.WORDS else f"one of {words}"


def default_of(key: Key) -> str:
    """Its default, in words."""
    if key.derived:
        return key.derived
    if key.default is REQUIRED:
        return "none: required"
    if key.default is None or key.default in {"", ()}:
        return "none"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return f"{key.default:g}" if isinstance(key.default, float | int) else f'"{key.default}"'


# --- the fleet as a plain document again ------------------------------------------------------------------
# Every default written out, every path absolute. Written as TOML and read again it gives the same Fleet, so
# it can be compared, kept and used.

_PAIRS = ("env", "models", "screen")  # tuples of pairs that are tables in the file


def resolved(fleet: Fleet) -> dict[str, Any]:
    """What `validate --resolved` prints."""
    document: dict[str, Any] = {
        "defaults": {
            "session_prefix": fleet.session_prefix,
            "log_dir": fleet.log_dir,
            "project_dir": fleet.project_dir,
            "tmux_socket": fleet.tmux_socket,
        },
        "watchdog": _table(fleet.watchdog),
        # All keys of a backend, empty ones too: an empty one may hide what a profile says.
        "backend": {
            backend.name: {
                key: value
                for key, value in _table(backend, keep_empty=True).items()
                if key != "name" and not (key == "inherits" and not value)
            }
            for backend in fleet.backends
        },
        "agent": [_member("agent", agent) for agent in fleet.agents],
        "service": [_member("service", service) for service in fleet.services],
        "notify": [_table(notify) for notify in fleet.notify],
        "price": {
            price.model: {key: value for key, value in _table(price).items() if key != "model"}
            for price in fleet.prices
        },
    }
    if fleet.loop is not None:
        document["loop"] = _table(fleet.loop)
    return {section: value for section, value in document.items() if value}


def _member(section: str, member: Member) -> dict[str, Any]:
    """What its section has a key for; the rest is not for this kind, or for one invocation only."""
    return {key: value for key, value in _table(member).items() if key in BY_SECTION[section]}


def _table(spec: Any, *, keep_empty: bool = False) -> dict[str, Any]:
    table = {}
    for field in fields(spec):
        value = getattr(spec, field.name)
        if value is None or (value in {"", ()} and not keep_empty):
            continue
        table[field.name] = dict(value) if field.name in _PAIRS else _plain(value, keep_empty=keep_empty)
    return table


def _plain(value: Any, *, keep_empty: bool) -> Any:
    if is_dataclass(value):
        return _table(value, keep_empty=keep_empty)
    if isinstance(value, tuple):
        return [_plain(item, keep_empty=keep_empty) for item in value]
    return value
