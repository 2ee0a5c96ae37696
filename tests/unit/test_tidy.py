"""What nothing uses is not there, and one name means one thing: read off the code, without running it."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from fleet.config.keys import BY_SECTION

ROOT = Path(__file__).parents[2]
TREES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "fleet").rglob("*.py"))
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Called by a library, by the beginning of their names and where they stand.
HOOKS = {"on_": "fleet/extras/top/", "action_": "fleet/extras/top/", "render_line": "fleet/extras/top/"}

# Read by people and by tests: which capture proves a pattern, and of which release it is; a column of the
# table of verbs and states; a field of the rows, which are written whole into view.json and read there.
PROOF = {"fixture", "version", "tallies", "restarts"}


def names_read(tree: ast.AST) -> Counter[str]:
    """Every name that is read, as a variable or behind a dot."""
    return Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


READ = sum((names_read(tree) for tree in TREES.values()), Counter())


def entry_points() -> set[str]:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    return {script.partition(":")[2] for script in scripts.values()}


def is_hook(path: str, name: str) -> bool:
    return any(name.startswith(lead) and path.startswith(room) for lead, room in HOOKS.items())


def test_every_function_is_called_by_something():
    entries = entry_points()
    idle = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        and not (node.name.startswith("__") and node.name.endswith("__"))
        and READ[node.name] == names_read(node)[node.name]  # nobody but itself
        and node.name not in entries
        and not is_hook(path, node.name)
    ]
    assert not idle


def records() -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes that only hold values."""
    for path, tree in TREES.items():
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
        if isinstance(field, ast.AnnAssign) and not READ[field.target.id] and field.target.id not in PROOF
    ]
    assert not unread


def test_every_key_of_the_config_is_read_by_something():
    """By the code behind the reader; a key that the reader itself uses up is looked up there by its name."""
    behind = sum((names_read(t) for path, t in TREES.items() if "/config/" not in path), Counter())
    looked_up = {
        node.slice.value
        for path, tree in TREES.items()
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
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp | ast.FormattedValue)
        and any(isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node)
    ]
    assert not found


def test_a_type_has_a_name_of_its_own():
    homes = defaultdict(set)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(path)
    assert not {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}
