"""Totals of what the real CLIs wrote, and of what nobody should have written."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

from fleet.transcripts import claude, codex, opencode
from fleet.transcripts.entries import Role
from fleet.transcripts.follow import file_entries
from fleet.transcripts.meter import Meter
from fleet.transcripts.places import EXPORT, describe, sniff
from fleet.transcripts.tail import Tail, ident_of
from fleet.transcripts.usage import Counts, Ledger
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_lines

LINE = claude_line
BOTH = pytest.mark.parametrize("fast", [True, False], ids=["msgspec", "json"])


def counted(path, kind, *, fast=True):
    meter = Meter(fast=fast)
    meter.read_file(str(path), kind)
    return meter.ledger


def by_model(ledger):
    found = {}
    for cells in ledger.by_source():
        for (model, _), counts in cells.items():
            found[model] = found.get(model, Counts()).plus(counts)
    return found


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "opencode" / "opencode.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("pragma synchronous=off")
    connection.executescript((FIXTURES / "opencode.sql").read_text(encoding="utf-8"))
    connection.execute("pragma journal_mode=wal")
    connection.commit()
    yield path, connection
    connection.close()


@BOTH
def test_claude_counts_each_message_of_several_lines_once(fast):
    ledger = counted(FIXTURES / "claude.jsonl", "claude", fast=fast)
    assert by_model(ledger) == {"claude-opus-4-8": Counts(1200, 95, 200, 500)}
    assert ledger.messages() == 3


@BOTH
def test_claude_skips_the_errors_it_wrote_itself(fast):
    ledger = counted(FIXTURES / "claude-limits.jsonl", "claude", fast=fast)
    assert by_model(ledger) == {"claude-sonnet-5": Counts(100, 20)}


def test_codex_takes_the_last_total_and_says_so_like_the_cli_itself():
    ledger = counted(FIXTURES / "codex-rollout.jsonl", "codex")
    assert by_model(ledger) == {"fake-model": Counts(1000, 135, 0, 400)}
    assert ledger.total().total == 1535  # the CLI's own total_tokens on its last line


def test_opencode_counts_reasoning_as_output_and_agrees_with_its_own_sums(database):
    path, connection = database
    ledger = counted(path, "opencode")
    own = connection.execute(
        "select tokens_input, tokens_output + tokens_reasoning, tokens_cache_write, tokens_cache_read"
        " from session"
    ).fetchone()
    assert ledger.total() == Counts(*own) == Counts(1400, 110, 0, 800)


def test_opencode_export_and_database_give_the_same(database):
    ledger = Ledger()
    opencode.count_export(ledger, "x", json.loads((FIXTURES / "opencode-export.json").read_bytes()))
    assert ledger.by_source() == counted(database[0], "opencode").by_source()


def test_opencode_is_read_while_a_writer_holds_the_database(database):
    path, writer = database
    meter = Meter()
    meter.read_file(str(path), "opencode")
    writer.execute("begin immediate")
    writer.execute("update message set time_updated = time_updated + 1")
    meter.read_file(str(path), "opencode")  # must neither wait for the writer nor make it wait
    writer.execute("update message set data = replace(data, '\"output\":40', '\"output\":140')")
    writer.commit()
    assert meter.ledger.total() == Counts(1400, 110, 0, 800)
    meter.read_file(str(path), "opencode")
    assert meter.ledger.total() == Counts(1400, 310, 0, 800)


def test_opencode_without_a_database_is_no_database(tmp_path):
    path = tmp_path / "opencode.db"
    store = opencode.Store(str(path), Ledger())
    store.sweep()
    path.write_bytes(b"SQLite format 3\x00 and then nothing")
    store.sweep()
    assert store.ledger.sources == []


@BOTH
@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("unknown types", b'{"type":"hologram","payload":7}\n' + claude_line(), 10),
        ("not JSON", b"}{ not json\n\n\x00\x00\n" + claude_line(), 10),
        (
            "invalid UTF-8 in the text",
            claude_line().replace(b'"content":[]', b'"content":["\xff\xfe\xc3"]'),
            10,
        ),
        ("invalid UTF-8 in the id", claude_line().replace(b'"id":"m"', b'"id":"m\xff"'), 10),
        (
            "a control character in a string",
            claude_line().replace(b'"content":[]', b'"content":["\x01"]'),
            10,
        ),
        ("null counts", claude_line().replace(b'"input_tokens":1', b'"input_tokens":null'), 10),
        ("float counts", claude_line().replace(b'"output_tokens":10', b'"output_tokens":10.0'), 10),
        ("absurd counts", claude_line(output=-5) + claude_line("n", output=10**30), 0),
        ("spaces after colons", claude_line(compact=False), 10),
        ("windows line ends", claude_line().replace(b"\n", b"\r\n"), 10),
        ("a byte order mark", b"\xef\xbb\xbf" + claude_line(), 10),
        ("no newline at the end", claude_line().rstrip(b"\n"), 10),
        ("two lines that ran together", claude_line()[:-40] + claude_line("n"), 0),
        ("a number where a word belongs", claude_line(message=5) + claude_line(request=5), 20),
        ("no message id: all count", claude_line(message=None) * 3, 30),
        ("no request id", claude_line(request=None) * 3, 10),
        ("no time", claude_line(timestamp=None), 10),
        (
            "a sub-agent's total in the parent",
            b'{"type":"user","toolUseResult":{"usage":{"output_tokens":99}}}\n',
            0,
        ),
        ("an API error with figures", claude_line(isApiErrorMessage=True), 0),
        (
            "a key inside a text",
            claude_line().replace(b'"content":[]', rb'"content":["the \"output_tokens"]'),
            10,
        ),
        ("deep nesting", b'{"a":' * 3000 + b'"output_tokens"' + b"}" * 3000 + b"\n" + claude_line(), 10),
        ("a list", b'["output_tokens"]\n' + claude_line(), 10),
        ("message is no object", b'{"message":"output_tokens","x":"output_tokens"}\n' + claude_line(), 10),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_odd_lines_lose_nothing_and_raise_nothing(tmp_path, fast, name, raw, expected):
    path = tmp_path / "s.jsonl"
    path.write_bytes(raw)
    assert counted(path, "claude", fast=fast).total().output == expected


@BOTH
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([LINE("m", "r", 9)] * 4, 9, id="the same bytes again"),
        pytest.param([LINE("m", "r", 9), LINE("m", "r", 12)], 12, id="more tokens"),
        pytest.param([LINE("m", "r", 9), LINE("n", "r", 9)], 18, id="another message, same usage"),
        pytest.param([LINE("m", "r", 9), LINE("m", "q", 9)], 18, id="another request, same usage"),
        pytest.param([LINE("m", "r", 9, isSidechain=True), LINE("m", "r", 9)], 9, id="side, main"),
        pytest.param([LINE("m", "r", 9, isSidechain=True), LINE("m", "r", 2)], 2, id="main counts"),
        pytest.param([LINE("m", "r", 9), b"{}\n", LINE("m", "r", 9)], 9, id="others in between"),
        pytest.param([LINE("m", "r", 9), LINE("nm", "r", 9)], 18, id="an id inside another"),
    ],
)
def test_lines_that_are_passed_over_undecoded_would_have_added_nothing(tmp_path, fast, lines, expected):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    assert counted(path, "claude", fast=fast).total().output == expected


def test_most_lines_of_a_message_are_not_decoded(tmp_path):
    decoded = []
    path, ledger = tmp_path / "s.jsonl", Ledger()
    path.write_bytes(claude_line("m") * 5 + claude_line("n") * 5)

    def decode(raw):
        decoded.append(raw)
        return claude.lenient(raw)

    source = ledger.source(describe(str(path), "claude"))
    Tail(str(path), ident_of(path.stat())).read(claude.feeder(ledger, source, (0, 0), decode))
    assert len(decoded) == 2
    assert ledger.total().output == 20


@BOTH
def test_a_line_longer_than_any_block_is_read_whole(tmp_path, fast):
    path = tmp_path / "s.jsonl"
    huge = claude_line("big").replace(b'"content":[]', b'"content":["' + b"x" * 5_000_000 + b'"]')
    path.write_bytes(claude_line("a") + huge + claude_line("b"))
    assert counted(path, "claude", fast=fast).total().output == 30


def test_codex_steps_are_dated_and_survive_a_total_that_starts_anew(tmp_path):
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(codex_lines(1, 5, 5, 2)))
    assert counted(path, "codex").total() == Counts(input=42, output=7, cache_read=28)


def test_codex_copies_of_a_forked_thread_count_once(tmp_path):
    lines = list(codex_lines(1, 5))
    meter = Meter()
    for name, extra in (("a", []), ("b", list(codex_lines(1, 5, 9))[-1:])):
        (tmp_path / name).write_bytes(b"".join(lines + extra))
        meter.read_file(str(tmp_path / name), "codex")
    assert meter.ledger.total().output == 9


def test_codex_gives_each_step_to_the_model_of_its_turn(tmp_path):
    path = tmp_path / "rollout.jsonl"
    turns = [*codex_lines(1, model="one"), *list(codex_lines(1, 4, model="two"))[1:]]
    path.write_bytes(b"".join(turns))
    assert {m: c.output for m, c in by_model(counted(path, "codex")).items()} == {"one": 1, "two": 3}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude.jsonl", "claude"),
        ("claude-limits.jsonl", "claude"),
        ("codex-rollout.jsonl", "codex"),
        ("opencode-export.json", EXPORT),
        ("README.md", ""),
        ("opencode.sql", ""),
        ("missing", ""),
    ],
)
def test_formats_are_told_by_content(name, kind):
    assert sniff(str(FIXTURES / name)) == kind


def test_a_database_is_told_by_content(database):
    assert sniff(str(database[0])) == opencode.KIND


def test_a_pipe_in_a_transcripts_place_is_never_waited_for(tmp_path):
    path = tmp_path / "s.jsonl"
    os.mkfifo(path)
    assert sniff(str(path)) == ""
    assert counted(path, "claude").total() == Counts()


def test_the_session_and_directory_come_from_the_lines():
    source = describe(str(FIXTURES / "codex-rollout.jsonl"), "codex")
    assert (source.session, source.cwd) == ("01a1e1fa-22d5-7da2-b7e1-cf37f550277b", "/home/user/proj/cx1")
    source = describe("/p/-proj-a/1234/subagents/agent-7.jsonl", "claude")
    assert source.session == "1234"


def test_slugs_are_computed_and_never_reversed():
    assert claude.slug("/x/My_Proj.v1 x/é") == "-x-My-Proj-v1-x--"


def roles(path, kind):
    return [(entry.role, entry.tool, entry.text.split("\n")[0]) for entry in file_entries(str(path), kind)]


def test_claude_reads_as_a_conversation():
    found = roles(FIXTURES / "claude.jsonl", "claude")
    assert (Role.TOOL, "Bash", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done") in found
    assert (Role.RESULT, "", "line 1") in found
    assert (Role.THINKING, "", "hmm let me think about this carefully") in found
    limits = roles(FIXTURES / "claude-limits.jsonl", "claude")
    assert any(role is Role.ERROR and "hit your session limit" in text for role, _, text in limits)


def test_codex_reads_as_a_conversation_without_what_it_tells_the_model():
    found = roles(FIXTURES / "codex-rollout.jsonl", "codex")
    assert found[0][0] is Role.USER
    assert found[0][2].startswith("please go slowly")
    assert (Role.TOOL, "exec_command", "for i in 1 2 3 4 5 6; do echo $i; sleep 1; done") in found
    assert any(role is Role.ERROR and "hit your usage limit" in text for role, _, text in found)


def test_opencode_reads_the_same_from_export_and_database(database):
    exported = roles(FIXTURES / "opencode-export.json", EXPORT)
    assert exported == roles(database[0], "opencode")
    assert [role for role, _, _ in exported] == [
        "user",
        "thinking",
        "assistant",
        "tool",
        "result",
        "assistant",
    ]


@pytest.mark.parametrize("reader", [claude.entries, codex.entries])
@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "assistant", "message": {"content": None}},
        {"type": "assistant", "message": {"content": [None, 3, {"type": 5}, {"type": "tool_use"}]}},
        {"type": "user", "message": {"content": {"text": ["x"]}}},
        {"type": "response_item", "payload": {"type": "message", "content": 5}},
        {"type": "response_item", "payload": {"type": "function_call", "arguments": "[[["}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {}}}},
        {"type": "event_msg", "payload": {"type": "task_complete", "error": {}}},
        {"type": "system", "subtype": "turn_duration", "durationMs": "soon"},
        {"type": "system", "timestamp": "yesterday", "content": "x"},
    ],
)
def test_lines_of_no_known_shape_never_raise(reader, line):
    list(reader(line))
