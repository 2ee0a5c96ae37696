"""What is typed so that a text arrives as text, what is refused, and what a screen leaves of it."""

from __future__ import annotations

import pytest

from fleet.backends import profiles
from fleet.core.model import TextRule
from fleet.core.wording import canonical, prepared, same

RULES = (
    TextRule("command", r"\A[!/]", "blank-before", "both"),
    TextRule("queued", r"\A\s*/", "when-idle"),
    TextRule("ending", r"\\\Z", "blank-after"),
    TextRule("tab", r"\t", "refuse", "keys", "it changes tabs"),
)


@pytest.mark.parametrize(
    ("text", "way", "given", "idle"),
    [
        ("plain words", "keys", "plain words", False),
        ("!run", "keys", " !run", False),
        ("/go", "keys", " /go", True),
        ("  /go", "keys", "  /go", True),
        ("ends \\", "keys", "ends \\ ", False),
        ("/both \\", "keys", " /both \\ ", True),
        ("two\r\nlines", "keys", "two\nlines", False),
        ("!run", "argument", " !run", False),
        ("ends \\", "argument", "ends \\", False),
        ("a\ttab", "argument", "a\ttab", False),
        ("-x", "argument", "-x", False),
        ("", "keys", "", False),
    ],
)
def test_a_text_gets_what_makes_it_arrive_as_text(text, way, given, idle):
    made = prepared(text, RULES, way)
    assert (made.text, made.idle, made.refused) == (given, idle, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\ttab", "U+0009 (line 1, character 2): it changes tabs"),
        ("one\ntwo\x1b[31m", "U+001B (line 2, character 4): a control character"),
        ("bell\x07", "U+0007"),
        ("lone\rreturn", "U+000D"),
        ("nul\x00", "U+0000"),
        ("del\x7f", "U+007F"),
        ("c1\x9b", "U+009B"),
        ("half\ud83d", "U+D83D"),
    ],
)
def test_what_cannot_arrive_exactly_is_refused_and_the_character_is_named(text, words):
    assert words in prepared(text, RULES).refused


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("text", ["well done 👍🏽", "🧑🏿\u200d🚀", "বাংলা ভাষা", "நா"])
def test_what_leaves_a_piece_of_itself_on_the_screen_is_not_typed(name, text):
    assert "send its name" in prepared(text, profiles.load(name).texts).refused


@pytest.mark.parametrize("way", ["keys", "argument"])
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("/clear", True),  # a blank before it does not keep claude from running it
        (" /compact and go on", True),
        ("\n/my:skill.x with words", True),
        ("/help\u00a0x", True),
        ("/tmp/x.txt is full", False),
        ("// a comment", False),
        ("/ a slash", False),
        ("look at /clear", False),
    ],
)
def test_what_claude_may_have_a_command_for_is_refused_and_a_path_is_not(text, way, refused):
    made = prepared(text, profiles.load("claude").texts, way)
    assert ("put a word before it" in made.refused) is refused


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("plain words", "plain  \n  words"),
        ("e\u0301", "\u00e9"),  # composed or not
        ("हिन्दी नमस्ते", "हिन्दनमस्ते"),  # marks that the terminal lost
        ("👍🏽 tone", "👍 tone"),
        ("👩\u200d👩\u200d👧", "👩👩👧"),
        ("zero\u200bwidth\ufeffbom\u00adsoft\u200frtl", "zerowidthbomsoftrtl"),
        ("heart ❤\ufe0f", "heart ❤"),
        ("ﬁ", "fi"),
        ("nbsp\u00a0x\u3000y", "nbsp x y"),
    ],
)
def test_what_a_screen_shows_is_known_again(typed, shown):
    assert canonical(typed) == canonical(shown)


@pytest.mark.parametrize(
    ("one", "other"), [("rm -rf a", "rm -rf b"), ("हिन्दी", "नमस्ते"), ("👍", "👎"), ("é", "a")]
)
def test_what_differs_is_told_apart(one, other):
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("said", "meant", "equal"),
    [
        ("one two", "one\ntwo ", True),
        ("e\u0301", "\u00e9", True),
        ("zerowidth", "zero\u200bwidth", False),
        ("tone 👍", "tone 👍🏽", False),
    ],
)
def test_what_arrived_altered_is_not_what_was_sent(said, meant, equal):
    assert same(said, meant) is equal


@pytest.mark.parametrize("name", profiles.names())
def test_every_refusal_of_a_shipped_profile_says_why(name):
    rules = profiles.load(name).texts
    assert all(rule.why for rule in rules if rule.treat == "refuse")
    for text in ("naïve café — “quoted” ✅ 你好 ❤️ 👩‍💻 🇩🇪", "two\nlines", "a = b; $(x) `y` | z & 'q'"):
        assert prepared(text, rules) == prepared(text, ())


@pytest.mark.parametrize("name", [n for n in profiles.names() if profiles.load(n).version])
@pytest.mark.parametrize("text", ["!echo x", "  !echo x", "!", "!\nmore"])
def test_no_profile_of_a_real_cli_types_a_shell_command(name, text):
    made = prepared(text, profiles.load(name).texts)
    assert made.refused or made.text.startswith(" ")


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_prompt_on_the_command_line_is_never_a_flag_nor_a_command(name):
    backend = profiles.load(name)
    assert backend.prompt_mark == "--"
    assert prepared("!echo x", backend.texts, "argument").text == " !echo x"
