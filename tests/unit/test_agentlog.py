"""`agentlog.py`: transcripts for people, on bare files and for a whole fleet."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.backends.ledger import Counts
from fleet.backends.readers import Entry, Role, Wanted
from fleet.tokens import agentlog as cli
from fleet.tokens.follow import CleanLogs, Follower
from fleet.tokens.render import Manner, Renderer
from tests.unit.test_tokens_cli import parsed
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_line, codex_lines

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-ant-api03-" + "A1b2C3d4" * 8
CONFIG = """
[defaults]
session_prefix = "t-"
log_dir = "state"
backend = "claude"
[[agent]]
name = "builder"
kind = "persistent"
prompt = "go"
dir = "a"
[[agent]]
name = "other"
kind = "persistent"
prompt = "go"
dir = "b"
"""


@pytest.fixture(autouse=True)
def _universal_time(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def agentlog(capsys, *words):
    code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def user_line(text, at="2026-11-16T01:00:00Z", cwd="/proj/a"):
    message = {"role": "user", "content": text}
    line = {"type": "user", "timestamp": at, "cwd": cwd, "sessionId": "s", "message": message}
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "claude.jsonl",
            "2026-11-16 00:53:26 tool      Bash: for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done",
        ),
        ("claude.jsonl", "2026-11-16 00:53:34 result    Bash 55 characters: line 1 line 2"),
        ("claude.jsonl", "I will run it. [1,755 tokens: 1,000 in, 55 out, 200 written, 500 cached]"),
        ("claude-limits.jsonl", "error     You've hit your session limit"),
        ("codex-rollout.jsonl", "2026-11-16 01:31:12 tool      exec_command: for i in 1 2 3 4 5 6"),
        ("codex-rollout.jsonl", "usage [1,055 tokens: 600 in, 55 out, 400 cached]"),
        ("opencode-export.json", "2026-11-16 03:29:49 tool      bash: echo one; echo two"),
        ("opencode-export.json", "result    bash 8 characters: one two"),
    ],
)
def test_a_bare_transcript_of_each_cli_is_readable_without_any_config(
    capsys, tmp_path, monkeypatch, name, expected
):
    monkeypatch.chdir(tmp_path)
    code, out, _ = agentlog(capsys, "render", FIXTURES / name)
    assert code == 0
    assert expected in out


def test_opencodes_database_is_readable_too(capsys, tmp_path):
    path = tmp_path / "opencode.db"
    connection = sqlite3.connect(path)
    connection.executescript((FIXTURES / "opencode.sql").read_text(encoding="utf-8"))
    connection.close()
    _, exported, _ = agentlog(capsys, "render", FIXTURES / "opencode-export.json")
    assert agentlog(capsys, "render", path)[1] == exported


def test_the_tokens_of_a_message_are_told_once(capsys):
    _, out, _ = agentlog(capsys, "render", FIXTURES / "claude.jsonl", "--thinking")
    assert out.count("[1,755 tokens") == 1
    assert out.count("[120 tokens") == 2


def test_a_repeated_codex_count_is_told_once(capsys):
    _, out, _ = agentlog(capsys, "render", FIXTURES / "codex-rollout.jsonl")
    assert out.count("system    usage") == 5


def test_thinking_and_results_are_shown_when_asked_for(capsys):
    path = FIXTURES / "claude.jsonl"
    assert "hmm let me think" not in agentlog(capsys, "render", path)[1].split("slow")[1].split("\n", 1)[1]
    assert "thinking  hmm let me think" in agentlog(capsys, "render", path, "--thinking")[1]
    assert "    line 8" in agentlog(capsys, "render", path, "--tools")[1].splitlines()
    assert "    line 8" not in agentlog(capsys, "render", path)[1].splitlines()


def edit_lines(**given):
    """A call of a tool and its answer."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": "/a/b.py", **given}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done", "is_error": True}
    for kind, block in (("assistant", call), ("user", answer)):
        line = {"type": kind, "sessionId": "s", "message": {"role": kind, "content": [block]}}
        yield json.dumps(line).encode() + b"\n"


def test_a_result_bears_the_name_of_its_tool(capsys, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(edit_lines()))
    lines = agentlog(capsys, "render", path)[1].splitlines()
    assert [line[20:] for line in lines] == [
        "tool      Edit: /a/b.py",
        "result    Edit 4 characters FAILED: done",
    ]


def test_tools_shows_all_that_a_tool_was_given_but_no_secret(capsys, tmp_path):
    path, page = tmp_path / "s.jsonl", tmp_path / "page.html"
    path.write_bytes(b"".join(edit_lines(new_string=f"one\ntwo {SECRET}", count=3)))
    assert "new_string" not in agentlog(capsys, "render", path)[1]
    whole = agentlog(capsys, "render", path, "--tools")[1]
    assert "Edit: /a/b.py\n    new_string: one\n    two [redacted]\n    count: 3\n" in whole
    agentlog(capsys, "render", path, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "new_string: one" in text
    assert SECRET not in whole + text


def test_words_of_any_shape_are_shown_and_no_empty_ones(capsys, tmp_path):
    path = tmp_path / "s.jsonl"
    content = ["a bare word", None, 3, {"type": "text", "text": ""}, {"type": "text", "text": "a block"}]
    path.write_text(json.dumps({"type": "user", "sessionId": "s", "message": {"content": content}}))
    lines = agentlog(capsys, "render", path)[1].splitlines()
    assert [line[20:] for line in lines] == ["user      a bare word", "user      a block"]


def test_grep_keeps_what_matches(capsys):
    _, out, _ = agentlog(capsys, "render", FIXTURES / "claude.jsonl", "--grep", "^Bash: |finished")
    assert [line[20:30].strip() for line in out.splitlines()] == ["tool", "assistant"]


@pytest.mark.parametrize(
    ("since", "left"), [("2026-11-16T00:54:30Z", 2), ("2026-11-16T00:54:44.795+00:00", 1)]
)
def test_since_keeps_what_is_newer(capsys, since, left):
    _, out, _ = agentlog(capsys, "render", FIXTURES / "claude.jsonl", "--since", since)
    assert len(out.splitlines()) == left


@pytest.mark.parametrize(("text", "age"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5d", 129600)])
def test_since_may_be_an_age(text, age):
    assert cli.parse_since(text, 1_000_000.0) == 1_000_000.0 - age


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("render", "/no/such/file"), "/no/such/file: there is no such file"),
        (("render", FIXTURES), "is a directory"),
        (("render", FIXTURES / "claude.jsonl", "--since", "soon"), "expected a moment"),
        (("render", FIXTURES / "claude.jsonl", "--grep", "("), "expected a regular expression"),
        (("usage", "/no/such/file"), "there is no such file or directory"),
        (("follow", "nobody"), "agents.toml"),
    ],
)
def test_wrong_words_are_one_sentence_and_exit_2(capsys, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = agentlog(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


def test_a_file_of_no_known_format_is_not_as_desired(capsys):
    code, _, err = agentlog(capsys, "render", FIXTURES / "README.md")
    assert code == 1
    assert "expected JSON lines" in err


def test_secrets_and_terminal_control_never_come_through(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-plain-word-nobody-would-suspect")
    path = tmp_path / "s.jsonl"
    text = f"key {SECRET} and a-plain-word-nobody-would-suspect \x1b[31mred\x1b[0m\x07 \u202e"
    path.write_bytes(user_line(text))
    page = tmp_path / "page.html"
    agentlog(capsys, "render", path, "--html", page)
    for shown in (agentlog(capsys, "render", path)[1], page.read_text(encoding="utf-8")):
        assert SECRET not in shown
        assert "a-plain-word-nobody-would-suspect" not in shown
        assert "[redacted]" in shown
        assert not re.search("[\x07\x1b\u202e]", shown)


def test_grep_cannot_find_a_secret(capsys, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(user_line(f"key {SECRET}"))
    assert agentlog(capsys, "render", path, "--grep", SECRET)[1] == ""


def test_colour_only_where_it_was_asked_for():
    entry = Entry(0.0, Role.ERROR, "no")
    assert "\x1b[" in "".join(Renderer(Manner(colour=True)).lines([entry]))
    assert "\x1b[" not in "".join(Renderer(Manner()).lines([entry]))


def test_a_sub_agent_is_marked():
    [line] = Renderer().lines([Entry(0.0, Role.ASSISTANT, "hello", side=True)])
    assert "» hello" in line


@pytest.mark.parametrize("at", [None, -1e18, 1e18, float("nan")])
def test_an_impossible_date_keeps_the_columns_straight(at):
    [line] = Renderer().lines([Entry(at, Role.USER, "x")])
    assert line == "-" * 19 + " user      x"


def test_the_page_can_be_read_and_passed_on(capsys, tmp_path):
    page = tmp_path / "page.html"
    code, _, err = agentlog(capsys, "render", FIXTURES / "claude.jsonl", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert code == 0
    assert "wrote" in err
    found = parsed(text)
    assert found.loads == []
    assert "prefers-color-scheme: dark" in text
    assert "Tool finished." in "".join(found.text)
    assert text.count("<details>") == 2, "the result, and what else the tool was given"
    assert "1,995" in "".join(found.text), "what it took stands at the head"


def test_usage_is_the_contract(capsys):
    code, out, _ = agentlog(
        capsys, "usage", FIXTURES / "claude.jsonl", FIXTURES / "codex-rollout.jsonl", "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert document["total"] == {"input": 2200, "output": 230, "cache_write": 200, "cache_read": 900}
    assert document["by_model"]["claude-opus-4-8"] == {
        "input": 1200, "output": 95, "cache_write": 200, "cache_read": 500,
    }  # fmt: skip
    assert document["by_day"]["2026-11-16"] == document["total"]
    assert document["files"] == 2
    assert document["messages"] == 8


def test_usage_counts_a_file_given_twice_once(capsys, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_line(None, None, 7))
    (tmp_path / "t.jsonl").symlink_to(path)
    document = json.loads(agentlog(capsys, "usage", path, path, tmp_path, "--json")[1])
    assert document["total"]["output"] == 7


def test_halves_of_characters_and_names_that_are_no_text_break_nothing(capsys, tmp_path):
    """JSON may spell what no encoding can write; so may the name of a file."""
    odd = claude_line("m").replace(b"claude-opus-4-8", rb"mo\udc00del")
    for old, new in ((b'"m"', rb'"m\ud800"'), (b'"r"', rb'"r\ud800"'), (b"2026-11-16", rb"2026-\ud800")):
        odd = odd.replace(old, new)
    path = tmp_path / os.fsdecode(b"s\xff.jsonl")
    path.write_bytes(odd)
    rollout = codex_line("turn_context", {"model": "m\ud800"}) + b"".join(list(codex_lines(1))[2:])
    (tmp_path / "rollout.jsonl").write_bytes(
        codex_line("session_meta", {"id": "\ud800", "cwd": "/"}) + rollout
    )
    (tmp_path / os.fsdecode(b"\xff.jsonl")).write_bytes(b"rubbish\n")
    code, out, _ = agentlog(capsys, "usage", tmp_path, "--json")
    assert code == 0
    assert {name: counts["output"] for name, counts in json.loads(out)["by_model"].items()} == {
        "mo?del": 10,
        "m?": 1,
    }
    assert agentlog(capsys, "usage", tmp_path)[0] == 0
    assert agentlog(capsys, "render", path, "--html", tmp_path / "page.html")[0] == 0
    assert agentlog(capsys, "render", path)[0] == 0


def test_usage_of_nothing_is_nought_and_of_rubbish_an_error(capsys, tmp_path):
    code, out, err = agentlog(capsys, "usage", tmp_path, "--json")
    assert (code, set(json.loads(out)["total"].values())) == (0, {0})
    assert "no transcript was found" in err
    (tmp_path / "s.jsonl").write_bytes(b"rubbish\n")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    code, out, err = agentlog(capsys, "usage", tmp_path, "--json")
    assert (code, out) == (1, "")
    assert "s.jsonl: is no transcript" in err


def test_usage_reads_the_files_of_an_older_opencode(capsys, tmp_path):
    """One message a file; what a message's parts repeat is not counted again."""
    tokens = {"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 50, "write": 7}}
    told = {"id": "msg_1", "sessionID": "ses_1", "role": "assistant", "modelID": "m", "tokens": tokens}
    part = {
        "id": "prt_1",
        "messageID": "msg_1",
        "sessionID": "ses_1",
        "type": "step-finish",
        "tokens": tokens,
    }
    for name, data in (
        ("message/ses_1/msg_1", told),
        ("message/copy/msg_1", told),
        ("part/msg_1/prt_1", part),
    ):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=2))
    document = json.loads(agentlog(capsys, "usage", tmp_path, "--json")[1])
    assert document["by_model"] == {"m": {"input": 100, "output": 15, "cache_write": 7, "cache_read": 50}}
    assert document["messages"] == 1
    code, _, err = agentlog(capsys, "render", tmp_path / "message" / "ses_1" / "msg_1.json")
    assert (code, "is no transcript" in err) == (1, True)


def test_usage_for_people_and_with_cost(capsys):
    _, out, _ = agentlog(capsys, "usage", FIXTURES, "--cost")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["model", "input", "output", "cache_write", "cache_read", "TOTAL", "USD"]
    assert lines[2][:2] == ["claude-opus-4-8", "1,200"]
    assert lines[2][-1] == "0.01"
    assert lines[-2][0] == "TOTAL"
    assert lines[-2][-1] == "-", "the fake model has no price"


def test_usage_in_several_processes_is_the_same(capsys):
    one = agentlog(capsys, "usage", FIXTURES, "--json", "--jobs", "1")[1]
    assert agentlog(capsys, "usage", FIXTURES, "--json", "--jobs", "3")[1] == one


def test_usage_without_a_path_looks_where_the_clis_keep_theirs(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert json.loads(agentlog(capsys, "usage", "--json")[1])["files"] == 0
    for below, lines in (("projects/-p", [claude_line(output=3)]), ("sessions/2026/11/16", codex_lines(4))):
        folder = tmp_path / (".claude" if below.startswith("p") else ".codex") / below
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_bytes(b"".join(lines))
    document = json.loads(agentlog(capsys, "usage", "--json")[1])
    assert document["by_cli"]["claude"]["output"] == 3
    assert document["by_cli"]["codex"]["output"] == 4


class Fleet:
    """A project whose agents have transcripts."""

    def __init__(self, root):
        self.root = root
        (root / "agents.toml").write_text(CONFIG)

    def path(self, name, session="s"):
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(self.root / name))
        return self.root / "home" / ".claude" / "projects" / slug / f"{session}.jsonl"

    def write(self, name, text, session="s"):
        path = self.path(name, session)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as handle:
            handle.write(user_line(text, cwd=str(self.root / name)))

    def clean(self, name):
        path = self.root / "state" / "clean" / f"{name}.log"
        return [line[30:] for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Fleet(tmp_path)


def test_follow_all_writes_each_agents_log_and_goes_on_after_a_restart(capsys, fleet):
    fleet.write("a", "one")
    fleet.write("b", "two")
    assert agentlog(capsys, "follow-all", "--once")[0] == 0
    fleet.write("a", "three")
    fleet.write("a", "four", session="s2")
    for _ in range(2):
        assert agentlog(capsys, "follow-all", "--once")[0] == 0
    assert fleet.clean("builder") == ["one", "three", "four"]
    assert fleet.clean("other") == ["two"]
    mode = (fleet.root / "state" / "clean" / "builder.log").stat().st_mode
    assert mode & 0o777 == 0o600


def test_a_touched_transcript_is_not_told_again(capsys, fleet):
    fleet.write("a", "one")
    agentlog(capsys, "follow-all", "--once")
    os.utime(fleet.path("a"), ns=(1, 1))
    agentlog(capsys, "follow-all", "--once")
    assert fleet.clean("builder") == ["one"]


def test_half_a_line_is_told_when_it_is_whole(fleet, tmp_path):
    agent = Wanted("builder", "claude", str(fleet.root / "a"), env={"HOME": str(tmp_path / "home")})
    logs = CleanLogs(str(tmp_path / "state" / "clean"), Manner())
    line = user_line("whole", cwd=str(fleet.root / "a"))
    fleet.write("a", "first")
    for piece in (line[:50], line[50:-1], line[-1:], b""):  # whole, but for its newline, is not yet whole
        with open(fleet.path("a"), "ab") as handle:
            handle.write(piece)
        logs.poll([agent])
    os.utime(fleet.path("a"), ns=(1, 1))
    logs.poll([agent])
    assert fleet.clean("builder") == ["first", "whole"]


def test_a_clean_log_is_rotated_before_it_fills_the_disk(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.tokens.follow.CAP", 10)
    agent = Wanted("builder", "claude", str(fleet.root / "a"), env={"HOME": str(tmp_path / "home")})
    logs = CleanLogs(str(tmp_path / "state" / "clean"), Manner())
    for text in ("one", "two", "three"):
        fleet.write("a", text)
        logs.poll([agent])
    assert fleet.clean("builder") == ["three"]
    assert sorted(os.listdir(tmp_path / "state" / "clean")) == ["builder.log", "builder.log.1", "marks.json"]


def test_opencode_is_followed_part_by_part_once_each_is_finished(tmp_path):
    folder = tmp_path / "opencode"
    folder.mkdir()
    connection = sqlite3.connect(folder / "opencode.db", isolation_level=None)
    connection.executescript((FIXTURES / "opencode.sql").read_text(encoding="utf-8"))
    connection.execute("update part set data = replace(data, '\"completed\"', '\"running\"')")
    agent = Wanted("oc", "opencode", "/home/user/proj/oc", env={"XDG_DATA_HOME": str(tmp_path), "HOME": "/x"})
    told = []
    follower = Follower([agent])
    for _ in range(2):
        follower.poll(lambda name, entry: told.append((name, entry.role, entry.text)))
    assert [role for _, role, _ in told] == ["user", "thinking", "assistant", "assistant"]
    connection.execute("update part set data = replace(data, '\"running\"', '\"completed\"')")
    again = Follower([agent], marks=json.loads(json.dumps(follower.marks)))
    told.clear()
    again.poll(lambda name, entry: told.append((name, entry.role, entry.text)))
    assert told == [("oc", "tool", "echo one; echo two"), ("oc", "result", "one\ntwo\n")]
    connection.close()


def test_list_says_whose_each_transcript_is(capsys, fleet):
    fleet.write("a", "one")
    fleet.write("b", "two", session="s2")
    rows = json.loads(agentlog(capsys, "list", "--json")[1])
    assert {(row["agent"], row["kind"], row["session"]) for row in rows} == {
        ("builder", "claude", "s"),
        ("other", "claude", "s2"),
    }
    head, *lines = agentlog(capsys, "list")[1].splitlines()
    assert head.split() == ["agent", "cli", "last", "written", "bytes", "path"]
    assert {(line.split()[0], line.split()[-1]) for line in lines} == {
        ("builder", str(fleet.path("a"))),
        ("other", str(fleet.path("b", "s2"))),
    }


@pytest.mark.parametrize("busy", [True, False], ids=["with more to say", "with nothing more to say"])
def test_follow_prints_what_one_agent_says_and_leaves_when_its_reader_does(fleet, busy):
    """The real program on a pipe: it shows what is there, then what comes, and ends with its reader."""
    fleet.write("a", "before")
    fleet.write("b", "not mine")
    words = [sys.executable, str(ROOT / "agentlog.py"), "follow", "builder"]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline().endswith("user      before\n")
        fleet.write("a", "after")
        assert program.stdout.readline().endswith("user      after\n")
        program.stdout.close()
        while busy and program.poll() is None:
            fleet.write("a", "nobody listens")
            time.sleep(0.05)
        assert program.wait(60) == 0
        assert "Traceback" not in program.stderr.read()
    finally:
        program.kill()
        program.wait()


def test_follow_names_the_agents_there_are(capsys, fleet):
    code, _, err = agentlog(capsys, "follow", "bulider")
    assert code == 2
    assert "known: builder, other" in err


def test_counts_in_words_leave_out_what_was_not_used():
    [line] = Renderer().lines([Entry(0.0, Role.ASSISTANT, "x", counts=Counts(1, 2, 0, 0), message="m")])
    assert line.endswith("[3 tokens: 1 in, 2 out]")


def test_a_file_named_by_hand_that_is_no_transcript_is_told_whatever_it_is_called(capsys, tmp_path):
    good, packed, broken = tmp_path / "good.jsonl", tmp_path / "old.jsonl.gz", tmp_path / "opencode.db"
    good.write_bytes(claude_line())
    packed.write_bytes(b"\x1f\x8b\x08 and so on")
    broken.write_bytes(b"SQLite format 3\x00 and then nothing")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (packed, broken, tmp_path / "pipe.jsonl"):
        code, _, err = agentlog(capsys, "usage", path)
        assert (code, err) == (1, f"error: {path}: is no transcript that can be read\n")
    code, out, _ = agentlog(capsys, "usage", "--json", good, packed)
    assert (code, json.loads(out)["unread"], json.loads(out)["messages"]) == (0, [str(packed)], 1)
    code, out, _ = agentlog(capsys, "usage", "--json", tmp_path)  # among others it may be anybody's
    assert (code, json.loads(out)["unread"]) == (0, [str(broken)])


def test_a_database_that_is_none_is_one_sentence(capsys, tmp_path):
    broken = tmp_path / "opencode.db"
    broken.write_bytes(b"SQLite format 3\x00 and then nothing")
    code, _, err = agentlog(capsys, "render", broken)
    assert code == 1
    assert err.startswith(f"error: {broken}: cannot be read as opencode's database")


def test_a_page_that_cannot_be_written_is_named(capsys, tmp_path):
    good = tmp_path / "good.jsonl"
    good.write_bytes(claude_line())
    code, _, err = agentlog(capsys, "render", good, "--html", tmp_path / "no" / "page.html")
    assert (code, err) == (1, f"error: {tmp_path / 'no' / 'page.html'}: No such file or directory\n")


def test_the_config_may_stand_before_the_command_or_after_it(capsys, fleet, tmp_path):
    """T01, T03."""
    config = tmp_path / "agents.toml"
    before = agentlog(capsys, "--config", config, "list", "--json")
    assert before == agentlog(capsys, "list", "--json", "--config", config)
    assert before[0] == 0
    with pytest.raises(SystemExit) as left:
        agentlog(capsys, "--config", config, "list", "--config", tmp_path / "other.toml")
    assert left.value.code == 2


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("stdout", [">&-", ">/dev/full"])
def test_a_stdout_that_takes_nothing_is_no_traceback(tmp_path, stdout, buffered):
    (tmp_path / "good.jsonl").write_bytes(claude_line())
    command = f'"$1" "$2" usage "$3" {stdout}'
    words = ["sh", "-c", command, "sh", sys.executable, str(ROOT / "agentlog.py"), str(tmp_path)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environ |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ)
    assert done.stderr == ("" if stdout == ">&-" else "error: No space left on device\n")
    assert done.returncode == (0 if stdout == ">&-" else 1)
