"""Documents say what the code says: generated ones are compared, written ones may only name what exists."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import tomllib
from functools import cache

import pytest

from fleet import config
from fleet.config.keys import BY_SECTION
from fleet.core.words import Detail, EventType, State
from fleet.verbs.arguments import parser_for
from fleet.verbs.main import verbs
from tests.documents import COMMANDS, ROOT, blocks, pages
from tools import docs
from tools.verbs_and_states import EDGES

NAMED = [str(p.relative_to(ROOT)) for p in pages()]
CALL = re.compile(r"(?<![\w.-])(?:\S*/)?agents\.py ((?:--config \S+ |--json )*)([a-z]+)\b([^\n`|]*)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")
LINK = re.compile(r"\[[^\]]+\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


def test_the_generated_documents_are_what_the_code_says():
    assert docs.stale() == [], "run: python -m tools.docs"


def test_every_word_of_the_code_has_its_sentence():
    for word in (*State, *Detail, *EventType):
        assert word.means, word
        assert "|" not in word.means, f"{word}: it stands in a table"


def test_every_event_is_recorded_by_something_and_its_family_has_a_heading():
    assert docs.written() == {kind.value for kind in EventType}
    assert set(docs.FAMILIES) == {kind.partition(".")[0] for kind in EventType}


def test_the_diagram_shows_every_edge_and_every_state():
    text = docs.states()
    for (was, now), why in EDGES.items():
        assert f"{was} --> {now}: {why}" in text
    assert {s for edge in EDGES for s in edge} == set(State)


@pytest.mark.parametrize("name", NAMED)
def test_every_link_leads_somewhere(name):
    path = ROOT / name
    missing = [t for t in LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / t).exists()]
    assert not missing


@cache
def options_of(verb: str) -> frozenset[str]:
    parser = parser_for(verb, importlib.import_module(f"fleet.verbs.{verb}"))
    return frozenset(_options(parser))


def _options(parser: argparse.ArgumentParser):
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)


@pytest.mark.parametrize("name", NAMED)
def test_every_verb_and_option_that_is_shown_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for before, verb, rest in CALL.findall(text):
        if verb in {"checks", "finds"}:  # prose about the launcher itself
            continue
        assert verb in verbs(), f"agents.py {verb}"
        for option in OPTION.findall(f"{before} {rest.partition('#')[0]}"):
            assert option in options_of(verb), f"agents.py {verb} {option}"


@pytest.mark.parametrize("name", NAMED)
def test_every_block_of_toml_can_be_read_and_names_only_keys_that_exist(name):
    for block in blocks(ROOT / name):
        if block.tag != "toml" or block.body.lstrip().startswith("{"):
            continue
        found = tomllib.loads(block.body)
        for section in set(found) & set(BY_SECTION):
            tables = found[section] if isinstance(found[section], list) else [found[section]]
            if section in {"backend", "price"}:
                tables = list(found[section].values())
            for table in tables:
                assert set(table) <= set(BY_SECTION[section]), block.place


@pytest.mark.parametrize("name", NAMED)
def test_every_block_of_json_can_be_read(name):
    for block in blocks(ROOT / name):
        if block.tag == "json":
            json.loads(block.body)


@pytest.mark.parametrize("name", NAMED)
def test_a_command_that_is_not_run_says_why(name):
    """Those without a reason are run by tests/tmux/test_documents.py."""
    for block in blocks(ROOT / name):
        assert not block.why_not or block.tag in COMMANDS, f"{block.place}: a reason, but no command"


@pytest.mark.parametrize("name", NAMED)
def test_a_block_that_shows_a_command_is_marked_as_one(name):
    """So that it is run, or says why not; a synopsis (with NAME or [options]) is no command."""
    for block in blocks(ROOT / name):
        first = next((line for line in block.body.splitlines() if line.strip()), "")
        typed = re.match(r"(\$ |\./|python3? |engine/|agents\.py |agentlog\.py |git |pip )", first)
        synopsis = re.search(r"\[[-A-Z]|\b[A-Z]{3,}\b", first)
        assert not typed or synopsis or block.why_not or block.tag in COMMANDS, block.place


def test_the_readme_lists_every_verb():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (?:run|look|set up) \| (.*) \|$", text)
    listed = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert listed == {name for name, (_, group) in verbs().items() if group != "inner"}


def test_the_example_is_valid_and_what_it_comments_out_is_a_key_too():
    fleet = config.load(str(ROOT / "agents.example.toml"))
    assert not fleet.warnings
    keys = {key for section in BY_SECTION.values() for key in section}
    text = (ROOT / "agents.example.toml").read_text(encoding="utf-8")
    shown = re.findall(r"(?m)^# (\w+) = ", text)
    assert shown
    assert set(shown) <= keys


# --- the tours ------------------------------------------------------------------------------------------

# A tour follows one thing. What it leaves out is not counted; that of a death names it, with its size.
TOUR_FILES, TOUR_LINES = 9, 450  # what a reader can take in at one sitting
TOUR_KINDS = 8
STEP = re.compile(r"^\d+\. `([\w.]+)`\s+in\s+`(fleet/[\w/.]+)`:", re.MULTILINE)
CODE = re.compile(r"`([\w.]+)`")


@cache
def sizes_in(path: str) -> dict[str, int]:
    """The functions and methods of a file, and how many lines each has; a class has none of its own."""
    found = {}
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node.end_lineno - node.lineno + 1
        if isinstance(node, ast.ClassDef):
            found[node.name] = 0
            methods = (f for f in node.body if isinstance(f, ast.FunctionDef))
            found |= {f"{node.name}.{f.name}": f.end_lineno - f.lineno + 1 for f in methods}
    return found


def tours() -> dict[str, str]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## A tour: ([^\n]+)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))


def test_there_is_a_tour_of_a_death_of_an_edit_and_of_status():
    assert list(tours())[:3] == ["a pane dies", "agents.toml is edited", "`status`"]


@pytest.mark.parametrize("title", list(tours()))
def test_a_tour_is_short_enough_to_be_read_whole(title):
    steps = STEP.findall(tours()[title])
    assert len(steps) == len(re.findall(r"(?m)^\d+\. ", tours()[title])), "a step that names no function"
    for name, path in steps:
        assert sizes_in(path).get(name), f"no function {name} in {path}"
    assert len({path for _, path in steps}) <= TOUR_FILES
    assert sum(sizes_in(path)[name] for name, path in set(steps)) <= TOUR_LINES


@pytest.mark.parametrize("title", list(tours()))
def test_a_tour_passes_no_function_in_silence(title):
    """Each function that a sentence names is a step as well, and is counted."""
    text = tours()[title]
    steps = STEP.findall(text)
    functions = {name for _, path in steps for name, lines in sizes_in(path).items() if lines}
    named = set(CODE.findall(text)) & functions - {"status", "run", "read", "parse"}
    assert named <= {name for name, _ in steps}


def test_everything_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name, path in re.findall(r"`([\w.]+)`\s+in\s+`(fleet/[\w/.]+\.py)`", text):
        there = name in sizes_in(path) or f"\n{name} = " in (ROOT / path).read_text(encoding="utf-8")
        assert there, f"{name} is not in {path}"
    for path in re.findall(r"`((?:fleet|tests|tools)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
    known = {n for p in (ROOT / "fleet").rglob("*.py") for n in sizes_in(str(p.relative_to(ROOT)))}
    for name in re.findall(r"`([A-Z]\w+\.\w+)`", text):
        assert name in known, name
    for name in re.findall(r"`([a-z]+\.[a-z_]+)`", text):
        assert name in set(EventType) | {"fleet.verbs"} or name.endswith((".py", ".toml")), name


def test_the_kinds_between_the_kernel_and_the_record_are_few_and_named():
    told = re.search(r"The kinds that the death passes.*?\n\n", tours()["a pane dies"] + "\n", re.DOTALL)[0]
    death, rest = told.split("The restart")
    known = {n for p in (ROOT / "fleet").rglob("*.py") for n in sizes_in(str(p.relative_to(ROOT)))}
    assert set(CODE.findall(told)) <= known
    assert len(CODE.findall(death)) + 2 <= TOUR_KINDS  # the key and the record have no type of their own
    answer = rest.partition(". ")[0]
    assert f"adds {['no', 'one', 'two', 'three', 'four'][len(CODE.findall(answer))]}" in answer
