"""Totals of what the real CLIs wrote, and of what nobody should have written."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import tracemalloc

import pytest

from fleet.backends.claude import usage as claude
from fleet.backends.claude.files import slug
from fleet.backends.codex import usage as codex
from fleet.backends.ledger import Counts, Ledger
from fleet.backends.opencode import usage as opencode
from fleet.backends.opencode.usage import EXPORT
from fleet.backends.readers import Role
from fleet.reading import Tail, ident_of
from fleet.tokens.files import describe, sniff
from fleet.tokens.follow import file_entries
from fleet.tokens.meter import Meter
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_line, codex_lines

LINE = claude_line


def _requestless(ident, given, output):
    """A line as some gateways leave it: no request id."""
    line = claude_line(ident, None, output)
    return line.replace(b'"input_tokens":1', f'"input_tokens":{given}'.encode())


def _progress(output):
    """What a sub-agent said, as a line of the conversation that waits for it."""
    said = json.loads(claude_line("p", "q", output))
    line = {"type": "progress", "sessionId": "s", "data": {"type": "agent_progress", "message": said}}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


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


def test_opencode_messages_whose_session_is_gone_still_count(database):
    path, connection = database
    connection.execute("pragma foreign_keys=off")
    connection.execute("delete from session")
    connection.commit()
    assert counted(path, "opencode").total() == Counts(1400, 110, 0, 800)


def test_opencode_rows_that_are_no_text_hide_nothing(database):
    path, connection = database
    names = "rowid, id, session_id, time_created, time_updated, data"  # it comes first
    row = "-1, 'msg_bad', (select id from session), 1, 1, cast(x'7bff' as text)"
    connection.execute(f"insert into message ({names}) values ({row})")
    connection.commit()
    assert counted(path, "opencode").total() == Counts(1400, 110, 0, 800)


def opencode_message(ident, **over):
    tokens = {"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 50, "write": 7}}
    return {"id": ident, "sessionID": "ses_1", "role": "assistant", "modelID": "m", "tokens": tokens, **over}


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("message", "id, session_id, data"),
        ("message", "id, session_id, time_updated, data"),
        ("session_message", "id, session_id, type, time_created, data"),
    ],
)
def test_opencode_stores_of_other_versions_count_too(tmp_path, table, columns):
    names = columns.split(", ")
    told = opencode_message("msg_1", model={"id": "m", "providerID": "p"})
    del told["modelID"], told["role"]
    cells = {"id": "msg_1", "session_id": "ses_1", "type": "assistant", "data": json.dumps(told)}
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table {table} ({columns})")
        marks = ", ".join("?" for _ in names)
        connection.execute(f"insert into {table} values ({marks})", [cells.get(name, 1) for name in names])
        if "type" in names:
            cells |= {"id": "msg_2", "type": "user"}
            connection.execute(
                f"insert into {table} values ({marks})", [cells.get(name, 1) for name in names]
            )
    connection.close()
    assert by_model(counted(path, "opencode")) == {"m": Counts(100, 15, 7, 50)}


@pytest.mark.parametrize(
    ("tokens", "output"),
    [
        ({"output": 10, "reasoning": 5}, 15),
        ({"output": 10, "reasoning": 5, "total": 15}, 15),
        ({"output": 10, "reasoning": 5, "total": 10}, 10),
        ({"output": 10, "reasoning": None, "total": "?"}, 10),
        ({"output": 10, "cache": None}, 10),
        (None, 0),
    ],
)
def test_opencode_reasoning_counts_once(tokens, output):
    assert opencode.split(tokens)[1] == output


def test_opencode_without_a_database_is_no_database(tmp_path):
    path = tmp_path / "opencode.db"
    store = opencode.Database(str(path), Ledger())
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
        ("spaces before colons", claude_line().replace(b'":', b'" : '), 10),
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
        ("an API error with figures", claude_line(isApiErrorMessage=True), 10),
        ("what the CLI wrote itself", claude_line().replace(b"claude-opus-4-8", b"<synthetic>"), 0),
        ("a gateway's one id for all", _requestless("gw", 5, 9) + _requestless("gw", 7, 9), 18),
        ("blocks of a gateway's message", _requestless("gw", 5, 1) + _requestless("gw", 5, 9), 9),
        ("no request id, a prompt that grew", _requestless("msg_1", 5, 1) + _requestless("msg_1", 7, 9), 9),
        ("a sub-agent's step, told by its parent", _progress(77), 77),
        (
            "the same, and again in its own file",
            _progress(3) + claude_line("p", "q", 77, isSidechain=True),
            77,
        ),
        ("a step that is no message", _progress(77).replace(b'"message":{"id"', b'"note":{"id"'), 0),
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
@pytest.mark.parametrize("left", ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_usage_without_its_output_counts_what_it_has(tmp_path, fast, left):
    path = tmp_path / "s.jsonl"
    line = json.loads(claude_line())
    line["message"]["usage"] = {left: 70}
    path.write_text(json.dumps(line) + "\n")
    assert counted(path, "claude", fast=fast).total().total == 70


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
        pytest.param([LINE("m", "r", 9, isSidechain=True)] * 3, 9, id="a sub-agent's blocks"),
        pytest.param(
            [LINE("m", "r", n, isSidechain=side) for n, side in ((9, True), (9, False), (90, True))],
            9,
            id="side, main, a larger side",
        ),
        pytest.param(
            [LINE("m", "r", 9, isSidechain=True), LINE("n", "r", 9, isSidechain=True)],
            18,
            id="two sub-agents",
        ),
        pytest.param(
            [LINE("m", "r", 9), b"{}\n", LINE("n", "r", 9), b"{}\n", LINE("m", "r", 9)], 18, id="short"
        ),
    ],
)
def test_lines_that_are_passed_over_undecoded_would_have_added_nothing(tmp_path, fast, lines, expected):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    assert counted(path, "claude", fast=fast).total().output == expected


@BOTH
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"cache_creation_input_tokens": 7}, 7),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}}, 7),
        ({"cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_5m_input_tokens": 7}}, 7),
        ({"cache_creation_input_tokens": 7, "cache_creation": {}}, 7),
        ({"cache_creation_input_tokens": 7, "cache_creation": None}, 7),
        ({"cache_creation_input_tokens": None, "cache_creation": {"ephemeral_1h_input_tokens": 7}}, 7),
    ],
)
def test_cache_writes_told_by_lifetime_are_not_added_to_their_sum(tmp_path, fast, usage, expected):
    path = tmp_path / "s.jsonl"
    line = json.loads(claude_line())
    line["message"]["usage"] = {"output_tokens": 1, **usage}
    path.write_text(json.dumps(line))
    assert counted(path, "claude", fast=fast).total() == Counts(output=1, cache_write=expected)


@BOTH
def test_the_model_that_was_asked_for_advice_is_billed_beside_the_message(tmp_path, fast):
    path = tmp_path / "s.jsonl"
    line = json.loads(claude_line())
    asked = {"type": "advisor_message", "model": "adviser", "input_tokens": 100, "output_tokens": 20}
    line["message"]["usage"]["iterations"] = [{"type": "message", "model": None, "output_tokens": 10}, asked]
    path.write_text((json.dumps(line) + "\n") * 2)
    found = by_model(counted(path, "claude", fast=fast))
    assert found == {"claude-opus-4-8": Counts(1, 10, 2, 3), "adviser": Counts(100, 20)}


@BOTH
def test_the_fast_mode_of_a_model_is_billed_as_another_one(tmp_path, fast):
    path = tmp_path / "s.jsonl"
    speeds = (b'"standard"', b"null", b'"fast"')
    marked = [
        LINE(str(n)).replace(b'"usage":{', b'"usage":{"speed":' + speed + b",")
        for n, speed in enumerate(speeds)
    ]
    path.write_bytes(b"".join(marked))
    found = by_model(counted(path, "claude", fast=fast))
    assert {model: counts.output for model, counts in found.items()} == {
        "claude-opus-4-8": 20,
        "claude-opus-4-8-fast": 10,
    }


@BOTH
@pytest.mark.parametrize(
    ("stamp", "day"),
    [
        ("2026-11-16T23:59:59.999Z", "2026-11-16"),
        ("2026-11-16T23:30:00-05:00", "2026-11-17"),
        (1794873599000, "2026-11-16"),
        ("soon", "unknown"),
        (None, "unknown"),
        (1e300, "unknown"),
    ],
)
def test_days_are_universal_whatever_the_clock_of_the_line(tmp_path, fast, stamp, day):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_line(timestamp=stamp))
    cells = counted(path, "claude", fast=fast).by_source()
    assert [found for source in cells for _, found in source] == [day]


@BOTH
@pytest.mark.parametrize("pad", range(650, 1100, 7))
def test_usage_is_found_however_far_from_the_end_it_stands(tmp_path, fast, pad):
    path = tmp_path / "s.jsonl"
    lines = [LINE("a", "r", 10, tail="x" * pad), LINE("b", "q", 10), LINE("c", "p", 10, tail="x" * pad)]
    path.write_bytes(b"".join(lines))
    assert counted(path, "claude", fast=fast).total().output == 30


@BOTH
@pytest.mark.parametrize("pad", [0, 5000])
def test_a_user_quoted_in_an_answer_hides_nothing(tmp_path, fast, pad):
    path = tmp_path / "s.jsonl"
    quoted = b'"content":[{"input":{"messages":[{"role":"user","content":"' + b"x" * pad + b'"}]}}]'
    lines = [LINE("a", "r", 10, tail="x" * pad), LINE("b", "q", 10), LINE("c", "p", 10, tail="x" * pad)]
    path.write_bytes(b"".join(lines).replace(b'"content":[]', quoted))
    assert counted(path, "claude", fast=fast).total().output == 30


def test_what_the_user_said_is_searched_at_its_end_only(tmp_path):
    path, decoded = tmp_path / "s.jsonl", []
    said = json.dumps(
        {"type": "user", "message": {"role": "user", "content": [{"output_tokens": 1}, "x" * 3000]}}
    )
    path.write_text(said.replace(" ", "") + "\n")
    ledger = Ledger()
    source = ledger.source(describe(str(path), "claude"))
    Tail(str(path), ident_of(path.stat())).read(claude.feeder(ledger, source, (0, 0), decoded.append))
    assert decoded == []


@pytest.mark.parametrize("side", [False, True])
def test_most_lines_of_a_message_are_not_decoded(tmp_path, side):
    decoded = []
    path, ledger = tmp_path / "s.jsonl", Ledger()
    path.write_bytes(claude_line("m", isSidechain=side) * 5 + claude_line("n", isSidechain=side) * 5)

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


def test_a_huge_line_takes_little_more_than_its_own_size(tmp_path):
    path, size = tmp_path / "s.jsonl", 12_000_000
    path.write_bytes(claude_line().replace(b'"content":[]', b'"content":["' + b"x" * size + b'"]'))
    meter = Meter()
    tracemalloc.start()
    try:
        meter.read_file(str(path), "claude")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert meter.ledger.total().output == 10
    assert peak < 1.2 * size


def test_codex_steps_are_dated_and_survive_a_total_that_starts_anew(tmp_path):
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(codex_lines(1, 5, 5, 2)))
    assert counted(path, "codex").total() == Counts(input=42, output=7, cache_read=28)


def test_codex_copies_of_a_thread_count_once(tmp_path):
    lines = list(codex_lines(1, 5))
    meter = Meter()
    for name, extra in (("a", []), ("b", list(codex_lines(1, 5, 9))[-1:])):
        (tmp_path / name).write_bytes(b"".join(lines + extra))
        meter.read_file(str(tmp_path / name), "codex")
    assert meter.ledger.total().output == 9


def test_codex_threads_that_look_alike_are_two_all_the_same(tmp_path):
    meter = Meter()
    for name in "ab":
        (tmp_path / name).write_bytes(b"".join(codex_lines(1, 5, session=name)))
        meter.read_file(str(tmp_path / name), "codex")
    assert meter.ledger.total().output == 10


def test_codex_totals_that_come_again_after_a_new_start_count_again(tmp_path):
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(codex_lines(1, 5, 1, 5)))
    assert counted(path, "codex").total().output == 10


SPAWNED = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "parent"}}}}


@pytest.mark.parametrize("order", ["parent first", "fork first"])
@pytest.mark.parametrize(
    ("meta", "totals", "lasts", "expected"),
    [
        pytest.param({"forked_from_id": "parent"}, [1, 5, 7], [1, 4, 2], 2, id="a copy of the parent first"),
        pytest.param({"forked_from_id": "parent"}, [7], [2], 2, id="nothing copied, the total goes on"),
        pytest.param({"forked_from_id": "parent"}, [1, 5, 9], [1, 4, 4], 4, id="as the parent went on"),
        pytest.param({"forked_from_id": "parent"}, [], [], 0, id="nothing yet"),
        pytest.param({"forked_from_id": "gone"}, [3, 4], [3, 1], 4, id="a parent that is not there"),
        pytest.param({"forked_from_id": "child"}, [3, 4], [3, 1], 4, id="its own parent"),
        pytest.param(SPAWNED, [3, 4], [3, 1], 4, id="a sub-agent that began afresh"),
        pytest.param(SPAWNED, [1, 5, 6], [1, 4, 1], 1, id="a sub-agent with its parent's words"),
    ],
)
def test_a_codex_fork_counts_only_what_it_used_itself(tmp_path, order, meta, totals, lasts, expected):
    day = tmp_path / "sessions" / "2026" / "11" / "16"
    day.mkdir(parents=True)
    parent, child = day / "rollout-1-parent.jsonl", day / "rollout-2-child.jsonl"
    parent.write_bytes(b"".join(codex_lines(1, 5, 9, session="parent")))  # 9 comes after the fork
    child.write_bytes(
        b"".join(codex_lines(*totals, session="child", lasts=lasts, began=1.5, after=60, **meta))
    )
    meter = Meter()
    for path in (parent, child) if order == "parent first" else (child, parent):
        meter.read_file(str(path), "codex")
    assert meter.ledger.total().output == 9 + expected


@pytest.mark.parametrize(
    ("tell", "expected"),
    [
        pytest.param("record, compacted", 30, id="what no total shows counts"),
        pytest.param("compacted, record", 30, id="in any order"),
        pytest.param("record, compacted, record, compacted", 30, id="once"),
        pytest.param("record, total, compacted", 25, id="what a total shows does not count again"),
        pytest.param("record", 5, id="what compacted nothing waits for its total"),
        pytest.param("compacted", 5, id="a compaction that tells nothing"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_what_a_codex_compaction_took_counts_once(tmp_path, tell, expected, whole):
    first, *_, then = codex_lines(5, 25)
    usage = {"input_tokens": 0, "output_tokens": 20 if "total" in tell else 25}
    if "total" in tell:
        usage["input_tokens"], usage["cached_input_tokens"] = 200, 80
    asked = {"response_id": "resp_1", "usage": usage}
    if whole:
        asked["thread_token_usage"] = {"input_tokens": 250, "cached_input_tokens": 100, "output_tokens": 25}
    lines = {
        "record": codex_line("token_usage_record", asked),
        "compacted": codex_line("compacted", {"compaction_response_id": "resp_1", "message": ""}),
        "total": then,
    }
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(
        b"".join([first, *list(codex_lines(5))[1:], *(lines[word] for word in tell.split(", "))])
    )
    assert counted(path, "codex").total().output == expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (None, Counts()),
        ({"total_token_usage": None, "last_token_usage": None}, Counts()),
        (
            {"total_token_usage": {"input_tokens": 9, "output_tokens": 1}, "last_token_usage": None},
            Counts(9, 1),
        ),
        ({"total_token_usage": {"input_tokens": 9, "cached_input_tokens": 20}}, Counts(cache_read=9)),
        ({"total_token_usage": {"input_tokens": 9, "cache_write_input_tokens": 4}}, Counts(5, 0, 4)),
        ({"total_token_usage": {"output_tokens": 9, "reasoning_output_tokens": 5}}, Counts(output=9)),
        ({"total_token_usage": {"total_tokens": 250_000}}, Counts()),
        ({"total_token_usage": [1, 2]}, Counts()),
    ],
)
def test_codex_figures_of_any_shape(tmp_path, info, expected):
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(codex_line("event_msg", {"type": "token_count", "info": info}))
    assert counted(path, "codex").total() == expected


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
    assert slug("/x/My_Proj.v1 x/é") == "-x-My-Proj-v1-x--"


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


@pytest.mark.parametrize(
    ("reader", "line", "told"),
    [
        (
            claude.entries,
            {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat: ..."}},
            [(Role.SYSTEM, "Caveat: ...")],
        ),
        (
            claude.entries,
            json.loads(_progress(1).replace(b'"content":[]', b'"content":"on it"')),
            [],
        ),
        (
            codex.entries,
            json.loads(codex_line("event_msg", {"type": "error", "message": "no"})),
            [(Role.ERROR, "no")],
        ),
        (
            codex.entries,
            json.loads(codex_line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})),
            [(Role.SYSTEM, "turn stopped: interrupted")],
        ),
        (
            codex.entries,
            json.loads(codex_line("response_item", {"type": "web_search_call", "action": {"query": "tmux"}})),
            [(Role.TOOL, "tmux")],
        ),
        (
            codex.entries,
            json.loads(
                codex_line(
                    "response_item",
                    {"type": "message", "role": "user", "content": [{"text": "<user_instructions>"}]},
                )
            ),
            [],
        ),
    ],
    ids=["cli's own words", "a sub-agent's step, repeated", "error", "stopped", "search", "instructions"],
)
def test_lines_that_are_neither_question_nor_answer(reader, line, told):
    assert [(entry.role, entry.text) for entry in reader(line)] == told


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


HOSTILE = (
    {"usage": {"output_tokens": 5}},
    {"role": "user", "content": "x" * 1500},
    {"isSidechain": True, "message": {"id": "msg_101", "usage": {"output_tokens": 7}}, "requestId": "r"},
    'of "usage":{"output_tokens":900},"requestId":"req_2"',
    'ends in \\"output_tokens',
)


def hostile_line(dice, number):
    """One line. Its neighbours have the same few messages, requests and lengths, lines further off others."""
    message, request = (f"{what}_{number // 4 + dice.randrange(100, 102)}" for what in ("msg", "req"))
    line = json.loads(claude_line(message, request, dice.randrange(10, 14)))
    line["isSidechain"] = dice.random() < 0.3
    line["message"]["role"] = dice.choice(["assistant"] * 4 + ["user"])
    blocks = dice.choices(HOSTILE, k=dice.choice([0, 0, 1, 2]))
    line["message"]["content"] = [{"type": "tool_use", "input": block} for block in blocks]
    line["message"]["usage"] = line["message"].pop("usage")  # as the CLI writes it: after the content
    if line["message"]["role"] == "user":
        del line["message"]["usage"]
        line["toolUseResult"] = {"usage": {"output_tokens": 3}, "text": "x" * dice.choice([0, 1500])}
    if dice.random() < 0.1:
        del line["requestId"]
    if dice.random() < 0.1:
        line = {"isSidechain": False, "type": "progress", "data": {"message": line}}
    elif dice.random() < 0.1:
        line["cwd"] = "x" * dice.randrange(2000)
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("seed", range(20))
def test_the_scanner_counts_what_decoding_every_line_counts(tmp_path, seed):
    """I38. Repeated lines, sub-agents' copies, and tools that are given what looks like a usage."""
    dice = random.Random(seed)
    lines = []
    for number in range(300):
        lines += [hostile_line(dice, number)] * dice.choice([1, 1, 2, 3])
    path, every = tmp_path / "s.jsonl", Ledger()
    path.write_bytes(b"".join(lines))
    source = every.source(describe(str(path), "claude"))
    for line in lines:
        if found := claude.lenient(line):
            ident, request, model, day, counts, side, advice = found
            assert not advice
            every.add(source, ident, request, counts, model, day, side)
    scanned = counted(path, "claude", fast=dice.random() < 0.5)
    assert (scanned.by_source(), scanned.messages()) == (every.by_source(), every.messages())
    assert scanned.messages() > 100
