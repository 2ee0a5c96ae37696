"""Whatever stands in the file, verbs that read it answer in sentences: exit 0, 1 or 2, never a traceback."""

from __future__ import annotations

import copy
import json
import os
import tomllib
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.config.keys import BY_SECTION, SECTIONS
from tests.tmux.inside import verb
from tests.tmux.project import ENGINE

pytestmark = [pytest.mark.tmux, pytest.mark.long]

EXAMPLE = tomllib.loads((ENGINE / "agents.example.toml").read_text())
KEYS = sorted(
    {name for keys in BY_SECTION.values() for name in keys} | {s.rpartition(".")[2] for s in SECTIONS}
)

words = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", ".", "..", "/", "~", "a", "A", "watchdog", "demo", "claude", "default", "loop", "\x1b[2J"]
    ),
)
plain = st.one_of(
    words,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.sampled_from([date(1979, 5, 27), time(7, 32), datetime(1979, 5, 27, tzinfo=UTC)]),
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | words, inner, max_size=3)
    ),
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every spot of a document, the deepest too."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, item in inside for spot in places(item, (*path, key)))]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """The example after careless edits: values of other types, keys lost, renamed, doubled and made up."""
    document = copy.deepcopy(EXAMPLE)
    for _ in range(draw(st.integers(1, 4))):
        *path, key = draw(st.sampled_from(places(document)[1:] or [("agent",)]))
        at: Any = document
        for part in path:
            at = at[part]
        edit = draw(st.sampled_from(["set", "drop", "rename", "add", "double"]))
        if edit == "set" or (edit == "rename" and isinstance(at, list)):
            at[key] = draw(values)
        elif edit == "drop":
            at.pop(key, None) if isinstance(at, dict) else at.pop(key)
        elif edit == "rename":
            at[draw(st.sampled_from(KEYS) | words)] = at.pop(key, 0)
        elif edit == "double" and isinstance(at, list):
            at.append(copy.deepcopy(at[key]))
        elif isinstance(at, dict):
            at[draw(st.sampled_from(KEYS) | words)] = draw(values)
    return document


@pytest.fixture
def nowhere(tmp_path, monkeypatch) -> Path:
    """A place whose tmux sockets are nobody's."""
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "agents.toml"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(document=documents())
def test_a_file_after_careless_edits_is_a_fleet_or_a_list_of_its_faults(nowhere, document):
    nowhere.write_text(tomli_w.dumps(document), encoding="utf-8", errors="replace")
    strict, said = verb(nowhere, "validate")
    assert strict in {0, 2}, said
    code, said = verb(nowhere, "validate", "--json", "--resolved")
    facts = json.loads(said)
    assert (code, facts["valid"], bool(facts["errors"])) == (strict, not strict, bool(strict))
    loose = {verb(nowhere, *words)[0] for words in (("up", "--dry-run"), ("status",), ("status", "--json"))}
    assert loose <= ({0, 1} if strict == 0 else {0, 1, 2})
    assert os.listdir(nowhere.parent) == ["agents.toml"]  # a look leaves nothing behind


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_refused_in_a_sentence(nowhere, data):
    nowhere.write_bytes(data)
    code, said = verb(nowhere, "validate")
    assert code == 2
    assert said.startswith("error: ")
