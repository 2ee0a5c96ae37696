"""The fleet as a plain document again: every default written out, every path absolute.

Written as TOML and read again it gives the same Fleet, so it can be compared, kept and used.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from fleet.config.keys import BY_SECTION
from fleet.core.model import Fleet, Member

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
