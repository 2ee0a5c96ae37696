"""Our totals are those of ccusage on the same claude directories, rule by rule and in bulk."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from fleet.tokens.meter import Meter
from fleet.tokens.totals import files_below
from tests.unit.transcript_samples import FIXTURES, claude_line, codex_lines

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
MAIN, SIDE = False, True


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_tokens", ROOT / "bench" / "tokens.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not module.ccusage():
        pytest.skip(
            "ccusage cannot be installed here (npm or node is missing, or the registry is out of reach)"
        )
    return module


def theirs(bench, home, cli="claude"):
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(home), "CODEX_HOME": str(home), "HOME": str(home)}
    env["OPENCODE_DATA_DIR"] = str(home)
    words = [cli if word == "claude" else word for word in bench.ccusage()]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    totals = json.loads(done.stdout)["totals"]
    figures = {ours: totals[name] for ours, name in bench.FIELDS.items()}
    # Reasoning that stands beside output is in their sum, but in none of their columns.
    figures["output"] += totals["totalTokens"] - sum(figures.values())
    return figures


def ours(home, places=("projects",), kind="claude"):
    meter = Meter()
    for path in files_below([str(home / place) for place in places]):
        meter.read_file(path, kind)
    return meter.ledger.total().as_dict()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([("a", "m", "r", 9, MAIN)] * 3, id="repeated"),
        pytest.param([("a", "m", "r", 1, MAIN), ("a", "m", "r", 9, MAIN)], id="partial first"),
        pytest.param([("a", "m", "r", 9, MAIN), ("a", "m", "r", 1, MAIN)], id="partial last"),
        pytest.param([("a", "m", "r", 9, MAIN), ("b", "m", "r", 9, MAIN)], id="copied into another file"),
        pytest.param([("a", "m", "r", 9, MAIN), ("a", "m", "q", 5, MAIN)], id="another request"),
        pytest.param([("a", "m", "r", 5, MAIN), ("b", "m", "r", 90, SIDE)], id="side chain after"),
        pytest.param([("a", "m", "q", 90, SIDE), ("b", "m", "r", 5, MAIN)], id="side chain before"),
        pytest.param([("a", "m", "r", 3, SIDE), ("a", "m", "q", 7, SIDE)], id="side chains alone"),
        pytest.param([("a", None, "r", 3, MAIN)] * 2, id="no message id"),
        pytest.param([("a", "m", None, 3, MAIN)] * 2, id="no request id"),
        pytest.param(
            [("a/subagents/agent-1", "m", "r", 3, SIDE), ("a", "n", "q", 7, MAIN)], id="sub-agent file"
        ),
    ],
)
def test_each_rule_is_ccusages(bench, tmp_path, lines):
    for name, message, request, output, side in lines:
        path = tmp_path / "projects" / "-p" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.loads(claude_line(message, request, output, isSidechain=side))
        if message is None:
            del line["message"]["id"]
        with open(path, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(line, separators=(",", ":")) + "\n")
    assert ours(tmp_path) == theirs(bench, tmp_path)


def test_a_heap_of_transcripts_has_the_same_totals(bench, tmp_path):
    bench.Generator(7).write(str(tmp_path), 12, 9)
    totals = ours(tmp_path)
    assert totals == theirs(bench, tmp_path)
    assert totals["cache_read"] > 1_000_000


def message(rng, session):
    """The lines of one message in one of the shapes the CLI has had, for its file and perhaps another one."""
    ident, request = f"msg_{rng.getrandbits(40):x}", rng.choice([f"req_{rng.getrandbits(40):x}"] * 5 + [None])
    side, output, write = rng.random() < 0.2, rng.randrange(2, 900), rng.randrange(9)
    usage = {"input_tokens": rng.randrange(9), "cache_read_input_tokens": rng.randrange(9)}
    shape = rng.randrange(3)
    usage |= {"cache_creation_input_tokens": write} if shape < 2 else {}
    usage |= (
        {"cache_creation": {"ephemeral_5m_input_tokens": write - 1, "ephemeral_1h_input_tokens": 1}}
        if shape and write
        else {}
    )
    usage |= {"speed": rng.choice(["standard", "fast"])} if rng.random() < 0.3 else {}
    if rng.random() < 0.2:
        asked = {"type": "advisor_message", "model": "adviser", "input_tokens": 5, "output_tokens": 6}
        usage["iterations"] = [{"type": "message", "input_tokens": 1, "output_tokens": 2}, asked]
    lines = []
    for part in range(blocks := rng.randrange(1, 4)):
        line = json.loads(claude_line(ident, request, session=session, isSidechain=side))
        partial = part < blocks - 1 and rng.random() < 0.5
        line["message"]["usage"] = {**usage, "output_tokens": 1 if partial else output}
        line["message"]["content"] = [{"type": "text", "text": "x" * rng.randrange(2000) + 'of "usage'}]
        if side and request and rng.random() < 0.5:
            said = {**line, "isSidechain": True}
            lines.append({"type": "progress", "sessionId": session, "data": {"message": said}})
        lines.append(line)
    return lines


@pytest.mark.parametrize("seed", range(6))
def test_heaps_of_every_shape_have_the_same_totals(bench, tmp_path, seed):
    """Resumed copies, sub-agents, partial figures, advice, junk and a torn end, in one heap."""
    rng = random.Random(seed)
    for session in (f"s{number}" for number in range(6)):
        written = [line for _ in range(40) for line in message(rng, session)]
        kept = [line for line in written if line.get("requestId")]
        homes = {f"{session}.jsonl": written, f"{session}/subagents/agent-a.jsonl": rng.sample(kept, 20)}
        homes[f"{session}-resumed.jsonl"] = [
            {**line, "sessionId": f"{session}r"} for line in rng.sample(kept, 20)
        ]
        for name, lines in homes.items():
            path = tmp_path / "projects" / f"-p{rng.randrange(3)}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = [json.dumps(line, separators=(",", ":")) for line in lines]
            texts.insert(
                rng.randrange(len(texts)), rng.choice(["", "{", "null", '["output_tokens":', "\x00"])
            )
            path.write_text("\n".join([*texts, texts[0][: rng.randrange(1, 200)]]))
    assert ours(tmp_path) == theirs(bench, tmp_path)


@pytest.mark.parametrize(
    "threads",
    [
        pytest.param([([1, 5, 9], [1, 4, 4], {})], id="one"),
        pytest.param([([1, 5, 5, 2, 3], [1, 4, 4, 2, 1], {})], id="counted anew"),
        pytest.param(
            [([1, 5, 9], [1, 4, 4], {}), ([1, 5, 7], [1, 4, 2], {"forked_from_id": "0"})], id="fork"
        ),
        pytest.param([([1, 5, 9], [1, 4, 4], {}), ([7], [2], {"forked_from_id": "0"})], id="bare fork"),
    ],
)
def test_codex_rollouts_have_the_same_totals(bench, tmp_path, threads):
    day = tmp_path / "sessions" / "2026" / "11" / "16"
    day.mkdir(parents=True)
    for number, (totals, lasts, meta) in enumerate(threads):
        began = {"began": 1.5, "after": 60} if meta else {}
        lines = codex_lines(*totals, lasts=lasts, session=str(number), **began, **meta)
        texts = [json.dumps(json.loads(line), separators=(",", ":")) for line in lines]
        (day / f"rollout-{number}.jsonl").write_text("\n".join([*texts, ""]))
    assert ours(tmp_path, ["sessions"], "codex") == theirs(bench, tmp_path, "codex")


def test_recorded_sessions_have_the_same_totals(bench, tmp_path):
    rollouts = tmp_path / "sessions"
    rollouts.mkdir()
    lines = (FIXTURES / "codex-rollout.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.dumps(json.loads(line), separators=(",", ":")) for line in lines]
    (rollouts / "rollout-1.jsonl").write_text("\n".join([*texts, ""]))
    assert ours(tmp_path, ["sessions"], "codex") == theirs(bench, tmp_path, "codex")
    shutil.rmtree(rollouts)
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.executescript((FIXTURES / "opencode.sql").read_text(encoding="utf-8"))
    connection.close()
    assert ours(tmp_path, ["opencode.db"], "opencode") == theirs(bench, tmp_path, "opencode")
