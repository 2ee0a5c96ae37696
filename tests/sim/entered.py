"""Which lines of the deciding code do seeds and stories enter? `python -m tests.sim --entered` prints it.

A function line is one that Python can stop at inside a function; definitions at the top of a file run at
import and prove nothing. Each line is watched until it was entered once, so that long runs stay fast.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter, defaultdict
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
    "text.py": "columns for people",
    "store/lastgood.py": "the last good declaration of a project, below the home of the user",
    "supervisor/world.py": "puts the real ports together",
    "supervisor/declaration.py": "finds the file of a verb: tests/tmux",
    "supervisor/launch.py": "the script of a pane, run by sh: tests/tmux",
    "supervisor/run.py": "the process of the watchdog, which the simulation replaces",
}

# Why a function of a counted file is entered by no seed and no story. A reason whose function is entered,
# or is not there any more, is stale: `--entered` fails with it.
NEVER: dict[str, str] = {
    "store/house.py: Footing.host": "a protocol: its lines run nowhere",
    "store/house.py: Footing.clock": "a protocol: its lines run nowhere",
    "store/house.py: Footing.disk": "a protocol: its lines run nowhere",
    "store/house.py: Footing.locks": "a protocol: its lines run nowhere",
    "store/wishes.py: wants": "read by verbs that show, without a Store: tests/unit",
    "core/words.py: Word.__new__": "runs when the words are defined",
    "core/agent/bringup.py: finished": "what `up` says of a finished task: tests/unit and tests/tmux",
    "core/agent/limits.py: _arm_moved": "no simulated CLI corrects the time of a banner that stands",
    "core/agent/limits.py: _unhint": "no simulated CLI takes back a limit that another one has reported",
    "core/outline.py: cause": "chooses between the file and its record, for a verb: tests/unit",
    "core/outline.py: changed": "as `cause`",
    "core/wording.py: _compiled": "no simulated backend has rules for texts: tests/unit",
    "store/eventlog.py: _stat": "as `read_on`",
    "store/eventlog.py: end_of": "as `read_on`",
    "store/eventlog.py: read_on": "follows a real file, for `events` and for the notifier: tests/unit",
    "supervisor/perform.py: drift_between": "no simulated edit changes how an agent is started: tests/tmux",
    "supervisor/reload.py: Reloader.prime": "only the process of the watchdog primes it: run.py is apart",
}
# What a long storm may reach and a short one does not: neither is a fault.
SELDOM = {
    "core/agent/limits.py: _hold_for": "a mate on the account is limited, and this one is not started yet",
    "core/evidence.py: _heard_since": "an agent quotes a banner as its turn ends; tests/unit has its cases",
    "core/loop/done.py: _titles": "a status file with more than one heading; tests/unit has its tables",
    "core/loop/statement.py: _words": "a status file with more than one heading; tests/unit has its tables",
    "core/loop/done.py: _doubt_in_front": "a status file with front matter; tests/unit has its tables",
    "store/wishes.py: read_view": "as `wants`",
    "store/wishes.py: _object": "as `wants`",
    "core/loop/gates.py: _last_line": "a gate that says more than one line",
    "core/agent/limits.py: _drop": "an agent that is not watched any more at the end of its window",
    "core/agent/limits.py: _sweep": "children that outlive a limited agent until its window ends",
    "core/loop/phases.py: _done_before": "a status file that says done before its phase begins",
    "store/outbox.py: Outbox.text_of": "a message that is longer than a screen",
    "supervisor/loop_children.py: LoopChildren.forget_gate": "as `CancelGate`",
}
SHARE = 90.0  # per cent of the function lines that two seeds of four hours and the stories must enter

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


class First:
    """A plugin: of a story that is told of many things, it keeps the first ones."""

    def __init__(self, most: int) -> None:
        self._most = most

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop the rest."""
        met: Counter[str] = Counter()
        for item in list(items):
            name = item.nodeid.partition("[")[0]
            met[name] += 1
            if met[name] > self._most:
                items.remove(item)


def entered_by_stories(file: str) -> Lines:
    """The lines that the stories of one file enter, without those that take long."""
    import pytest

    tracer = Tracer()
    with tracer.on():
        options = ("-q", "--no-header", "-p", "no:cacheprovider", "-m", "not long")
        failed = pytest.main([*options, os.path.join(ROOT, "tests", "sim", file)], [First(STORIES[file])])
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


# Files of stories, and how many times one is told at most: those of test_rare.py are there for their lines.
STORIES = {"test_rare.py": 99, "test_stories.py": 1, "test_verbs.py": 1, "test_deputies.py": 1}


def gaps(found: list[Lines]) -> Iterator[str]:
    """Every function that was not entered wholly, with the lines that are missing."""
    seen = _together(found)
    for name in watched():
        for function, lines in functions(name).items():
            if left := sorted(lines - seen[name]):
                which = ", ".join(map(str, left))
                yield f"{len(left):3} of {len(lines):3}  fleet/{name}: {function}: {which}"


def _together(found: list[Lines]) -> Lines:
    seen: Lines = defaultdict(set)
    for lines in found:
        for name, numbers in lines.items():
            seen[name] |= numbers
    return seen


def shares(found: list[Lines]) -> Iterator[str]:
    """The share of each file, of each room and of all."""
    seen = _together(found)
    rooms: dict[str, tuple[int, int]] = {}
    for name in watched():
        own = functions(name)
        wanted = set().union(*own.values()) if own else set()
        here = wanted & seen[name]
        if wanted:
            yield _row(len(here), len(wanted), f"fleet/{name}")
            for room in (name.partition("/")[0], "all rooms"):
                reached, total = rooms.get(room, (0, 0))
                rooms[room] = (reached + len(here), total + len(wanted))
    for room, (reached, total) in sorted(rooms.items()):
        yield _row(reached, total, room)


def _row(reached: int, total: int, what: str) -> str:
    return f"{100 * reached / total:5.1f} %  {reached:4} of {total:4}  {what}"


def faults(found: list[Lines]) -> Iterator[str]:
    """What is wrong with the share, and with the reasons for what is missing."""
    seen = _together(found)
    entered_names: set[str] = set()
    reached = total = 0
    for name in watched():
        own = functions(name)
        wanted = set().union(*own.values()) if own else set()
        reached, total = reached + len(wanted & seen[name]), total + len(wanted)
        for function, lines in own.items():
            key = f"{name}: {function}"
            if lines & seen[name]:
                entered_names.add(key)
            elif key not in NEVER and key not in SELDOM:
                yield f"never entered, and no reason in NEVER: {key}"
    yield from (f"stale reason, it is entered: {key}" for key in sorted(NEVER.keys() & entered_names))
    share = 100 * reached / max(1, total)
    if share < SHARE:
        yield f"{share:.1f} % of {total} function lines are entered, and {SHARE:.0f} % are promised"
