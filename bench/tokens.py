"""What summing up transcripts costs, beside ccusage on the same files in the same run.

    python bench/tokens.py [--quick] [--json] [--rounds N]

Transcripts are generated: code as text, one to four lines a message, a third of them with partial figures
first, some copied into another file. --quick keeps to 200 MB; else 1 GB is measured too. All ways take
turns, each as a whole process, so the ratios hold on a busy machine; figures are medians, `best` compares the
best runs. A busy machine hides how many processors a way needs: there the processor ratio tells. ccusage is
the pinned release of the npm package, put into a cache on first use; without npm only our own rows are shown.
Totals are compared, not only times.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from fleet.backends.readers import Wanted  # noqa: E402
from fleet.tokens.meter import Meter  # noqa: E402

CCUSAGE = "20.0.24"
FIELDS = {"input": "inputTokens", "output": "outputTokens", "cache_write": "cacheCreationTokens",
          "cache_read": "cacheReadTokens"}  # fmt: skip
SWEEP_FILES = 50
WAYS = {"ours": 1.5, "ours, 2 processes": 2.0}  # and how many times faster than ccusage each must be


class Generator:
    """Transcripts as a busy fleet leaves them, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        sources = sorted(glob.glob(os.path.join(sysconfig.get_path("stdlib"), "*.py")))[:120]
        self.text = "".join(_read(path) for path in sources)

    def words(self, size: int) -> str:
        start = self.rng.randrange(len(self.text) - size)
        return self.text[start : start + size]

    def name(self, prefix: str = "") -> str:
        return f"{prefix}{self.rng.getrandbits(96):024x}"

    def write(self, home: str, megabytes: int, files: int) -> None:
        copies: list[str] = []
        for number in range(files):
            folder = os.path.join(home, "projects", f"-proj-{number % 10}")
            os.makedirs(folder, exist_ok=True)
            session, left = self.name(), megabytes * 1_000_000 // files
            with open(os.path.join(folder, f"{session}.jsonl"), "w", encoding="utf-8") as handle:
                while left > 0:
                    for line in (self.result(session, number), *self.message(session, number)):
                        left -= handle.write(line)
                        if self.rng.random() < 0.04:
                            copies.append(line)
        with open(os.path.join(folder, "copies.jsonl"), "w", encoding="utf-8") as handle:
            handle.writelines(copies)

    def stamp(self) -> str:
        return f"2026-11-1{self.rng.randrange(10)}T0{self.rng.randrange(10)}:00:00.000Z"

    def result(self, session: str, number: int) -> str:
        text = self.words(int(self.rng.paretovariate(1.2) * 1000) % 30_000)
        text += ' the "output_tokens" of "usage' if self.rng.random() < 0.2 else ""
        content = [{"tool_use_id": "toolu_1", "type": "tool_result", "content": text}]
        return _line(
            {"parentUuid": self.name(), "isSidechain": False, "type": "user", "cwd": f"/proj/{number % 10}",
             "message": {"role": "user", "content": content}, "uuid": self.name(), "sessionId": session,
             "timestamp": self.stamp(), "toolUseResult": {"stdout": text, "stderr": ""}}
        )  # fmt: skip

    def message(self, session: str, number: int) -> list[str]:
        rng, lines = self.rng, []
        ident, request, stamp = self.name("msg_"), self.name("req_"), self.stamp()
        count, output, partial = rng.randrange(1, 5), rng.randrange(10, 900), rng.random() < 0.3
        write, read, given = rng.randrange(3000), rng.randrange(90_000), rng.randrange(1, 9)
        for part in range(count):
            usage = {
                "input_tokens": given, "cache_creation_input_tokens": write, "cache_read_input_tokens": read,
                "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 1 if partial and part < count - 1 else output, "service_tier": "standard",
            }  # fmt: skip
            call = {"file_path": "/a/b.py", "new_string": self.words(rng.randrange(50, 3000))}
            content = [{"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": call}]
            message = {
                "model": "claude-opus-4-8", "id": ident, "type": "message", "role": "assistant",
                "content": content, "stop_reason": None, "stop_sequence": None, "usage": usage,
            }  # fmt: skip
            line = {
                "parentUuid": self.name(), "isSidechain": False, "userType": "external", "sessionId": session,
                "cwd": f"/proj/{number % 10}", "version": "2.1.197", "message": message, "requestId": request,
                "type": "assistant", "uuid": self.name(), "timestamp": stamp,
            }  # fmt: skip
            lines.append(_line(line))
        return lines


def _line(data: dict[str, object]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()


def ccusage() -> list[str]:
    """The command, installed into a cache on first use; empty when that is not possible here."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    prefix = os.path.join(base, "agent-fleet-bench", f"ccusage-{CCUSAGE}")
    binary = os.path.join(prefix, "node_modules", ".bin", "ccusage")
    npm = shutil.which("npm")
    if not os.path.exists(binary) and npm and shutil.which("node"):
        os.makedirs(prefix, exist_ok=True)
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", prefix, f"ccusage@{CCUSAGE}"]
        subprocess.run(words, capture_output=True, timeout=600, check=False)
    if not os.path.exists(binary):
        return []
    subprocess.run(
        [binary, "--version"], capture_output=True, check=False
    )  # it makes its own binary executable
    native = glob.glob(os.path.join(prefix, "node_modules", "@ccusage", "*", "bin", "ccusage"))
    return [*(native[:1] or [binary]), "claude", "daily", "--json", "--offline"]


def spent(words: list[str], home: str) -> tuple[float, float, float, dict[str, int]]:
    """Wall seconds, processor seconds, peak megabytes and totals of one whole process."""
    env = {**os.environ, "CLAUDE_CONFIG_DIR": home, "HOME": home}
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
        assert process.stdout is not None
        raw = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words[0]} failed with {process.returncode}")
    document = json.loads(raw)
    totals = document["total"] if "total" in document else _theirs(document["totals"])
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, totals


def _theirs(totals: dict[str, int]) -> dict[str, int]:
    return {ours: totals[theirs] for ours, theirs in FIELDS.items()}


def cold(home: str, rounds: int) -> dict[str, object]:
    """Every way in turns over the same files."""
    ours = [
        sys.executable,
        os.path.join(ROOT, "agentlog.py"),
        "usage",
        "--json",
        os.path.join(home, "projects"),
    ]
    ways = {"ours": [*ours, "--jobs", "1"], "ours, 2 processes": [*ours, "--jobs", "2"]}
    if other := ccusage():
        ways["ccusage"] = other
    runs: dict[str, list[tuple[float, float, float, dict[str, int]]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, words in ways.items():
            runs[name].append(spent(words, home))
    totals = [run[3] for found in runs.values() for run in found]
    rows = {
        name: {
            "wall_ms": round(statistics.median(run[0] for run in found) * 1000),
            "cpu_ms": round(statistics.median(run[1] for run in found) * 1000),
            "peak_mb": round(max(run[2] for run in found)),
        }
        for name, found in runs.items()
    }
    result: dict[str, object] = {
        "rows": rows,
        "totals": totals[0],
        "equal": all(t == totals[0] for t in totals),
    }
    if "ccusage" in runs:
        result["ratios"] = {
            name: {
                "wall": round(_ratio(runs["ccusage"], runs[name], 0), 2),
                "best": round(min(run[0] for run in runs["ccusage"]) / min(run[0] for run in runs[name]), 2),
                "cpu": round(_ratio(runs["ccusage"], runs[name], 1), 2),
            }
            for name in WAYS
        }
    return result


def _ratio(theirs: list[tuple[float, ...]], ours: list[tuple[float, ...]], what: int) -> float:
    """The median of the ratios of runs that were made right after one another."""
    return statistics.median(a[what] / b[what] for a, b in zip(theirs, ours, strict=True))


def warm(home: str) -> dict[str, float]:
    """A sweep in process: with nothing new, and with 20 new lines in each of 10 files. Milliseconds."""
    wanted = [Wanted(f"a{n}", "claude", f"/proj/{n}", env={"CLAUDE_CONFIG_DIR": home}) for n in range(10)]
    meter = Meter()
    meter.sweep(wanted)
    time.sleep(2.1)  # until the directories count as settled
    meter.sweep(wanted)
    nothing = statistics.median(_timed(lambda: meter.sweep(wanted)) for _ in range(30))
    lines = Generator(2)
    for path in sorted(glob.glob(os.path.join(home, "projects", "*", "*.jsonl")))[:10]:
        with open(path, "a", encoding="utf-8") as handle:
            for _ in range(8):
                handle.writelines(lines.message("s", 0))
    some = _timed(lambda: meter.sweep(wanted))
    return {
        "files": len(meter.ledger.sources),
        "nothing_new_ms": round(nothing, 3),
        "new_lines_ms": round(some, 3),
    }


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


GOALS = (
    "goals: 1.5x ccusage alone, 2x with two processes, equal totals, nothing new <= 2 ms, <= 150 MB for 1 GB"
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="200 MB only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    report: dict[str, object] = {}
    for label, megabytes, files in (("200 MB", 200, SWEEP_FILES), ("1 GB", 1000, 125))[
        : 1 if args.quick else 2
    ]:
        with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
            Generator().write(home, megabytes, files)
            report[label] = {**cold(home, args.rounds), "sweep": warm(home)}
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    for label, result in report.items():
        _show(label, result)
    print(GOALS)
    return 0


def _show(label: str, result: dict[str, dict[str, dict[str, float]]]) -> None:
    verdict = "equal" if result["equal"] else "DIFFER"
    print(f"{label}: {sum(result['totals'].values()):,} tokens, totals {verdict}")
    for name, row in result["rows"].items():
        ratio = result.get("ratios", {}).get(name)
        beside = (
            f"   {ratio['wall']}x ccusage (best {ratio['best']}x, processor {ratio['cpu']}x)" if ratio else ""
        )
        cost = f"{row['wall_ms']:>6} ms  processor {row['cpu_ms']:>6} ms  {row['peak_mb']:>4} MB"
        print(f"  {name:<18} {cost}{beside}")
    sweep = result["sweep"]
    print(f"  sweep of {sweep['files']} files: nothing new {sweep['nothing_new_ms']} ms,", end=" ")
    print(f"10 files with new lines {sweep['new_lines_ms']} ms\n")


if __name__ == "__main__":
    sys.exit(main())
