"""The scripted agent's parts: keys, scripts, faces, and the document made from its table."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from fleet.backends.screen_reader import read
from fleet.backends.scripted import records
from fleet.config.backend_tables import profile_values, shipped
from fleet.core.model import Backend
from fleet.core.seen import ScreenState
from fleet.scripted_agent import outside
from fleet.scripted_agent.__main__ import find_script, parse_flags
from fleet.scripted_agent.actions import ACTIONS
from fleet.scripted_agent.face import Face, View, load_face, render
from fleet.scripted_agent.script import ScriptError, directives, fill, load, parse
from fleet.scripted_agent.terminal import Keys, width, wrap

ROOT = Path(__file__).parents[2]
BACKENDS = {"plain": "scripted", "tui": "scripted-tui"}


# Keys


def typed(*reads, gap=0.05):
    """Keys of reads given as bytes, or as (seconds later, bytes)."""
    keys, now, found = Keys(gap), 100.0, []
    for item in reads:
        later, data = item if isinstance(item, tuple) else (1.0, item)
        now += later
        found += keys.feed(data, now)
    return [(k.name, k.text) if k.name == "text" else k.name for k in found]


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        ([b"abc", b"\r"], [("text", "abc"), "enter"]),
        ([b"abc\r"], [("text", "abc"), "newline"]),
        ([b"abc", (0.03, b"\r")], [("text", "abc"), "newline"]),
        ([b"abc", (0.06, b"\r")], [("text", "abc"), "enter"]),
        ([b"\x1b[200~a\rb\nc\x1b[201~", b"\r"], [("text", "a\nb\nc"), "enter"]),
        ([b"\x1b[200~a\x1b[201~\r"], [("text", "a"), "enter"]),
        ([b"\x1b[200~a\x1b[2", b"01~", b"\r"], [("text", "a"), "enter"]),
        ([b"\x1b[200~a\x1b[31mb\x1b[201~"], [("text", "a\x1b[31mb")]),
        (["é".encode()[:1], "é".encode()[1:]], [("text", "é")]),
        ([b"\x1b"], ["escape"]),
        ([b"\x1b[A\x1b[B\x1bOC"], ["up", "down", "right"]),
        ([b"\x03"], ["ctrl-c"]),
        ([b"\x15"], ["ctrl-u"]),
        ([b"\x7f"], ["backspace"]),
        ([b"\n"], ["newline"]),
        ([b"\xff"], [("text", "\ufffd")]),
    ],
)
def test_bytes_become_keys(reads, keys):
    """K3, K7."""
    assert typed(*reads) == keys


def test_without_a_gap_enter_is_always_enter_on_its_own():
    assert typed(b"a", (0.0, b"\r"), gap=0.0) == [("text", "a"), "enter"]


# Scripts


def script(text, path="s.toml"):
    return parse(text, path)


def test_every_example_in_the_table_is_a_valid_step():
    for name, action in ACTIONS.items():
        steps = script(f"steps = [{action.example}]").steps
        assert name in steps[0]
        assert action.act.__doc__


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = [", "s.toml:"),
        ("stepps = []", 'did you mean "steps"'),
        ("steps = [{ wrk = 1 }]", 'steps[0]: no action in it; did you mean "work"'),
        ("steps = [{ work = 1, fro = 2 }]", "unknown key 'fro' of work"),
        ("steps = [{ repeat = 2, steps = [{ work = 1 }, { nope = 1 }] }]", "steps[0]: steps[1]: no action"),
        ("steps = 5", "expected a list of steps"),
        ("steps = [5]", "steps[0]: no action"),
        ('[[on]]\nmessage = "("\nsteps = []', "on[0]: message: not a regular expression"),
        ("[[on]]\nsteps = []", "at least one of kickoff, message, resume"),
        ("on = 3", "expected [[on]] tables"),
        ("on = [3]", "on[0]: expected a table"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_script_is_named_with_its_place(text, said):
    with pytest.raises(ScriptError, match=re.escape(said)):
        script(text)


def test_json_lines_are_a_script_too():
    made = script('# comment\n{"say": "hi"}\n\n{"script": {"speed": 5}}\n{"exit": 2}\n', "s.jsonl")
    assert (made.steps, made.speed) == ([{"say": "hi"}, {"exit": 2}], 5)
    with pytest.raises(ScriptError, match=r"s\.jsonl:2"):
        script('{"say": "hi"}\n{"say"\n', "s.jsonl")


def chosen(made, kind, text, resume=""):
    for number, reaction in enumerate(made.on):
        slots = reaction.match(kind, text, resume)
        if slots is not None:
            reaction.ran += 1
            return number, slots
    return None


def test_the_first_matching_reaction_is_meant_and_its_groups_become_slots():
    made = script(
        "[[on]]\nresume='.'\nkickoff='.'\nsteps=[]\n"
        "[[on]]\nkickoff='phase (?P<phase>\\w+)'\nsteps=[]\n"
        "[[on]]\nmessage='review'\ntimes=1\nsteps=[]\n"
        "[[on]]\nmessage='.'\nsteps=[]\n"
    )
    assert chosen(made, "kickoff", "do phase p1 now") == (1, {"phase": "p1"})
    assert chosen(made, "kickoff", "do phase p1 now", "id") == (0, {})
    assert chosen(made, "kickoff", "nothing") is None
    assert chosen(made, "message", "a review") == (2, {})
    assert chosen(made, "message", "a review") == (3, {})


def test_slots_are_filled_where_known_and_nested_steps_wait():
    step = {"say": "{a} {b} {}", "steps": [{"say": "{a}"}], "options": ["{a}"]}
    assert fill(step, {"a": "1"}) == {"say": "1 {b} {}", "steps": [{"say": "{a}"}], "options": ["1"]}


def test_a_message_may_carry_steps():
    assert directives("please") is None
    assert directives('now %%{"exit": 3}%% ok') == [{"exit": 3}]
    assert directives('%%[{"say": "a"}, {"die": "KILL"}]%%') == [{"say": "a"}, {"die": "KILL"}]
    for bad in ("%%{%%", '%%{"nope": 1}%%', "%%5%%"):
        with pytest.raises(ScriptError):
            directives(bad)


def test_flags_are_those_of_an_agent_cli_and_others_are_refused():
    argv = ["--model", "m[1m]", "--resume=abc", "--yolo", "--weird text", "-- not a flag"]
    assert parse_flags(argv) == (
        {"--model": "m[1m]", "--resume": "abc", "--yolo": ""},
        "--weird text\n-- not a flag",
    )
    assert parse_flags(["--", "--model"]) == ({}, "--model")
    with pytest.raises(ScriptError, match="unknown option '--mdoel'"):
        parse_flags(["--mdoel", "x"])


def test_a_script_is_found_from_below(tmp_path, monkeypatch):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.toml").touch()
    (tmp_path / "x" / "y").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "x" / "y")
    assert find_script("scripts/a.toml") == str(tmp_path / "scripts" / "a.toml")
    assert find_script("none.toml") == "none.toml"
    with pytest.raises(ScriptError, match="set AO_SCRIPT"):
        load("none.toml")


def test_a_broken_script_ends_the_program_with_code_2_and_a_sentence(tmp_path):
    (tmp_path / "s.toml").write_text("steps = [{ wrk = 1 }]")
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "fleet/scripted_agent/__main__.py",
         "--script", tmp_path / "s.toml"],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("scripted-agent: ")
    assert 'did you mean "work"' in done.stderr


def test_every_script_in_the_document_is_valid():
    found = re.findall(r"```toml\n(.*?)```", (ROOT / "tools/scripted.md").read_text(), re.DOTALL)
    scripts = [text for text in found if "[[agent]]" not in text]
    assert len(scripts) == 1
    assert script(scripts[0]).on


@pytest.mark.parametrize("path", sorted((ROOT / "tests/fixtures/scripts").iterdir()), ids=lambda p: p.name)
def test_the_scripts_used_by_tests_are_valid(path):
    assert load(str(path)).path


# Faces


def screen(face, view, columns=200, rows=50):
    return "\n".join(render(load_face(face), view, columns, rows).rows)


def seen(face, view, columns=200):
    name = BACKENDS[face]
    backend = Backend(name=name, **profile_values(name, shipped(name)))
    return read(backend, screen(face, view, columns), now=time.time(), zone="UTC")


def lines(face, *blocks):
    """Content lines of (kind, text) blocks after a user's turn."""
    made = load_face(face)
    out = ["header", "", made.user + "do it", ""]
    for kind, text in blocks:
        prefix = getattr(made, kind)
        rest = getattr(made, f"{kind}_rest", "  ")
        first, *others = text.split("\n")
        out += [prefix + first, *(rest + line for line in others), ""]
    return out


SLOTS = {
    "glyph": "✻",
    "text": "Thinking",
    "elapsed": "12",
    "left": "9",
    "attempt": "2",
    "model": "m",
    "dir": "/d",
}
BANNER = "You've hit your session limit · resets 2027-01-01T00:00:00Z"
ASKING = {"mode": "asking", "question": ["Do you trust this?"], "options": ["Yes", "No"]}
STATES = [
    ([("said", "All done.")], {}, ScreenState.IDLE),
    ([("said", "On it.")], {"mode": "working"}, ScreenState.WORKING),
    ([("said", "On it.")], {"mode": "retrying"}, ScreenState.RETRYING),
    ([("notice", BANNER)], {}, ScreenState.LIMITED),
    ([("notice", "Usage limit reached")], {}, ScreenState.LIMITED),
    ([("notice", BANNER)], {"mode": "working"}, ScreenState.WORKING),
    ([("notice", BANNER), ("said", "Going on.")], {}, ScreenState.IDLE),
    ([("said", f"The log says:\n{BANNER}")], {}, ScreenState.IDLE),
    ([("said", BANNER)], {}, ScreenState.IDLE),
    ([("tool", "Bash(cat log)"), ("output", f"x\n{BANNER}")], {}, ScreenState.IDLE),
    ([("notice", "You've used 91% of your session limit")], {}, ScreenState.IDLE),
    ([("notice", "API Error: 500 Internal server error")], {}, ScreenState.ERROR),
    ([("notice", "API Error: 401 · Please run /login")], {}, ScreenState.AUTH),
    ([("notice", "Context is full · run /compact or /clear to continue")], {}, ScreenState.CONTEXT),
    ([("notice", "This conversation cannot continue: request too large")], {}, ScreenState.WEDGED),
    ([("said", "x")], ASKING, ScreenState.ASKING),
]  # fmt: skip


@pytest.mark.parametrize("face", BACKENDS)
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(("blocks", "view", "state"), STATES)
def test_the_profile_reads_what_the_face_shows(face, columns, blocks, view, state):
    """T68, I6: and never a quotation for the thing itself."""
    glyph = load_face(face).spinner[0]
    look = View(lines(face, *blocks), slots={**SLOTS, "glyph": glyph}, **view)
    reading = seen(face, look, columns)
    assert reading.state is state
    if state is ScreenState.LIMITED and "resets" in blocks[0][1]:
        assert reading.until == 1798761600.0


@pytest.mark.parametrize("face", BACKENDS)
@pytest.mark.parametrize("draft", ["", "half a sentence", "two\nlines", "x" * 300])
def test_the_profile_finds_the_draft_and_not_the_placeholder(face, draft):
    reading = seen(face, View(lines(face, ("said", "ok")), draft=draft, slots=SLOTS))
    assert reading.draft.replace("\n", "") == draft.replace("\n", "")


@pytest.mark.parametrize("face", BACKENDS)
def test_the_profile_knows_a_program_that_is_still_starting(face):
    header = [fill(line, SLOTS | {"agent": "a"}) for line in load_face(face).header]
    assert seen(face, View([*header, "Starting…"], mode="bare", slots=SLOTS)).state is ScreenState.STARTING


@pytest.mark.parametrize("face", BACKENDS)
def test_the_profile_reads_a_waiting_marker_only_as_the_last_word(face):
    marker = "Waiting.\nWAITING-UNTIL: 2027-01-01T00:00:00Z"
    assert seen(face, View(lines(face, ("said", marker)), slots=SLOTS)).marker is not None
    assert seen(face, View(lines(face, ("said", marker), ("said", "Back.")), slots=SLOTS)).marker is None


@pytest.mark.parametrize("face", BACKENDS)
def test_a_dialog_with_an_allowed_key_names_it_and_the_dangerous_one_has_none(face):
    """I14."""
    for question, key in (
        ("Do you trust this folder?", ""),
        ("Press 1 to continue", "1"),
        ("Delete all?", ""),
    ):
        view = View(
            lines(face, ("said", "x")), mode="asking", question=[question], options=["a", "b"], slots=SLOTS
        )
        reading = seen(face, view)
        assert (reading.state, reading.key) == (ScreenState.ASKING, key)


@pytest.mark.parametrize("face", BACKENDS)
@pytest.mark.parametrize(("columns", "rows"), [(200, 50), (80, 24), (20, 6), (5, 3)])
def test_a_picture_never_exceeds_its_screen(face, columns, rows):
    view = View([f"line {n} 日本" * 9 for n in range(99)], draft="d" * 999, slots=SLOTS, mode="working")
    picture = render(load_face(face), view, columns, rows)
    assert len(picture.rows) <= rows
    assert 0 <= picture.cursor[0] < rows
    assert 0 <= picture.cursor[1] < columns


def test_wide_characters_take_two_columns():
    assert width("日本a\u0301") == 5
    assert wrap("日本語", 4) == ["日本", "語"]
    assert wrap("", 4) == [""]


def test_a_face_that_does_not_exist_or_is_wrong_is_said_so(tmp_path):
    with pytest.raises(ValueError, match="shipped: plain, tui"):
        load_face("nope")
    (tmp_path / "f.toml").write_text("colour = 1")
    with pytest.raises(ValueError, match="unknown key 'colour'"):
        load_face(str(tmp_path / "f.toml"))


def test_the_shipped_faces_say_everything_a_face_can_say():
    for name in BACKENDS:
        data = tomllib.loads((ROOT / f"fleet/scripted_agent/faces/{name}.toml").read_text())
        assert set(data) <= set(Face.__dataclass_fields__)


# Effects


def test_a_reset_is_never_named_too_early():
    assert outside.iso(100.2) == "1970-01-01T00:01:41Z"
    assert outside.iso(100.0) == "1970-01-01T00:01:40Z"
    text = outside.with_reset("limit · resets {reset} {reset_epoch}", 100.0)
    assert text == "limit · resets 1970-01-01T00:01:40Z 100"
    assert outside.with_reset("hit your limit · resets {reset}", float("inf")) == "hit your limit"


def test_once_is_once_across_processes(tmp_path):
    for expected in (True, False, False):
        assert outside.first_time(str(tmp_path), "a/b") is expected
    assert outside.first_time(str(tmp_path), "other")


def test_a_usage_record_looks_like_the_real_one(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("AO_TRANSCRIPT", raising=False)
    path = records.transcript_path("", "abc")
    assert path.startswith(str(tmp_path / "projects"))
    text = records.usage_line("abc", "m", 5, {"output": 7, "cache_read": 9, "repeat": 2})
    assert text.split("\n")[0] == text.split("\n")[1]
    assert '"output_tokens": 7' in text


def test_a_written_file_is_never_seen_half(tmp_path):
    outside.put(str(tmp_path / "d" / "f"), "x", append=False)
    outside.put(str(tmp_path / "d" / "f"), "y\n", append=True)
    assert (tmp_path / "d" / "f").read_text() == "x\ny\n"
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["f"]
