"""The same screen seen otherwise: with colours, scrolled, under an older life; and forms drawn by hand.

A verdict must not hang on how a capture was made, nor on what an earlier program left above.
"""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path

import pytest

from fleet.backends import corpus, profiles
from fleet.backends.screen_reader import read
from fleet.core.model import Backend

CAPTURES = [capture for cli in corpus.recorded() for capture in corpus.captures(cli)]
NOW = corpus.NOW
FIXTURES = Path(__file__).parents[1] / "fixtures" / "screens"
profile = functools.cache(profiles.load)
LIFELESS = {
    "dead",
    "starting",
    "shell",
    "error",
}  # a start that failed greets nobody: what is above may count
WHOLE = {"command-center", "resume-choice"}  # drawn over the whole screen: nothing is left above


def verdict(capture: corpus.Capture, text: str) -> tuple[object, ...]:
    reading = read(profile(capture.cli), text, now=capture.taken, zone=capture.zone)
    return reading.state, reading.pattern, reading.dialog, reading.until, reading.draft


def coloured(text: str) -> str:
    """As `capture-pane -e` and hyperlinks draw it."""
    link = "\x1b]8;;https://example.com\x1b\\"
    return "\n".join(f"\x1b[0m\x1b[1;38;5;246m{link}{line}\x1b[39m\x1b(B" for line in text.split("\n"))


WAYS = {
    "line ends of another system": lambda text: text.replace("\n", "\r\n"),
    "blank lines below": lambda text: text + "\n" * 20,
    "lines filled with blanks": lambda text: "\n".join(line.ljust(220) for line in text.split("\n")),
    "no last line end": lambda text: text.rstrip("\n"),
    "colours and links": coloured,
}


@pytest.mark.parametrize("way", WAYS)
def test_how_a_screen_was_captured_changes_nothing(way):
    wrong = [f"{c.cli}/{c.name}" for c in CAPTURES if verdict(c, WAYS[way](c.text)) != verdict(c, c.text)]
    assert wrong == []


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini"])
def test_what_an_earlier_life_left_above_changes_nothing(cli):
    """I6: also above a fresh start and above a first dialog."""
    dice = random.Random(cli)
    mine = [c for c in CAPTURES if c.cli == cli]
    others = [c for c in mine if c.dialog != "login"]  # without its last lines it is no dialog any more
    for capture in (c for c in mine if c.state not in LIFELESS and c.dialog not in WHOLE):
        for other in dice.sample(others, min(8, len(others))):
            above = other.text.rstrip("\n").split("\n")[:-8]  # without its composer
            got = verdict(capture, "\n".join([*above, "", capture.text]))
            assert got == verdict(capture, capture.text), (capture.name, "below", other.name)


def folded(text: str, width: int) -> str:
    """As a terminal shows it that has become narrower: lines go on where they end, words or not."""
    return "\n".join(
        line[i : i + width] for line in text.split("\n") for i in range(0, max(len(line), 1), width)
    )


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_folded_by_a_narrower_terminal_a_screen_says_the_same_or_nothing(width):
    """Never idle, limited or asking by guess; windows are drawn anew, so theirs are left out."""
    for capture in (c for c in CAPTURES if c.dialog != "window"):
        want = verdict(capture, capture.text)[0]
        got = verdict(capture, folded(capture.text, width))[0]
        assert got in {want, "unknown"} or (want, got) == ("wedged", "error"), (
            capture.cli,
            capture.name,
            got,
        )


WORDS_LEFT = {"dead", "starting"}  # without its last line a program that ended looks like one that begins


def test_a_screen_whose_last_lines_are_missing_says_the_same_or_nothing():
    """What was cut off may be the composer or the row that tells of work: the rest proves neither."""
    for capture in (c for c in CAPTURES if c.state not in WORDS_LEFT and c.dialog != "unknown"):
        lines = capture.text.rstrip("\n").split("\n")
        want = verdict(capture, capture.text)[0]
        for cut in range(1, min(len(lines) // 2, 12)):
            got = verdict(capture, "\n".join(lines[:-cut]))[0]
            ended = (want, got) == ("idle", "working")  # the line that said so is gone
            assert got in {want, "unknown"} or ended, (capture.cli, capture.name, cut, got)


def test_a_banner_without_a_composer_is_of_a_program_that_is_gone():
    """I7."""
    lines = ["❯ go", "  ⎿  You've hit your session limit · resets 4:25am", "", "and then something else ran"]
    assert read(profile("claude"), "\n".join(lines), now=NOW, zone="UTC").state == "unknown"


COMPOSER = ["", "", "› Ask Codex to do anything", "", "  gpt-6 default · ~/work"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["• Thinking hard (0s • esc to interrupt)"], "working"),
        (["◦ Starting MCP servers (1/3): a, b (1m 02s • esc to interrupt)"], "working"),
        (["Working (1h 02m 03s • esc to interrupt)"], "working"),  # without animations there is no bullet
        (["• Working (3s • esc to inte…"], "working"),
        (["• Working (3s • esc to interrupt) · 1 background terminal running · /ps to view"], "working"),
        (["• Working (3s • esc to interrupt)", "  └ reading", "    the files"], "working"),
        (["• Working (3s • esc to interrupt)", "", "• Queued follow-up inputs", "  ↳ and this"], "working"),
        (
            [
                "• Working (3s • esc to interrupt)",
                "",
                "• Messages to be submitted at end of turn",
                "  ↳ that",
            ],
            "working",
        ),
        (["• Reconnecting... 2/5 (4s • esc to interrupt)", "  └ stream disconnected"], "retrying"),
        (["■ You’ve hit your usage limit for Some Model. Try again at 4:30 AM."], "limited"),
        (["■ You’ve hit your usage limit.", "", "• Queued follow-up inputs", "  ↳ and this"], "limited"),
        (["• The row says Working (3s • esc to interrupt) while it works."], "unknown"),
        (["• It draws this:", "", "  Working (3s • esc to interrupt)"], "unknown"),
        (["• It draws this:", "", "  ■ You’ve hit your usage limit. Try again at 4:30 AM."], "unknown"),
    ],
)
def test_codex_says_what_it_does_in_many_forms(said, expected):
    screen = "\n".join(["› go", "", *said, *COMPOSER])
    reading = read(profile("codex"), screen, now=NOW, zone="UTC")
    assert (reading.state, reading.draft) == (expected, "")


@pytest.mark.parametrize("glyph", ["›", "»", "!"])
def test_codex_marks_its_composer_with_other_glyphs_too(glyph):
    lines = [
        "› go",
        "",
        "• fine",
        "",
        "  Worked for 2s • 01:30",
        "",
        f"{glyph} my own words",
        "",
        "  ? for help",
    ]
    reading = read(profile("codex"), "\n".join(lines), now=NOW, zone="UTC")
    assert (reading.state, reading.draft) == ("idle", "my own words")


@pytest.mark.parametrize(
    ("lines", "dialog"),
    [
        (["> You are in ~/work", "", "› 1. Open restricted", "  2. Quit", "", "  Press enter to continue"],
         "trust"),
        (["  Update available! 1 -> 2", "", "› 1. Update now", "  2. Skip", "", "  Press enter to continue"],
         "update"),
        (
            ["  Question 1/2 (2 unanswered)", "  Which?", "", "  ( ) One", "  ( ) Two", "",
             "  No option selected | ↑/↓ scroll | Enter: submit answer | Esc: interrupt"],
            "question",
        ),
        (
            ["  Question 1/1 (1 unanswered)", "  Why?", "", "  › Type your answer (optional)", "", "",
             "  Enter to submit answer | Esc to interrupt"],
            "question",
        ),
        (
            ["  Question 1/1 (1 unanswered)", "  Which?", "", "  › 1. One", "    2. Two", "",
             "  tab to add notes | enter to submit answer | esc to interrupt"],
            "question",
        ),
        (
            ["  This conversation is open in another app  r to retry", "",
             "   r retry   esc/ctrl+c/q exit   ctrl+t transcript"],
            "in-use",
        ),
        (
            ["Choose working directory to resume this session", "", "› 1. Use session directory (/a)",
             "  2. Use current directory (/b)", "", "  Press enter to continue"],
            "resume-directory",
        ),
        (
            ["▌ The model wants to apply changes", "▌ > 1. Approve  (Y)", "▌   2. Cancel  (N)", "",
             "Press Enter to confirm or Esc to go back"],
            "approval",
        ),
        (
            ["  MCP sign-in required", "", "  › 1. Open sign-in URL", "    2. Back",
             "  Use tab / ↑ ↓ to move, enter to select, esc to close"],
            "unknown",
        ),
        (
            ["  Recovery", "", "  Command   Rationale", "› curl x    Denied: it would send", "",
             "  Press enter to confirm or esc to go back"],
            "unknown",
        ),
    ],
)  # fmt: skip
def test_codex_asks_in_many_forms_and_no_key_is_pressed(lines, dialog):
    """I14."""
    for above in ([], ["› go", "", "• Well.", ""]):
        reading = read(profile("codex"), "\n".join([*above, *lines]), now=NOW, zone="UTC")
        assert (reading.state, reading.dialog, reading.key, reading.draft) == ("asking", dialog, "", None)


# What a program may print on the line that tells a shell: each must be read, not pondered.
LONG = {
    "a word": "x" * 5000,
    "a path": "a/" * 5000,
    "a rule": "-" * 5000,
    "a blob": "QUJD" * 5000 + "=",
    "words": "w " * 5000,
    "blanks": " " * 100_000 + "x",
    "a far corner": "x" * 20 + " " * 5000 + "esc",
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("cli", corpus.recorded())
def test_a_long_line_is_read_in_few_steps(cli, name):
    """An expression that tries every way to cut such a line would never end: this test would not either."""
    assert read(profile(cli), f"before\n{LONG[name]}", now=NOW, zone="UTC").state != "shell"


@pytest.mark.parametrize("name", LONG)
def test_a_long_line_is_read_in_few_steps_by_a_contract_of_four_expressions_too(name):
    plain = Backend("plain", "plain", active_re="esc to interrupt", limit_re="limit reached")
    assert read(plain, f"before\n{LONG[name]}", now=NOW, zone="UTC").state == "idle"


def test_a_shell_is_known_by_its_prompt():
    for prompt in ("$", "user@host:~/proj$", "bash-5.2#", "(venv) user@host ~/a-b %", "[root@box tmp]#"):
        assert read(profile("claude"), f"before\n{prompt} ", now=NOW, zone="UTC").state == "shell"


@pytest.mark.parametrize("gap", [" ", "  ", "   "])
def test_a_draft_is_seen_however_many_blanks_stand_before_it(gap):
    """With words in it, gemini's composer has one blank; with its hint it has three."""
    idle = (FIXTURES / "gemini" / "01-idle.txt").read_text()
    hint = re.search(r"^ \*   Type your message.*$", idle, re.MULTILINE)
    seen = read(profiles.load("gemini"), idle.replace(hint[0], f" *{gap}begin the work"), now=0.0, zone="UTC")
    assert (seen.state, seen.draft) == ("idle", "begin the work")


@pytest.mark.parametrize(
    "typed",
    [
        "1. Yes\n2. No\nPress enter to confirm or esc to cancel",
        "1. Yes\n\nEnter to confirm · Esc to cancel",
        "begin\n\n\n  Worked for 3s\n\nend",
        "begin\n  ↳ later\n  └ a.txt\n  ⎿  Error\n• Ran ls\n● said\n❯ x\n› x\n■ You've hit your usage limit.",
        f"begin\n{'─' * 60}\nend",
    ],
)
@pytest.mark.parametrize(
    ("name", "fixture", "composer"),
    [("claude", "05-idle-fresh", "❯\u00a0"), ("codex", "02-idle-fresh", "› ")],
)
def test_a_draft_may_look_like_anything_a_cli_draws(name, fixture, composer, typed):
    backend, screen = profiles.load(name), (FIXTURES / name / f"{fixture}.txt").read_text()
    before = read(backend, screen, now=0.0, zone="UTC")
    shown = composer + typed.replace("\n", "\n  ")
    changed = re.sub(rf"^{composer[0]}.*$", shown, screen, count=1, flags=re.MULTILINE)
    seen = read(backend, changed, now=0.0, zone="UTC")
    assert (seen.state, seen.dialog) == (before.state, "")
    assert "".join(seen.draft.split()) == "".join(typed.split())


@pytest.mark.parametrize(
    ("name", "fixture", "composer", "runs"),
    [
        ("claude", "05-idle-fresh", r"^❯.*$", "!\u00a0ls"),
        ("codex", "02-idle-fresh", r"^›.*$", "! ls"),
        ("gemini", "01-idle", r"^ \* .*$", " ! ls"),
    ],
)
def test_a_composer_that_runs_what_is_typed_is_known(name, fixture, composer, runs):
    """I8."""
    backend, screen = profiles.load(name), (FIXTURES / name / f"{fixture}.txt").read_text()
    assert not read(backend, screen, now=0.0, zone="UTC").commands
    changed = re.sub(composer, runs, screen, count=1, flags=re.MULTILINE)
    assert changed != screen
    assert read(backend, changed, now=0.0, zone="UTC").commands
