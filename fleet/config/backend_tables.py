"""Backends: a project's tables over the shipped profiles.

A profile is a TOML file with the keys of a [backend.NAME] table. Only the profiles that a fleet
uses are read, because reading TOML is the dearest part of a start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fleet.backends.profiles import HERE, names, path_of, written
from fleet.config.keys import BY_SECTION
from fleet.config.problems import ConfigError, Findings, KeyPath, Problem, spell
from fleet.config.schema import NAME
from fleet.config.tables import DEFAULTS, Reader
from fleet.core.model import Backend, Dialog, Pattern, TextRule
from fleet.core.queue import OUR_WORDS
from fleet.text import did_you_mean

# How an inherited value and a project's own are put together; any other key is simply replaced.
_BY_KEY = ("env", "screen")
_TRAPS = ("limit_re", "fatal_re", "active_re")
_BY_NAME: dict[str, type[Pattern | Dialog | TextRule]] = {
    "patterns": Pattern,
    "dialogs": Dialog,
    "texts": TextRule,
}


def shipped(name: str, directory: str = HERE) -> dict[str, Any] | None:
    """The raw profile of that name, or nothing. A word that is no name is no path either."""
    if not NAME.fullmatch(name):
        return None
    try:
        return written(name, directory)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            [
                Problem(
                    path_of(name, directory),
                    None,
                    "",
                    f"the shipped profile cannot be read: {error}",
                    "the engine's checkout is damaged; check it out again",
                )
            ]
        ) from None


class Backends:
    """All backends of one file, each made when it is first asked for."""

    def __init__(
        self, tables: dict[str, Any], reader: Reader, profiles: Mapping[str, dict[str, Any]] | None
    ) -> None:
        self._reader = reader
        self._profiles = profiles
        self._values: dict[str, dict[str, Any]] = {}
        self._made: dict[str, Backend] = {}
        self._tables: dict[str, dict[str, Any]] = {}
        for name, raw in tables.items():
            where = ("backend", name)
            if not NAME.fullmatch(name):
                reader.report.error(where, "a backend's name holds only letters, digits, - and _")
            self._tables[name] = _given(raw, where, reader)
        for name in self._tables:
            self.get(name)

    def get(self, name: str) -> Backend | None:
        """The backend of that name, or nothing when neither the file nor the engine has one."""
        if name not in self._made and (values := self._resolve(name, ())) is not None:
            self._made[name] = Backend(name=name, **values)
            self._misreads(self._made[name])
            if values["model_env"] and not values["model_variable"]:
                hint = "say which variable of JSON settings takes the model, or use model_flag"
                self._reader.report.warn(
                    ("backend", name, "model_env"), "does nothing without model_variable", hint
                )
        return self._made.get(name)

    def made(self) -> tuple[Backend, ...]:
        """Every backend that was declared or asked for, in that order."""
        return tuple(self._made.values())

    def known(self) -> set[str]:
        """All names that may be asked for."""
        return set(self._tables) | set(names() if self._profiles is None else self._profiles)

    def _misreads(self, backend: Backend) -> None:
        """What the watchdog types stands on the screen: it must not look like a banner."""
        for key in (key for key in _TRAPS if self._tables.get(backend.name, {}).get(key)):
            said = next((text for text in OUR_WORDS if re.search(getattr(backend, key), text)), "")
            if said:
                where = ("backend", backend.name, key)
                hint = "make it narrower: what is typed stands on the screen, and would be taken for a banner"
                self._reader.report.error(where, f'matches what the watchdog itself types: "{said}"', hint)

    def _resolve(self, name: str, heirs: tuple[str, ...]) -> dict[str, Any] | None:
        if name in self._values:
            return self._values[name]
        own = self._tables.get(name)
        base = self._base(name, own, heirs)
        if own is None and base is None:
            return None
        values = merge(base or DEFAULTS["backend"], own or {})
        if own is not None and base is None and "bin" not in own:
            self._reader.missing(BY_SECTION["backend"]["bin"], ("backend", name))
        self._values[name] = values
        return values

    def _base(self, name: str, own: dict[str, Any] | None, heirs: tuple[str, ...]) -> dict[str, Any] | None:
        parent = (own or {}).get("inherits", "") or name
        if parent == name:
            return self._shipped(name)
        where = ("backend", name, "inherits")
        if parent in heirs:
            self._reader.report.error(where, f"goes round in a circle: {' > '.join((*heirs, name, parent))}")
            return DEFAULTS["backend"]
        base = self._resolve(parent, (*heirs, name))
        if base is None:
            self._reader.report.error(
                where,
                f'there is no backend "{parent}" to inherit from',
                did_you_mean(parent, self.known() - {name}),
            )
            return DEFAULTS["backend"]
        return base

    def _shipped(self, name: str) -> dict[str, Any] | None:
        raw = self._profiles.get(name) if self._profiles is not None else shipped(name)
        return None if raw is None else profile_values(name, raw)


def profile_values(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    """A shipped profile in normal form. A fault in it is ours, and is reported as such."""
    report = Findings()
    given = _given(raw, (), Reader(report, strict=True, trusted=True))
    if report.errors:
        path = path_of(name)
        raise ConfigError(Problem(path, None, spell(f.where), f.text, f.hint) for f in report.errors)
    return DEFAULTS["backend"] | given


def merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """An inherited backend with a project's own keys over it."""
    merged = base | own
    for key in _BY_KEY:
        if key in own:
            merged[key] = tuple((dict(base[key]) | dict(own[key])).items())
    for key in _BY_NAME:
        if key in own:
            merged[key] = tuple(({item.name: item for item in (*base[key], *own[key])}).values())
    merged["inherits"] = own.get("inherits", "")
    return merged


def _given(raw: Any, where: KeyPath, reader: Reader) -> dict[str, Any]:
    """The written keys of a backend, its lists of tables as patterns and dialogs."""
    given = reader.given("backend", raw, where)
    for key, make in _BY_NAME.items():
        if key not in given:
            continue
        rows = reader.tables(f"backend.{key}", given[key], (*where, key))
        first: dict[str, int] = {}
        for index, row in enumerate(rows):
            if first.setdefault(row["name"], index) != index:
                said = f'"{row["name"]}" is already taken in this list'
                reader.report.error((*where, key, index, "name"), said)
        given[key] = tuple(make(**row) for row in rows)
    return given
