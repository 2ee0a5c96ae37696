"""The fold pass and the line scanner, held against tomllib on generated documents."""

from __future__ import annotations

import sys
import tomllib

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.config import toml
from fleet.config.problems import ConfigError
from tests.unit.test_config import fixture

BARE = st.text("abcXYZ019_-", min_size=1, max_size=6)
KEYS = BARE | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
SCALARS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
    | st.text("{}[],=.#\"' \n\t\\ab", max_size=12)
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.datetimes()
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


def spread(text: str, draw) -> str:
    """Break lines, and put comments and a last comma, wherever an inline table allows it."""
    out, opened = [], []
    for token in toml.tokens(text):
        if token.kind == "mark" and token.text == "}" and out[-1] != "{" and draw(st.booleans()):
            out.append(",")
        out.append(token.text)
        if token.kind == "mark" and token.text in "[{":
            opened.append(token.text)
        elif token.kind == "mark" and token.text in "]}":
            opened.pop()
        if opened and opened[-1] == "{" and token.text in {"{", ","}:
            out.append(draw(st.sampled_from(["", "\n", " # a } ' \" comment\n", "\n\n  "])))
    return "".join(out)


def inline(value) -> str:
    """A value in one line, tables in braces."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        BARE,
        st.recursive(
            SCALARS, lambda s: st.dictionaries(BARE, s, max_size=4) | st.lists(s, max_size=3), max_leaves=10
        ),
        max_size=4,
    ),
    st.data(),
)  # fmt: skip
def test_folding_gives_the_document_that_was_meant_and_keeps_every_offset(document, data):  # T02
    written = "".join(f"{key} = {inline(value)}\n" for key, value in document.items())
    spreaded = spread(written, data.draw)
    folded, unclosed = toml.fold(spreaded)
    assert unclosed is None
    assert len(folded) == len(spreaded)
    assert tomllib.loads(folded) == tomllib.loads(written)
    assert toml.read(spreaded, "f")[0] == tomllib.loads(written)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(DOCUMENTS)
def test_folding_leaves_a_valid_document_as_it_means(document):
    text = tomli_w.dumps(document)
    assert tomllib.loads(toml.fold(text)[0]) == tomllib.loads(text)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, st.booleans())
def test_the_scanner_sees_the_keys_that_the_parser_sees(document, multiline):
    text = tomli_w.dumps(document, multiline_strings=multiline).replace("\r", "")
    parsed = tomllib.loads(text)
    assert toml.positions(text).keys() == set(toml._paths(parsed))


@settings(max_examples=300, deadline=None)
@given(st.text("[]{}=,.#\"'\\ \nab1", max_size=60))
def test_no_text_breaks_the_passes(text):
    assert len(toml.fold(text)[0]) == len(text)
    assert "".join(token.text for token in toml.tokens(text)) == text
    toml.positions(text)
    try:
        document, _ = toml.read(text, "f")
    except ConfigError:
        return
    assert toml.positions(text).keys() == set(toml._paths(document))


@pytest.mark.parametrize("name", ["small.toml", "contract.toml", "full.toml"])
def test_every_key_of_the_samples_is_found_on_the_line_that_holds_it(name):
    document, text = toml.read(fixture(name), name)
    rows = text.split("\n")
    lines = toml.Lines(text, document)
    for path in toml._paths(document):
        if isinstance(path[-1], str) and path[-1] != "backend":
            assert path[-1] in rows[lines(path) - 1], path


def test_lines_are_found_through_every_spelling_of_a_key():
    text = """\
a."b c".d = 1
[t]
'q' = '''
x = 1
'''
"r\\u0065" = \"\"\"two \\
lines \"\"\"\"
[[list.of]] # [[list.of]]
x = [ # [
  { y = 1 }, [
    2 ] ]
[[list.of]]
[list.of.deep]
z = 1979-05-27 07:32:00
[[list.of.deep.er]]
f = -1.5e-3
"""
    document, _ = toml.read(text, "f")
    lines = toml.Lines(text, document)
    assert [
        lines(path)
        for path in (
            ("a", "b c", "d"), ("t", "q"), ("t", "re"), ("list",), ("list", "of", 0),
            ("list", "of", 0, "x", 0, "y"), ("list", "of", 0, "x", 1, 0), ("list", "of", 1),
            ("list", "of", 1, "deep", "z"), ("list", "of", 1, "deep", "er", 0, "f"),
        )
    ] == [1, 3, 6, 8, 8, 10, 11, 12, 14, 16]  # fmt: skip


def test_a_missing_key_is_placed_at_its_table_and_a_missing_table_at_the_top():
    document, text = toml.read("[a]\nb = 1\n[c]\n", "f")
    lines = toml.Lines(text, document)
    assert lines(("c", "nothing", "here")) == 3
    assert lines(("other",)) == 1
    assert toml.Lines("", {})(("other", "key")) == 1


def test_a_key_of_a_thousand_parts_is_read_like_any_other():
    document, text = toml.read("[a]\nb = 1\n[" + ".".join("c" * 1000) + "]\n", "f")
    assert toml.Lines(text, document)(("a", "b")) == 2


def test_a_key_of_more_parts_is_read_or_refused_in_words():
    """Python's own reader takes any number until 3.13, and a thousand since."""
    text = "[a]\nb = 1\n[" + ".".join("c" * 3000) + "]\n"
    if sys.version_info >= (3, 14):
        with pytest.raises(ConfigError, match="lists, tables or dotted keys are nested too deeply"):
            toml.read(text, "f")
    else:
        document, text = toml.read(text, "f")
        assert toml.Lines(text, document)(("a", "b")) == 2


def test_no_line_is_shown_when_scanner_and_parser_disagree():
    lines = toml.Lines("[a]\nb = 1\n", {"a": {"c": 1}})
    assert lines(("a", "b")) is None
