"""Which lines of the deciding code do the seeds enter? `python -m tests.sim --entered` prints it.

A function line is one that Python can stop at inside a function; definitions at the top of a file run at
import and prove nothing. Each line is watched until it was entered once, so that long runs stay fast.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEET = os.path.join(ROOT, "fleet")
# What decides, keeps and carries out. `host` is the machine itself, which the simulation replaces.
ROOMS = ("core", "store", "supervisor")
FILES = ("host/ending.py",)
APART = {  # why a file of these rooms is not counted
    "core/verbs_and_states.py": "a table that documents are made from",
    "text.py": "columns for people",
    "store/locks.py": "flock itself: the simulation has its own lock",
    "store/lastgood.py": "the last good declaration of a project, below the home of the user",
    "supervisor/project.py": "puts the real ports together",
    "supervisor/declaration.py": "finds the file of a verb: tests/tmux",
    "supervisor/keepsakes.py": "a removed state directory: tests/tmux",
    "supervisor/launch.py": "the script of a pane, run by sh: tests/tmux",
    "supervisor/notifier_child.py": "starts a process",
    "supervisor/run.py": "the process of the watchdog, which the simulation replaces",
}

Lines = dict[str, set[int]]


def watched() -> tuple[str, ...]:
    """The files that are counted, below `fleet`."""
    found = [
        os.path.relpath(os.path.join(folder, name), FLEET)
        for room in ROOMS
        for folder, _, names in os.walk(os.path.join(FLEET, room))
        for name in names
        if name.endswith(".py") and name != "__init__.py"
    ]
    named = [name for name in FILES if os.path.exists(os.path.join(FLEET, name))]
    return tuple(sorted({*found, *named} - APART.keys()))


class Tracer:
    """Notes each line of the watched files once."""

    def __init__(self) -> None:
        self._paths = {os.path.join(FLEET, name): name for name in watched()}
        self.lines: Lines = defaultdict(set)
        self._left: dict[CodeType, set[int]] = {}  # lines of a function not entered yet

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            ours = code.co_filename in self._paths
            left = self._left[code] = {n for _, _, n in code.co_lines() if n} if ours else set()
        return self._stepped if left else None

    def _stepped(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            code = frame.f_code
            self._left[code].discard(frame.f_lineno)
            self.lines[self._paths[code.co_filename]].add(frame.f_lineno)
        return self._stepped

    @contextmanager
    def on(self) -> Iterator[None]:
        """While this lasts, in every thread that begins meanwhile."""
        import threading

        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]


def entered(seed: int, hours: float, loop: bool) -> Lines:
    """The lines that one seed enters."""
    from tests.sim.simulation import run_seed

    tracer = Tracer()
    with tracer.on():
        run_seed(seed, hours, loop)
    return dict(tracer.lines)


def entered_by_stories(file: str) -> Lines:
    """The lines that the stories of one file enter, without those that take long."""
    import pytest

    tracer = Tracer()
    with tracer.on():
        options = ("-q", "--no-header", "-p", "no:cacheprovider", "-m", "not long")
        failed = pytest.main([*options, os.path.join(ROOT, "tests", "sim", file)])
    assert not failed, f"{file} must pass before it is counted"
    return dict(tracer.lines)


def functions(name: str) -> dict[str, set[int]]:
    """Every function of a file by its full name, with the lines that Python can stop at inside it."""
    path = os.path.join(FLEET, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    starts = set(_starts(ast.parse(text)))
    found: dict[str, set[int]] = {}

    def walk(code: CodeType, prefix: str, *, inside: bool) -> None:
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                continue
            is_function = inside or constant.co_firstlineno in starts
            name = f"{prefix}{constant.co_name}"
            if is_function and (inside or not _is_class(constant)):
                own = {n for _, _, n in constant.co_lines() if n and n != constant.co_firstlineno}
                whose = prefix.rstrip(".") if inside else name
                found.setdefault(whose, set()).update(own)
                walk(constant, f"{whose}.", inside=True)
            else:
                walk(constant, f"{name}.", inside=False)

    walk(compile(text, path, "exec", dont_inherit=True), "", inside=False)
    return {name: lines for name, lines in found.items() if lines}


def _is_class(code: CodeType) -> bool:
    return "__qualname__" in code.co_names and "__module__" in code.co_names


def _starts(tree: ast.AST) -> Iterator[int]:
    """The line at which each function begins, as its code has it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef):
            yield min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


STORIES = ("test_stories.py", "test_rare.py", "test_verbs.py", "test_deputies.py")


def gaps(found: list[Lines]) -> Iterator[str]:
    """Every function that was not entered wholly, with the lines that are missing."""
    seen = _together(found)
    for name in watched():
        for function, lines in functions(name).items():
            if left := sorted(lines - seen[name]):
                yield f"{len(left):3} of {len(lines):3}  fleet/{name}: {function}: {', '.join(map(str, left))}"


def _together(found: list[Lines]) -> Lines:
    seen: Lines = defaultdict(set)
    for lines in found:
        for name, numbers in lines.items():
            seen[name] |= numbers
    return seen


def shares(found: list[Lines]) -> Iterator[str]:
    """The share of each file and of all, and every function that no seed entered."""
    seen = _together(found)
    total = reached = 0
    never: list[str] = []
    for name in watched():
        own = functions(name)
        wanted = set().union(*own.values()) if own else set()
        here = wanted & seen[name]
        total, reached = total + len(wanted), reached + len(here)
        if wanted:
            yield f"{100 * len(here) / len(wanted):5.1f} %  {len(here):4} of {len(wanted):4}  fleet/{name}"
        for function, lines in own.items():
            if not lines & seen[name]:
                never.append(f"never entered: fleet/{name}: {function}")
    yield from never
    yield f"{100 * reached / max(1, total):.1f} % of {total} function lines were entered"
