"""One table of the file, held against the schema: normal values out, every fault reported.

A faulty value is reported and replaced by its default, so that reading goes on and finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fleet.config import schema
from fleet.config.keys import BY_SECTION, SECTIONS
from fleet.config.problems import Findings, KeyPath
from fleet.config.schema import REQUIRED, Key, Type, Wrong
from fleet.text import closest, did_you_mean

_TYPE_NAMES = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list",
               dict: "a table"}  # fmt: skip
_SHOWN = 40  # letters of a faulty string


def _defaults() -> dict[str, dict[str, Any]]:
    return {
        section: {name: "" if key.default is REQUIRED else key.default for name, key in keys.items()}
        for section, keys in BY_SECTION.items()
    }


DEFAULTS: dict[str, dict[str, Any]] = _defaults()
_REQUIRED = {
    section: tuple(name for name, key in keys.items() if key.default is REQUIRED)
    for section, keys in BY_SECTION.items()
}


class Reader:
    """Reads tables by the schema. `strict` turns unknown keys into errors; `trusted` skips the checks.

    A shipped profile is trusted: its checks are tests of ours, not work for every start.
    """

    def __init__(self, report: Findings, *, strict: bool, trusted: bool = False) -> None:
        self.report = report
        self._odd = report.error if strict else report.warn
        self._trusted = trusted

    def table(self, section: str, raw: Any, where: KeyPath) -> dict[str, Any]:
        """All keys of one table, defaults filled in."""
        given = self.given(section, raw, where)
        if isinstance(raw, dict):
            for name in _REQUIRED[section]:
                if name not in raw:
                    self.missing(BY_SECTION[section][name], where, raw)
        return DEFAULTS[section] | given

    def tables(self, section: str, raw: Any, where: KeyPath) -> list[dict[str, Any]]:
        """A list of tables, each with its defaults."""
        if not isinstance(raw, list):
            header = SECTIONS[section][0]
            hint = f"write {header}" if header.startswith("[[") else ""
            self.report.error(where, f"expected {Type.TABLES.value}, got {_kind_of(raw)}", hint)
            return []
        return [self.table(section, item, (*where, index)) for index, item in enumerate(raw)]

    def given(self, section: str, raw: Any, where: KeyPath) -> dict[str, Any]:
        """Only the keys that are written down, in normal form."""
        if not isinstance(raw, dict):
            self.report.error(
                where, f"expected {Type.TABLE.value}, got {_kind_of(raw)}", f"write {SECTIONS[section][0]}"
            )
            return {}
        keys = BY_SECTION[section]
        values: dict[str, Any] = {}
        for name, value in raw.items():
            key = keys.get(name)
            if key is None:
                self._unknown_in(name, keys, (*where, name))
            else:
                self._accept(key, value, (*where, name), values)
        return values

    def _unknown_in(self, name: str, known: Any, where: KeyPath) -> None:
        """No key of this table. It may be one of another."""
        homes = [SECTIONS[section][0] for section, keys in BY_SECTION.items() if name in keys]
        if homes and not closest(name, known):
            self._odd(where, "there is no such key", f"it belongs to {' or '.join(homes)}")
        else:
            self.unknown(name, known, where)

    def unknown(self, name: str, known: Any, where: KeyPath) -> None:
        self._odd(where, "there is no such key", did_you_mean(name, known))

    def missing(self, key: Key, where: KeyPath, written: Iterable[str] = ()) -> None:
        """The key is not there; perhaps another one is that was meant for it."""
        strangers = [name for name in written if name not in BY_SECTION[key.section]]
        meant = closest(key.name, strangers)
        hint = f'did you mean it by "{meant}"?' if meant else f"write {key.name} = {key.example}"
        self.report.error((*where, key.name), f"is required: {key.text}", hint)

    def _accept(self, key: Key, value: Any, where: KeyPath, values: dict[str, Any]) -> None:
        """Put the normal form of the value under its name, or report what is wrong with it."""
        try:
            normal = schema.convert(key.type, value)
        except Wrong as wrong:
            expected, got = (wrong.expected, wrong.got) if wrong.expected else (key.type, value)
            said = str(wrong) or f"expected {expected.value}, got {_kind_of(got)}"
            hint = f"such as {key.example}" if key.example and not str(wrong) else ""
            self.report.error((*where, *wrong.at), said, hint)
            return
        if not self._trusted and (fault := _fault(key, normal)):
            at, text, hint = fault
            self.report.error((*where, *at), text, hint)
            return
        if key.words and key.type is Type.WORDS and not self._trusted:
            for name, _ in normal:
                if name not in key.words:
                    self.unknown(name, key.words, (*where, name))
        values[key.name] = normal


def _fault(key: Key, value: Any) -> tuple[KeyPath, str, str] | None:
    """Where in the value it is, what is wrong, what to do."""
    for at, word in _chosen(key, value):
        if word not in key.words:
            return at, f'"{word}" is not one of {", ".join(key.words)}', did_you_mean(word, key.words)
    if key.type is Type.REGEX and (said := schema.regex(value)):
        return (), said, "single quotes keep backslashes as they are"
    if key.check and (said := key.check(value)):
        return (), said, f"such as {key.example}" if key.example else ""
    return None


def _chosen(key: Key, value: Any) -> list[tuple[KeyPath, str]]:
    """The words of a value that must be of the key's closed set, each with its place."""
    if not key.words or key.type is Type.WORDS:  # there the keys are, and those are read as keys
        return []
    if key.type is Type.STRINGS:
        return [((index,), word) for index, word in enumerate(value)]
    said = value != key.default or key.derived  # a resolved file writes down what was never said
    return [((), value)] if said else []


def _kind_of(value: Any) -> str:
    name = _TYPE_NAMES.get(type(value), "a date or time")
    if isinstance(value, bool):
        return f"{name} ({str(value).lower()})"
    if isinstance(value, str):
        more = "..." if len(value) > _SHOWN else ""
        return f'{name} ("{value[:_SHOWN]}{more}")'
    return f"{name} ({value})" if isinstance(value, int | float) and abs(value) < 10**40 else name
