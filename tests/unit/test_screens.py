"""Screens are read right: every recorded one, and no banner where it means nothing."""

from __future__ import annotations

import dataclasses
import functools
import random
import time
import tomllib
from pathlib import Path

import pytest

from fleet.backends import corpus, profiles
from fleet.backends.corpus import drawers, embeddings
from fleet.backends.screen_reader import ending, last_words, read
from fleet.core.model import Backend, Dialog, Pattern
from fleet.core.seen import ScreenState

CORPUS = Path(corpus.CORPUS)
CLIS = corpus.recorded()
CAPTURES = [capture for cli in CLIS for capture in corpus.captures(cli)]
NOW = corpus.NOW
profile = functools.cache(profiles.load)
QUICK, SLOW = 1_000, 10_000


def capture(cli: str, name: str) -> str:
    return (CORPUS / cli / f"{name}.txt").read_text()


def state(cli: str, text: str) -> ScreenState:
    return read(profile(cli), text, now=NOW, zone="UTC").state


@pytest.mark.parametrize("one", CAPTURES, ids=[f"{c.cli}/{c.name}" for c in CAPTURES])
def test_a_recorded_screen_is_read_as_it_was_labelled_by_eye(one):
    """T66-T80: state, open dialog, announced instant and draft."""
    result = corpus.check(profile(one.cli), one)
    assert result.got == result.expected


@pytest.mark.parametrize("cli", CLIS)
def test_every_capture_has_a_label_and_every_label_a_capture(cli):
    labels = set(tomllib.loads((CORPUS / cli / "captures.toml").read_text()))
    assert labels == {path.stem for path in (CORPUS / cli).glob("*.txt")}


def fuzz(cli: str, count: int, seed: int) -> list[str]:
    backend = profile(cli)
    texts = corpus.banners(backend, [c for c in CAPTURES if c.cli == cli])
    return [
        f"{name}\n{screen}"
        for name, screen in embeddings(cli, texts, count, seed)
        if read(backend, screen, now=NOW, zone="UTC").state in corpus.NEVER
    ]


@pytest.mark.parametrize("cli", drawers())
def test_a_banner_in_words_output_turns_drafts_or_scrollback_never_limits_or_wedges(cli):
    """I6, quick: every width, wide glyphs, wrapped."""
    assert fuzz(cli, QUICK, seed=20261116) == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("cli", drawers())
def test_ten_thousand_embedded_banners_never_limit_or_wedge(cli):
    """I6."""
    assert fuzz(cli, SLOW, seed=random.randrange(1 << 30)) == []


@pytest.mark.parametrize("cli", CLIS)
def test_random_text_is_never_limited_wedged_or_dead(cli):
    """I7."""
    dice = random.Random(7)
    alphabet = "abc limit resets 3pm ❯›●•■⎿│┃─╹▀✻…()·0123456789\n\n\n\t"
    backend = profile(cli)
    for _ in range(300):
        screen = "".join(dice.choice(alphabet) for _ in range(dice.randrange(2000)))
        reading = read(backend, screen, now=NOW, zone="UTC")
        assert reading.state not in {*corpus.NEVER, ScreenState.DEAD}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("You've hit your limit · resets 3pm (Europe/Berlin)", "limited"),
        ("You've hit your usage limit · resets 3pm", "limited"),
        ("You've hit your Sonnet limit · resets Nov 19, 1:15pm (Europe/Berlin)", "limited"),
        ("You've hit your Fable 5 limit · resets 3pm", "limited"),
        ("You've hit your org's monthly spend limit", "limited"),
        ("You've hit your monthly spend limit", "limited"),
        ("You've reached your weekly limit · resets 3pm", "limited"),
        ("You’ve hit your session limit · resets 3pm", "limited"),
        ("You're out of usage credits · resets 3pm", "limited"),
        ("You're out of extra usage", "limited"),
        ("Your org is out of usage · contact your admin", "limited"),
        ("5-hour limit reached ∙ resets 3pm", "limited"),
        ("Claude usage limit reached. Your limit will reset at 3pm (America/New_York).", "limited"),
        ("Claude AI usage limit reached|1794830400", "limited"),
        ("Invalid API key · Please run /login", "auth"),
        ("OAuth token has expired · Please run /login", "auth"),
        ("Context limit reached · /compact or /clear to continue", "context"),
        ("API Error: Server is temporarily limiting requests (not your usage limit) · later", "error"),
        ("API Error: Request rejected (429) · per-minute rate limit", "error"),
        ("API Error (Connection error.) · Retrying in 5 seconds… (attempt 3/10)", "retrying"),
        ("You've hit your fast limit · resets in 20m", "idle"),
        ("spend limit reached · resets Dec 1 · request an increase", "limited"),
        ("Credit balance too low · Add funds: https://example.com", "error"),
        ("You're close to your session limit", "idle"),
        ("Approaching weekly limit · resets 3pm", "idle"),
        ("You're now using usage credits · Your session limit resets 3pm", "idle"),
        ("You've used 91% of your session limit · resets 3pm", "idle"),
        ("Fast limit reached and temporarily disabled · resets in 45m", "idle"),
        ("Set model to opus", "idle"),
    ],
)
def test_claude_says_many_things_under_a_turn_and_each_is_told_apart(words, expected):
    screen = capture("claude", "31-limit-after-dialog").replace(
        "You've hit your session limit · resets 4:25am (Europe/Berlin)", words
    )
    assert words in screen
    assert state("claude", screen) == expected


def test_a_limit_without_a_time_is_a_limit_without_an_instant():
    """T72: a spend limit has no reset."""
    screen = capture("claude", "31-limit-after-dialog").replace(
        "You've hit your session limit · resets 4:25am (Europe/Berlin)", "You've hit your monthly spend limit"
    )
    reading = read(profile("claude"), screen, now=NOW, zone="UTC")
    assert (reading.state, reading.until) == ("limited", None)


def test_a_newer_answer_takes_a_limit_back():
    """I6: older than newer output of the agent."""
    screen = capture("claude", "31-limit-after-dialog")
    answered = screen.replace("\n✻ Brewed for 0s", "\n● Here we go again.\n\n✻ Brewed for 0s")
    assert answered != screen
    assert state("claude", screen) == "limited"
    assert state("claude", answered) == "idle"


def test_nothing_final_counts_while_it_works():
    """T68: a limit that it has got over, or that it is told about while it goes on."""
    screen = capture("claude", "31-limit-after-dialog")
    assert state("claude", screen.replace("✻ Brewed for 0s", "✻ Brewing… (3s · ↓ 9 tokens)")) == "working"
    footer = capture("claude", "c325-limit-continues-by-itself")
    assert (
        state("claude", footer.replace("(shift+tab to cycle)", "(shift+tab to cycle) · esc to interrupt"))
        == "working"
    )


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_turn_that_ended_quietly_looks_the_same_with_or_without_old_trouble_above(cli):
    limited = capture(cli, {"claude": "31-limit-after-dialog", "codex": "r166-limit"}[cli])
    turn, summary = {
        "claude": ("❯ next\n\n● fine\n", "✻ Baked for 1s"),
        "codex": ("› next\n\n• fine\n", "  Worked for 1s"),
    }[cli]
    lines = limited.rstrip("\n").split("\n")
    below = next(i for i in range(len(lines) - 1, 0, -1) if lines[i].startswith(("❯", "› Ask")))
    above = below - 1 if cli == "claude" else below
    later = [*lines[:above], *turn.split("\n"), summary, "", *lines[above:]]
    assert state(cli, limited) == "limited"
    assert state(cli, "\n".join(later)) == "idle"


def test_codex_streaming_is_unknown_because_the_screen_does_not_show_it():
    """Never a guess: no sign of work, no sign of an end."""
    finished = capture("codex", "04-finished")
    assert state("codex", finished) == "idle"
    assert state("codex", finished.replace("  Worked for 6s • 01:30", "")) == "unknown"


def test_an_unmatched_screen_of_a_profile_with_patterns_is_unknown():
    """I7."""
    assert state("claude", "some program printed this\nand nothing else\n") == "unknown"


@pytest.mark.parametrize("prompt", ["user@host:~/work$ ", "root@box:/# ", "bash-5.2$ ", "$ ", "% "])
def test_a_bare_shell_prompt_is_a_shell_even_below_what_the_agent_left_behind(prompt):
    screen = capture("claude", "05-idle-fresh").rstrip("\n") + f"\n{prompt}\n"
    assert state("claude", screen) == "shell"


@pytest.mark.parametrize(
    ("backend", "words", "fix"),
    [
        ("demo", "sh: 1: mine: not found", "PATH"),
        ("demo", "error: unknown option '--x'", "flags"),
        ("codex", "Unknown model: gpt-9", "model"),
        ("opencode", "error: not logged in", "log in"),
        ("claude", "--x cannot be used with root/sudo privileges", "IS_SANDBOX"),
        ("demo", "--x cannot be used with root/sudo privileges", ""),
        ("claude", "Invalid key · Please run /login", "log in"),
        ("demo", "Please run /login", ""),
        ("claude", "No conversation found with session ID: x", ""),
        ("claude", "Traceback ...", ""),
    ],
)
def test_the_last_words_of_a_program_say_what_a_person_must_do(backend, words, fix):
    """What any program may say is known of all; what one CLI says stands in its profile."""
    said = ending(profile(backend), f"starting\n{words}\nPane is dead (status 1, now)")
    assert (said is not None) == bool(fix)
    assert said is None or (fix in said.fix and said.line == words)


def test_a_dead_pane_tells_its_last_words():
    reading = read(profile("claude"), capture("claude", "43-resume-unknown-id"), now=NOW, zone="UTC")
    assert (reading.state, reading.pattern) == ("dead", "resume-unknown")
    assert reading.line.startswith("No conversation found")


def test_a_dialog_offers_its_one_key_or_none():
    """I14: the default of a dialog is never taken."""
    claude = profile("claude")
    menu = read(claude, capture("claude", "30-limit-five-hour"), now=NOW, zone="UTC")
    bypass = read(claude, capture("claude", "04-bypass-dialog"), now=NOW, zone="UTC")
    assert (menu.dialog, menu.key) == ("limit-menu", "Escape")
    assert (bypass.dialog, bypass.key) == ("bypass", "")
    assert bypass.fix


@pytest.mark.parametrize("cli", CLIS)
def test_no_dialog_is_answered_with_enter(cli):
    """I14."""
    assert all(dialog.key in {"", "Escape"} for dialog in profile(cli).dialogs)


def test_an_unknown_dialog_is_still_a_question():
    screen = capture("claude", "17-permission-prompt").replace("Do you want to proceed?", "Shall we?")
    screen = screen.replace("This command requires approval", "Hm")
    reading = read(profile("claude"), screen, now=NOW, zone="UTC")
    assert reading.state == "asking"
    assert reading.key == ""


@pytest.mark.parametrize(
    ("cli", "name"),
    [("claude", "c325-waiting-until"), ("codex", "r166-waiting-until"), ("opencode", "o118-waiting-until")],
)
def test_a_marker_counts_as_the_last_word_above_the_chrome(cli, name):
    """T76."""
    screen = capture(cli, name)
    marker = read(profile(cli), screen, now=NOW, zone="UTC").marker
    assert marker is not None
    assert marker.text == "2026-11-16T09:00Z"
    told = screen.replace(
        "WAITING-UNTIL: 2026-11-16T09:00Z", "WAITING-UNTIL: 2026-11-16T09:00Z\n     and more words"
    )
    told = told.replace("\n     and", "\n  and") if cli != "opencode" else told
    assert read(profile(cli), told, now=NOW, zone="UTC").marker is None


def test_a_marker_in_the_users_own_words_or_in_output_does_not_count():
    screen = capture("claude", "c325-waiting-until").replace(
        "● I wait for CI.", "● Bash(cat notes)\n  ⎿  I wait for CI."
    )
    assert read(profile("claude"), screen, now=NOW, zone="UTC").marker is None


def test_a_clock_or_a_spinner_does_not_change_the_content_but_a_word_does():
    """T78."""
    claude = profile("claude")
    screen = capture("claude", "13-working-bash-tool")
    one = read(claude, screen, now=NOW, zone="UTC").content_hash
    ticked = screen.replace("· Doing… (4s · ↓ 54 tokens)", "✢ Doing… (5s · ↓ 61 tokens)").replace(
        "(4s)", "(5s)"
    )
    wrote = screen.replace("line 5", "line 5 and a word")
    assert ticked != screen
    assert read(claude, ticked, now=NOW, zone="UTC").content_hash == one
    assert read(claude, wrote, now=NOW, zone="UTC").content_hash != one


@pytest.mark.parametrize("row", corpus.CONTRACT, ids=[row[0] for row in corpus.CONTRACT])
def test_three_regexes_alone_are_read_as_the_contract_says(row):
    """T68, T69."""
    _, backend, screen, expected = row
    assert read(backend, screen, now=NOW, zone="UTC").state == expected


def test_a_contract_banner_that_goes_on_in_the_next_line_still_gives_its_time():
    backend = Backend("x", "x", limit_re="limit reached")
    reading = read(backend, "limit reached\n  try again at 2026-11-16T05:00:00Z\n> ", now=NOW, zone="UTC")
    assert reading.until == 1794805200.0


def test_a_contract_backend_reads_a_marker_above_its_prompt():
    backend = Backend("x", "x", active_re="busy")
    text = "done\nWAITING-UNTIL: 2026-11-16T05:00:00Z\n────────\n> \n────────\n  ? for shortcuts"
    marker = read(backend, text, now=NOW, zone="UTC").marker
    assert marker is not None
    assert marker.until == 1794805200.0


@pytest.mark.parametrize(
    ("key", "value", "text", "expected"),
    [
        ("active_re", "crunching the numbers", "✻ crunching the numbers now", "working"),
        ("limit_re", "quota is used up", "  ⎿  Your quota is used up", "limited"),
        ("fatal_re", "went up in smoke", "  ⎿  It went up in smoke", "wedged"),
        ("fatal_re", "went up in smoke", "● It went up in smoke", "idle"),  # an answer: the agent's own words
        ("limit_re", "quota is used up", "● Your quota is used up", "idle"),
    ],
)
def test_a_projects_own_regex_adds_to_a_profile(key, value, text, expected):
    """A banner that changed its words is mended from agents.toml, without code."""
    claude = profile("claude")
    mended = dataclasses.replace(claude, **{key: value})
    turn = ["❯ go", text if text.startswith("  ") else f"\n{text}", ""]
    box = ["─" * 60, "❯\u00a0", "─" * 60, "  ? for shortcuts"]
    screen = "\n".join([*turn, *box])
    assert read(claude, screen, now=NOW, zone="UTC").state == "idle"
    assert read(mended, screen, now=NOW, zone="UTC").state == expected


def test_a_project_may_add_a_pattern_and_a_dialog_of_its_own():
    claude = profile("claude")
    mine = dataclasses.replace(
        claude,
        patterns=(*claude.patterns, Pattern("night", "error", "^● Good night", region="live")),
        dialogs=(*claude.dialogs, Dialog("mood", "How are you", key="Escape")),
    )
    screen = capture("claude", "12-finished-turn").replace(
        "● Working through", "● Good night, working through"
    )
    assert read(mine, screen, now=NOW, zone="UTC").pattern == "night"


def test_reading_is_quick_enough_for_thousands():
    """A tenth of a millisecond on an idle machine; here only that it is not a hundred times that."""
    claude = profile("claude")
    screen = capture("claude", "40-kickoff-100k")
    read(claude, screen, now=NOW, zone="UTC")
    best = min(_cpu(lambda: read(claude, screen, now=NOW, zone="UTC")) for _ in range(50))
    assert best < 0.01


def _cpu(act) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


WIDTH = 78


def boxed(*lines: str) -> list[str]:
    return [
        "╭" + "─" * WIDTH + "╮",
        *(f"│ {line.ljust(WIDTH - 1)}│" for line in lines),
        "╰" + "─" * WIDTH + "╯",
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["> hi", "", "⏺ Hello!", "", *boxed("> "), "  ? for shortcuts"], ("idle", "")),
        ([*boxed('> Try "fix lint errors"'), "  ? for shortcuts"], ("idle", "")),
        ([*boxed("> half a thought"), "  ? for shortcuts"], ("idle", "half a thought")),
        (
            ["> hi", "", "✻ Pondering… (12s · ↑ 1.2k tokens · esc to interrupt)", "", *boxed("> ")],
            ("working", ""),
        ),
        (
            ["> hi", "  ⎿  5-hour limit reached ∙ resets 3pm", "     /upgrade", "", *boxed("> ")],
            ("limited", ""),
        ),
        (
            ["> hi", "", "⏺ Bash(cat x)", "  ⎿  5-hour limit reached ∙ resets 3pm", "", *boxed("> ")],
            ("idle", ""),
        ),
        ([*boxed("Bash command", "Do you want to proceed?", "❯ 1. Yes", "  2. No (esc)")], ("asking", None)),
        (
            [*boxed("Do you trust the files in this folder?", "❯ 1. Yes, proceed", "  2. No, exit")],
            ("asking", None),
        ),
        ([" Select login method:", "", " ❯ 1. Claude account", "   2. Console account"], ("auth", None)),
    ],
)
def test_claude_with_a_boxed_composer_as_older_releases_draw_it_is_read_too(lines, expected):
    reading = read(profile("claude"), "\n".join(lines), now=NOW, zone="UTC")
    assert (reading.state, reading.draft) == expected


@pytest.mark.parametrize(
    ("screen", "words"),
    [
        ("a\nno key\n\nPane is dead (status 3, Tue Nov 17)\n", "a\nno key"),
        ("Pane is dead\n", ""),
        ("Pane is dead, it said\nbye\n\n", "Pane is dead, it said\nbye"),
        ("", ""),
    ],
)
def test_the_last_words_of_a_program_are_without_those_of_tmux(screen, words):
    assert last_words(screen) == words
