"""What nothing uses is not there, and one name means one thing: read off the code, without running it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from fleet.config.keys import BY_SECTION

ROOT = Path(__file__).parents[2]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Called by a library, or put into a table by a decorator: how their names begin, and where they stand.
HOOKS = {
    "on_": "fleet/extras/top/",
    "action_": "fleet/extras/top/",
    "render_line": "fleet/extras/top/",
    "do_": "fleet/scripted_agent/actions.py",
    "_fill_text": "fleet/verbs/arguments.py",  # by argparse
}

# Read by people and by tests: which capture proves a pattern, and of which release it is; a field of the
# rows, which are written whole into view.json and read there.
PROOF = {"fixture", "version", "restarts"}


def names_read(tree: ast.AST) -> Counter[str]:
    """Every name that is read, as a variable or behind a dot."""
    return Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the product; parsed by the worker that needs it, not by all that collect this file."""
    paths = sorted((ROOT / "fleet").rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def read_anywhere() -> Counter[str]:
    found: Counter[str] = Counter()
    for tree in trees().values():
        found.update(names_read(tree))
    return found


def entry_points() -> set[str]:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    return {script.partition(":")[2] for script in scripts.values()}


def is_hook(path: str, name: str) -> bool:
    return any(name.startswith(lead) and path.startswith(room) for lead, room in HOOKS.items())


def test_every_function_is_called_by_something():
    entries = entry_points()
    idle = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        and not (node.name.startswith("__") and node.name.endswith("__"))
        and read_anywhere()[node.name] == names_read(node)[node.name]  # nobody but itself
        and node.name not in entries
        and not is_hook(path, node.name)
    ]
    assert not idle


def records() -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes that only hold values."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                marks = (ast.unparse(mark).partition("(")[0] for mark in (*node.bases, *node.decorator_list))
                if {"dataclass", "NamedTuple"} & set(marks):
                    yield path, node


def test_every_field_is_read_by_something():
    unread = [
        f"{path}:{field.lineno} {node.name}.{field.target.id}"
        for path, node in records()
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and not read_anywhere()[field.target.id]
        and field.target.id not in PROOF
    ]
    assert not unread


def test_every_key_of_the_config_is_read_by_something():
    """By the code behind the reader; a key that the reader itself uses up is looked up there by its name."""
    behind = sum((names_read(t) for path, t in trees().items() if "/config/" not in path), Counter())
    looked_up = {
        node.slice.value
        for path, tree in trees().items()
        if path in {"fleet/config/build.py", "fleet/config/loop_table.py"}
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    }
    unread = [
        f"{section}.{name}"
        for section, keys in BY_SECTION.items()
        for name in keys
        if not behind[name] and name not in looked_up | PROOF
    ]
    assert not unread


def test_a_choice_stands_alone():
    """No choice inside of another one, and none in the middle of a text."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp | ast.FormattedValue)
        and any(isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node)
    ]
    assert not found


def test_a_type_has_a_name_of_its_own():
    homes = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(path)
    assert not {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}


# --- rooms ----------------------------------------------------------------------------------------------


def modules_imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "fleet":
            yield from (f"fleet.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_room_needs_itself_through_another():
    """What each room imports, for annotations too, has an order."""
    below = defaultdict(set)
    for path, tree in trees().items():
        room = path.split("/")[1].removesuffix(".py")
        for module in modules_imported(tree):
            if module.startswith("fleet.") and (other := module.split(".")[1]) != room:
                below[room].add(other)
    below.pop("__init__", None)
    try:
        tuple(TopologicalSorter(below).static_order())
    except CycleError as fault:
        pytest.fail(f"a cycle of rooms: {' -> '.join(fault.args[1])}")


# Imports inside functions. A library or an extra is optional and needs no word here.
LATE = {
    "fleet/backends/opencode/usage.py": "sqlite3: a Python may be built without it",
    "fleet/backends/profiles.py": "agentlog looks for folders only, and needs no model",
    "fleet/host/http.py": "`down` loads this file, http.client is slow to load, few fleets have a server",
    "fleet/scripted_agent/outside.py": "a hundred scripted agents start at once, and few run a program",
    "fleet/__main__.py": "inside of the try: Ctrl-C while loading is no traceback",
    "fleet/supervisor/operator.py": "only `up` of a loop without a watchdog counts tokens",
    "fleet/text.py": "every verb loads this file, and only a misspelt word needs difflib",
    "fleet/tokens/agentlog.py": "`render` and `usage` need no config and no prices, which double their start",
    "fleet/tokens/price.py": "asks for the version of an optional library",
    "fleet/verbs/fleets.py": "a verb that shows something needs no operator",
    "fleet/verbs/last_view.py": "`status` of a watched fleet needs no supervisor",
    "fleet/verbs/main.py": "most verbs need no library, and most calls end without a bug",
    "fleet/verbs/status.py": "the file is not parsed while a watchdog runs; metrics read all profiles",
}


def test_an_import_inside_a_function_is_of_something_optional_or_says_why():
    found = set()
    for path, tree in trees().items():
        inside = {n for f in ast.walk(tree) if isinstance(f, FUNCTIONS) for n in ast.walk(f)}
        late = (m for n in inside if isinstance(n, ast.Import | ast.ImportFrom) for m in modules_imported(n))
        for module in late:
            first = module.split(".")[0]
            library = first != "fleet" and first not in sys.stdlib_module_names
            if not library and not module.startswith("fleet.extras."):
                found.add(path)
    assert found == set(LATE)


# --- length of thought ----------------------------------------------------------------------------------

COMPLEX = 12
# Functions of core and supervisor with more branches than that, and why they are left whole.
GUARDS = "a flat list of guards: each returns"
LONG = {
    "core/agent/asking.py asking": GUARDS,
    "core/agent/heal.py fatal": GUARDS,
    "core/agent/stall.py stall": GUARDS,
    "core/agent/turnover.py turnover": GUARDS,
    "core/agent/typing.py _not_now": GUARDS,
    "core/agent/receipts.py _submit": GUARDS,
    "core/agent/wish.py intent": GUARDS,
    "core/loop/statement.py read_statement": GUARDS,
    "core/remember.py _note_end": GUARDS,
    "supervisor/eye.py still": GUARDS,
    "supervisor/eye.py survivors": GUARDS,
    "supervisor/launch.py preflight": GUARDS,
    "supervisor/operator.py _phase": GUARDS,
    "supervisor/reload.py refresh": GUARDS,
    "supervisor/run.py _once": GUARDS,
}


def branches(function: ast.AST) -> int:
    """One, and one for each way in which it may go on differently."""
    kinds = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension)
    nodes = list(ast.walk(function))
    both = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + sum(isinstance(node, kinds) for node in nodes) + both


def test_a_function_of_core_and_supervisor_is_simple_or_says_why_not():
    found = {
        f"{path.removeprefix('fleet/')} {node.name}"
        for path, tree in trees().items()
        if path.startswith(("fleet/core/", "fleet/supervisor/"))
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and branches(node) > COMPLEX
    }
    assert found - LONG.keys() == set(), "too many branches"
    assert LONG.keys() - found == set(), "simple by now: take it off the list"
