"""A script: what the agent does, and how it reacts to the texts it gets.

TOML, or JSON lines with one step each. A step is a table whose first key names the action; the other keys
are its options. `steps` is what the agent does with its kickoff. `[[on]]` tables are reactions: the first
whose patterns all match runs instead. `start` runs before the kickoff is taken.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.scripted_agent.actions import ACTIONS, Step
from fleet.text import did_you_mean

NESTED = ("steps", "then", "else")
_DIRECTIVE = re.compile(r"%%(.+?)%%", re.DOTALL)
_TOP = ("face", "speed", "boot", "name", "start", "steps", "on", "idle")
_ON = ("kickoff", "message", "resume", "times", "steps")


class ScriptError(Exception):
    """The script cannot be run: which file, which step, what was expected."""


@dataclass(slots=True)
class Reaction:
    """What to do with a text. Each pattern given must be found; groups become slots."""

    steps: list[Step]
    kickoff: re.Pattern[str] | None = None
    message: re.Pattern[str] | None = None
    resume: re.Pattern[str] | None = None
    times: int = 0  # 0: as often as it matches
    ran: int = 0

    def match(self, kind: str, text: str, resume: str) -> dict[str, str] | None:
        """The slots it fills, or None when it is not meant."""
        if self.times and self.ran >= self.times:
            return None
        slots: dict[str, str] = {}
        own = {"kickoff": self.kickoff, "message": self.message}
        if not any((self.kickoff, self.message, self.resume)) or (own[kind] is None and any(own.values())):
            return None
        for pattern, subject in ((own[kind], text), (self.resume, resume)):
            found = pattern.search(subject) if pattern else None
            if pattern and not found:
                return None
            slots |= {k: v or "" for k, v in found.groupdict().items()} if found else {}
        return slots


@dataclass(slots=True)
class Script:
    """One file, checked."""

    path: str = ""
    face: str = "plain"
    speed: float = 1.0
    boot: float = 0.0  # seconds of "Starting" before anything else
    name: str = "scripted-agent"  # the process name shown to the system
    start: list[Step] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    idle: list[Step] = field(default_factory=list)  # the answer to a message that no reaction is meant for
    on: list[Reaction] = field(default_factory=list)


DEFAULT = Script(
    steps=[{"work": 1.0}, {"say": "I am a scripted agent. Set AO_SCRIPT to a script to give me a part."}],
    idle=[{"work": 0.5}, {"say": "Heard: {message}"}],
)


def load(path: str) -> Script:
    """Read and check a script."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ScriptError(f"{path}: {error.strerror}: set AO_SCRIPT to a script file") from error
    return parse(raw.decode("utf-8", "replace"), path)


def parse(text: str, path: str) -> Script:
    """The same from text. JSON lines when the name says so, TOML otherwise."""
    data = _json_lines(text, path) if path.endswith(("json", "jsonl")) else _toml(text, path)
    _only(data, _TOP, path, "")
    for key in ("start", "steps", "idle"):
        _check(data.get(key, []), f"{path}: {key}")
    reactions = data.get("on", [])
    if not isinstance(reactions, list):
        raise ScriptError(f"{path}: on: expected [[on]] tables")
    plain: dict[str, Any] = {
        k: data[k] for k in ("face", "speed", "boot", "name", "start", "steps") if k in data
    }
    plain["idle"] = data.get("idle", DEFAULT.idle)
    if isinstance(plain.get("face"), str) and "/" in plain["face"]:
        plain["face"] = os.path.join(os.path.dirname(os.path.abspath(path)), plain["face"])
    on = [_reaction(item, f"{path}: on[{i}]") for i, item in enumerate(reactions)]
    return Script(path=path, on=on, **plain)


def directives(text: str) -> list[Step] | None:
    """Steps written into a message between %% and %%, as JSON; None when it has none."""
    found = _DIRECTIVE.search(text)
    if not found:
        return None
    try:
        data = json.loads(found[1])
    except ValueError as error:
        raise ScriptError(f"%%...%%: {error}; expected a JSON step or a list of them") from error
    steps = data if isinstance(data, list) else [data]
    _check(steps, "%%...%%")
    return steps


def action_of(step: Step) -> str:
    """Which action a step is; empty when none."""
    return next((key for key in step if key in ACTIONS), "")


def fill(value: Any, slots: Mapping[str, str]) -> Any:
    """Replace {slot} in every text of a value. What is no slot stays; nested steps wait their turn."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda m: slots.get(m[1], m[0]), value)
    if isinstance(value, list):
        return [fill(v, slots) for v in value]
    if isinstance(value, dict):
        return {k: v if k in NESTED else fill(v, slots) for k, v in value.items()}
    return value


def _json_lines(text: str, path: str) -> dict[str, Any]:
    """Steps one a line; a line {"script": {...}} sets the rest."""
    data: dict[str, Any] = {"steps": []}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise ScriptError(f"{path}:{number}: {error}") from error
        if isinstance(item, dict) and isinstance(item.get("script"), dict):
            data |= item["script"]
        else:
            data["steps"].append(item)
    return data


def _toml(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"{path}: {error}") from error


def _reaction(item: Any, where: str) -> Reaction:
    if not isinstance(item, dict):
        raise ScriptError(f"{where}: expected a table")
    _only(item, _ON, where, "")
    _check(item.get("steps", []), f"{where}: steps")
    patterns: dict[str, Any] = {}
    for key in ("kickoff", "message", "resume"):
        if key in item:
            try:
                patterns[key] = re.compile(str(item[key]))
            except re.error as error:
                raise ScriptError(f"{where}: {key}: not a regular expression: {error}") from error
    if not patterns:
        raise ScriptError(f"{where}: expected at least one of kickoff, message, resume")
    return Reaction(item.get("steps", []), times=int(item.get("times", 0)), **patterns)


def _check(steps: Any, where: str) -> None:
    if not isinstance(steps, list):
        raise ScriptError(f"{where}: expected a list of steps")
    for number, step in enumerate(steps):
        here = f"{where}[{number}]"
        name = action_of(step) if isinstance(step, dict) else ""
        if not name:
            given = next(iter(step), "") if isinstance(step, dict) else str(step)
            raise ScriptError(f"{here}: no action in it; {did_you_mean(given, ACTIONS)}")
        _only(step, (name, *ACTIONS[name].options), here, f" of {name}")
        for key in NESTED:
            if key in step:
                _check(step[key], f"{here}: {key}")


def _only(data: Mapping[str, Any], known: tuple[str, ...], where: str, of: str) -> None:
    for key in data:
        if key not in known:
            raise ScriptError(f"{where}: unknown key {key!r}{of}; {did_you_mean(key, known)}")
