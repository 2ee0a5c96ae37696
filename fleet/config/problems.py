"""What is wrong with a config, said so that it can be fixed without reading anything else.

A reader collects every problem before it gives up: fixing a file one error at a time is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fleet.core.decision import Fault
from fleet.core.outline import Cause

KeyPath = tuple[str | int, ...]


class Problem(NamedTuple):
    """One fault: where it is, what was expected, what to do."""

    path: str
    line: int | None
    key: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        parts = (place, self.key, self.text) if self.key else (place, self.text)
        line = ": ".join(parts) + (f" ({self.hint})" if self.hint else "")
        return line.replace("\n", "\\n")  # one problem, one line, whatever is quoted in it


class ConfigError(Fault):
    """The file cannot be used. Carries all that is wrong with it, not only the first fault."""

    code = 2

    def __init__(self, problems: Iterable[Problem], cause: Cause = Cause.BROKEN) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.cause = cause
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Everything that is wrong with the file, at once."""
        return [str(problem) for problem in self.problems]


class Finding(NamedTuple):
    """A problem that does not know its line yet: lines are looked up only when there is something to say."""

    where: KeyPath
    text: str
    hint: str = ""


class Findings:
    """Collects findings while a file is read. A key is faulted once: what else it breaks is no news."""

    def __init__(self) -> None:
        self.errors: list[Finding] = []
        self.warnings: list[Finding] = []
        self._faulted: set[KeyPath] = set()

    def error(self, where: KeyPath, text: str, hint: str = "") -> None:
        if where not in self._faulted:
            self._faulted.add(where)
            self.errors.append(Finding(where, text, hint))

    def warn(self, where: KeyPath, text: str, hint: str = "") -> None:
        self.warnings.append(Finding(where, text, hint))


def placed(findings: Iterable[Finding], path: str, line_of: Callable[[KeyPath], int | None]) -> list[Problem]:
    """Findings with file and line, in the order of the file."""
    problems = [Problem(path, line_of(f.where), spell(f.where), f.text, f.hint) for f in findings]
    return sorted(problems, key=lambda problem: problem.line or 0)


def spell(where: KeyPath) -> str:
    """A key as people write it: agent[1].wake.interval."""
    out = ""
    for part in where:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            word = part if part and part.replace("-", "").replace("_", "").isalnum() else f'"{part}"'
            out += f".{word}" if out else word
    return out
