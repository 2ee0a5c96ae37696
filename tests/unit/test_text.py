"""Text that crosses a border is clean, and cleaning twice is cleaning once (SEC-10, SEC-15, I10, I45)."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.text import (
    MARK,
    Redactor,
    closest,
    for_display,
    plural,
    redact,
    render,
    secret_values,
    width,
    wrapped,
)  # fmt: skip

ANY = st.text(st.characters(), max_size=300)
NASTY = st.text(
    st.sampled_from("\x1b[]m\x9b\x07\\0;31 a/!#@\n\r\t\x00\u200b\u202e\u2028\xa0e\u0301\ud800\x7f"),
    max_size=80,
)


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("stats", ["status", "start"], "status"),
        ("STATUS", ["status"], "status"),
        ("runing", ["RUNNING", "DEAD"], "RUNNING"),
        ("xyzzy", ["status", "start"], ""),
        ("", ["status"], ""),
        ("a", [], ""),
    ],
)
def test_the_word_that_was_probably_meant(word, known, meant):
    assert closest(word, known) == meant


@pytest.mark.parametrize(
    ("text", "cells"), [("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("日本", 4), ("\uff21", 2), ("a日", 3)]
)
def test_how_wide_a_text_is(text, cells):
    assert width(text) == cells


@given(ANY | NASTY)
def test_displayed_text_has_no_control_but_line_breaks(text):
    shown = for_display(text)
    assert shown.replace("\n", "").isprintable()
    assert for_display(shown) == shown
    assert shown.count("\n") <= text.count("\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;ZGF0YQ==\x1b\\after", "after"),
        ("a\r\nb", "a\nb"),
        ("a\tb", "a       b"),
        ("\x9b1mx", "x"),
        ("日本\u202e語", "日本語"),
    ],
)
def test_displayed_text_example(text, shown):
    assert for_display(text) == shown


SHAPED = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrSt",
    "sk-proj-AbCdEfGhIjKlMnOpQrSt1234",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0123456789_abcdef",
    "glpat-abcdefghijklmnopqrst",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-1234567890-abcdefghijkl",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123_-",
]


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("around", ["{}", "key={} end", '"{}"', "a\n{}\nb", "url?token={}&x=1"])
def test_what_looks_like_a_secret_goes(secret, around):
    assert secret not in redact(around.format(secret))
    assert MARK in redact(around.format(secret))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def", f"Authorization: {MARK}"),
        ('{"authorization": "Basic dTpw", "x": 1}', f'{{"authorization": "{MARK}", "x": 1}}'),
        ("git clone https://me:pw@host/r.git", f"git clone https://{MARK}@host/r.git"),
        ("x-api-key: 0123456789", f"x-api-key: {MARK}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\nrest", f"{MARK}\nrest"),
        ("k=-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY----- rest", f"k={MARK} rest"),
        (
            "see https://host/path and mail a@b.c, task-force sk-1",
            "see https://host/path and mail a@b.c, task-force sk-1",
        ),
        (
            "commit 3f2a9c1d4e5b6a7f8091a2b3c4d5e6f708192a3b",
            "commit 3f2a9c1d4e5b6a7f8091a2b3c4d5e6f708192a3b",
        ),
    ],
)
def test_redaction_example(text, clean):
    assert redact(text) == clean


VALUES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Zs"]), min_size=8, max_size=40
)


@given(VALUES, st.text(max_size=5), st.binary(max_size=5))
def test_a_known_secret_goes_in_every_encoding(secret, around, lead):
    """I40."""
    forms = [
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    ]
    for form in forms:
        assert form in MARK or form not in redact(f"x {form} {around}", [secret])
    inner = base64.b64encode(lead + b":" + secret.encode() + b":z").decode()
    assert base64.b64encode(secret.encode()).decode()[4:-8] in {"", MARK} or inner not in redact(
        inner, [secret]
    )


KEY = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MIIE"]
WORDS = [
    "Authorization: ",
    "Bearer ",
    "https://",
    "u:p@",
    "host ",
    "\n",
    " ",
    "[",
    "]",
    "x" * 30,
    "@",
    ":",
    "é",
]
PIECES = st.lists(
    st.sampled_from([*SHAPED[:4], *KEY, *WORDS, MARK, "hunter2hunter2", "hunter2"]), max_size=14
)


@given(PIECES, st.lists(st.integers(0, 300), max_size=6))
def test_where_a_stream_is_cut_makes_no_difference(pieces, cuts):
    """I45."""
    text = "".join(pieces)
    redactor = Redactor(["hunter2hunter2"])
    edges = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    parts = [redactor.feed(text[a:b]) for a, b in pairwise(edges)]
    assert "".join(parts) + redactor.close() == redact(text, ["hunter2hunter2"])


@given(PIECES | ANY.map(lambda t: [t]))
def test_redacting_twice_is_redacting_once(pieces):
    """I45."""
    once = redact("".join(pieces), ["hunter2hunter2", "redacted", "[redacted]x"])
    assert redact(once, ["hunter2hunter2", "redacted", "[redacted]x"]) == once
    assert "hunter2hunter2" not in once


@pytest.mark.parametrize(("shift", "size"), [(0, 1), (1, 45_536), (3, 999), (4, 70_000), (64, 300_000)])
def test_a_line_too_long_to_hold_is_cut_at_the_same_places_however_it_arrives(shift, size):
    text = "w" * shift + " word" * 40_000 + " sk-ant-api03-AbCdEfGhIjKlMnOpQrSt"
    redactor = Redactor()
    step = max(size, 997)
    parts = [redactor.feed(text[a : a + step]) for a in range(0, len(text), step)]
    assert "".join(parts) + redactor.close() == redact(text)
    assert redact(text).endswith(f" {MARK}")


def test_a_private_key_that_never_ends_swallows_only_so_much():
    text = "-----BEGIN PRIVATE KEY-----\n" + "line\n" * 1000
    assert redact(text).count("line") == 801


def test_variables_named_like_secrets_are_found():
    environ = {
        "ANTHROPIC_API_KEY": "a" * 20,
        "GH_TOKEN": "b" * 20,
        "DB_PASSWORD": "c" * 8,
        "SHORT_TOKEN": "tiny",
        "HOME": "/home/somebody",
        "KEYBOARD_LAYOUT": "d" * 20,
        "TOKENIZERS_PARALLELISM": "e" * 20,
    }
    assert secret_values(environ) == ("a" * 20, "b" * 20, "c" * 8)


@pytest.mark.parametrize(("number", "said"), [(0, "0 deaths"), (1, "1 death"), (2, "2 deaths")])
def test_a_number_has_the_noun_that_goes_with_it(number, said):
    assert plural(number, "death") == said


def test_a_sentence_is_wrapped_between_words_and_hangs_below_its_lead():
    text = "watchdog: not running, no agent is restarted: run `agents.py ensure` or `up`"
    lines = list(wrapped(text, 40, "! ", "  "))
    assert lines == [
        "! watchdog: not running, no agent is",
        "  restarted: run `agents.py ensure` or",
        "  `up`",
    ]
    assert list(wrapped("short", 40, "    ")) == ["    short"]
    assert list(wrapped(f"see {'x' * 50} there", 40)) == ["see", "x" * 50, "there"], "a path stays whole"
    assert list(wrapped("日本 日本 日本", 9)) == ["日本 日本", "日本"]


WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=30), min_size=1, max_size=30)


@given(WORDS, st.integers(40, 120))
def test_wrapping_loses_and_breaks_no_word(words, room):
    lines = list(wrapped(" ".join(words), room, "! ", "  "))
    assert " ".join(line[2:] for line in lines).split() == words
    assert all(width(line) <= room for line in lines)


STATUS = ("NAME", "KIND", "BACKEND", "MODEL", "WATCH", "STATE", "DETAIL", "PHASE", "REASON")
SPARE = ("WATCH", "KIND", "BACKEND", "MODEL", "PHASE")


def test_on_a_narrow_terminal_the_least_important_columns_go_and_no_line_is_wider():
    row = ("builder", "persistent", "claude", "opus", "heal+stall", "RUNNING", "WORKING", "design", "x" * 60)
    heads = {n: next(iter(render(STATUS, [row], limit=n, spare=SPARE))).split() for n in (200, 80, 60)}
    assert heads[200] == list(STATUS), "nothing goes while there is room"
    assert heads[80] == ["NAME", "BACKEND", "MODEL", "STATE", "DETAIL", "PHASE", "REASON"]
    assert heads[60] == ["NAME", "STATE", "DETAIL", "PHASE", "REASON"]


@given(st.lists(st.text("abc", max_size=50), min_size=9, max_size=9), st.integers(40, 200))
def test_no_table_is_wider_than_its_terminal(row, limit):
    assert all(width(line) <= limit for line in render(STATUS, [row], limit=limit, spare=SPARE))
