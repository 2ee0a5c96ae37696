"""Any file, cut at any byte, read in any number of steps, gives the totals of the whole (I38)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fleet.tokens.meter import Meter
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_line, codex_lines

CLAUDE = [
    claude_line("a", "1", 10),
    claude_line("a", "1", 30),
    claude_line("b", "2", 5),
    claude_line("b", "9", 70, isSidechain=True),
    claude_line(None, None, 7),
    claude_line(None, None, 7),
    claude_line("ü", "2", 5, timestamp="2026-11-17T00:00:00Z"),
    claude_line("c", "3", 5).replace(b'"content":[]', b'"content":["\xff\xfe ' + b"x" * 300 + b'"]'),
    b'{"type":"user","message":{"role":"user","content":"the \\"output_tokens"}}\n',
    b'{"data":{"message":' + claude_line("p", "q", 8).strip() + b"}}\n",
    claude_line("gateway", None, 6),
    b"not json \x00\n",
    b"\n",
]
USED = {"response_id": "resp_1", "usage": {"output_tokens": 7}}
CODEX = [
    *codex_lines(1, 5, 5, 9),
    *list(codex_lines(9, 12, model="gpt-6.1-sol"))[1:],
    codex_line("token_usage_record", USED),
    codex_line("compacted", {"compaction_response_id": "resp_1"}),
    b"not json \x00\n",
]

files = st.one_of(
    st.tuples(st.just("claude"), st.lists(st.sampled_from(CLAUDE), max_size=8).map(b"".join)),
    st.tuples(st.just("codex"), st.lists(st.sampled_from(CODEX), max_size=9).map(b"".join)),
    st.tuples(st.just("codex"), st.just(b"".join(CODEX))),
)


def cells_of(meter):
    return {
        (model, day, counts) for cells in meter.ledger.by_source() for (model, day), counts in cells.items()
    }


def read_in_steps(kind, data, cuts, *, fast):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        meter = Meter(fast=fast)
        written = 0
        with open(path, "wb") as handle:
            for cut in [*sorted(cuts), len(data)]:
                handle.write(data[written:cut])
                handle.flush()
                written = max(written, cut)
                meter.read_file(str(path), kind)
        return cells_of(meter), meter.ledger.messages()


@given(file=files, data=st.data(), fast=st.booleans())
@settings(max_examples=150)
@example(file=("claude", CLAUDE[0]), data=None, fast=True)
def test_any_cut_read_in_any_steps_gives_the_whole(file, data, fast):
    kind, raw = file
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=6)) if data else range(len(raw))
    assert read_in_steps(kind, raw, cuts, fast=fast) == read_in_steps(kind, raw, [], fast=False)


@pytest.mark.parametrize("name", ["claude.jsonl", "claude-limits.jsonl", "codex-rollout.jsonl"])
def test_recorded_files_read_in_many_steps_give_the_whole(name):
    raw = (FIXTURES / name).read_bytes()
    kind = name.split("-", maxsplit=1)[0].removesuffix(".jsonl")
    steps = range(0, len(raw), max(1, len(raw) // 97))
    assert read_in_steps(kind, raw, steps, fast=True) == read_in_steps(kind, raw, [], fast=False)


@pytest.mark.parametrize("at", range(0, len(CLAUDE[0]) + 1, 7))
def test_a_torn_line_counts_nothing_until_it_is_whole(tmp_path, at):
    path = tmp_path / "s.jsonl"
    path.write_bytes(CLAUDE[0][:at])
    meter = Meter()
    meter.read_file(str(path), "claude")
    assert meter.ledger.total().output == (10 if at >= len(CLAUDE[0]) - 1 else 0)


KEYED = st.lists(st.sampled_from([line for line in CLAUDE if b'"id":null' not in line]), max_size=5).map(
    b"".join
)


@given(old=KEYED, new=KEYED, in_place=st.booleans())
@settings(max_examples=120)
def test_a_file_rewritten_or_replaced_between_two_looks_loses_nothing(old, new, in_place):
    """Truncated, shrunk, grown past the old end again, or another file under the same name."""
    end = len(old)
    assume(len(new) <= end or new[:end] == old or new[end - 64 : end] != old[-64:])  # no trace would be left
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(old)
        meter, both = Meter(), Meter()
        meter.read_file(str(path), "claude")
        if in_place:
            path.write_bytes(new)
        else:
            (Path(folder) / "t").write_bytes(new)
            os.replace(Path(folder) / "t", path)
        os.utime(path, ns=(1, 1))
        meter.read_file(str(path), "claude")
        for name, content in (("0", old), ("1", new)):
            (Path(folder) / name).write_bytes(content)
            both.read_file(str(Path(folder) / name), "claude")
        assert meter.ledger.total() == both.ledger.total()
        assert meter.ledger.messages() == both.ledger.messages()
