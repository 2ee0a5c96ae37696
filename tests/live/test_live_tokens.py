"""Our totals are those of ccusage on the same claude directories, rule by rule and in bulk."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

from fleet.transcripts.finder import files_below
from fleet.transcripts.meter import Meter
from tests.unit.transcript_samples import claude_line

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


def theirs(bench, home):
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(home), "HOME": str(home)}
    done = subprocess.run(bench.ccusage(), env=env, capture_output=True, text=True, check=True)
    totals = json.loads(done.stdout)["totals"]
    return {ours: totals[name] for ours, name in bench.FIELDS.items()}


def ours(home):
    meter = Meter()
    for path in files_below([str(home / "projects")]):
        meter.read_file(path, "claude")
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
