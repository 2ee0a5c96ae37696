"""Everything in one table: what it costs, beside what else there is, in one run on one machine.

    python bench/run.py [--quick] [--json] [--write] [--only AREA,...]

Areas: snapshot, watchdog, deaths, lifecycle, status, costs, tokens, sim, peers. Figures of one area are
measured in turns, so their ratios hold on a busy machine; milliseconds do not. --quick takes small fleets and
few rounds, below two minutes. Exit 1 when a goal is missed. --write puts it all into docs/benchmarks.md and
growth.svg.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
for name in ("TMUX", "TMUX_PANE", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"):
    os.environ.pop(name, None)

from bench import costs, deaths, lifecycle, peers, sim, snapshot, status, tokens, watchdog  # noqa: E402
from bench.common import ROOT, Figure, versions  # noqa: E402

LIBTMUX, PROCESSES = "libtmux, session by session", "one process a capture"
CHANGED, LISTED = "control: list, changed captured", "control: list only"
TIMES = {100: 300, 1000: 800}  # how much cheaper a look must be than libtmux, session by session
QUICK_AREAS = ("snapshot", "watchdog", "deaths", "lifecycle", "status", "costs", "tokens", "sim")


class Run:
    """One run. `looks` keeps the snapshot figures for the ratios and the plot."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.sizes = [10, 50] if quick else [10, 100, 500, 1000]
        self.looks: dict[int, dict[str, float]] = {}
        self.faults: list[dict[str, str]] = []

    def areas(self) -> dict[str, Callable[[], list[Figure]]]:
        """By name, in the order in which they run."""
        quick = self.quick
        return {
            "snapshot": self._snapshot,
            "watchdog": self._watchdog,
            "deaths": lambda: deaths.figures(20 if quick else 200),
            "lifecycle": lambda: lifecycle.figures(30 if quick else 100, 1 if quick else 3),
            "status": lambda: status.figures(30 if quick else 100, 7 if quick else 21),
            "costs": lambda: costs.figures(1 if quick else 5),
            "tokens": self._tokens,
            "sim": lambda: sim.figures(1 if quick else 4, 6.0 if quick else 24.0),
            "peers": self._peers,
        }

    def _snapshot(self) -> list[Figure]:
        found = []
        for size in self.sizes:
            self.looks[size] = look = snapshot.measure(size, 3 if self.quick else 9)
            area = f"one look, {size} panes"
            times = look[LIBTMUX] / look[CHANGED]
            least = TIMES.get(size)
            goal, met = (f">= {least} times", times >= least) if least else ("", None)
            found += [
                Figure(area, "list, and what changed (5 %)", look[CHANGED], "ms", LIBTMUX, times, goal, met),
                Figure(area, PROCESSES, look[PROCESSES], "ms", CHANGED, look[PROCESSES] / look[CHANGED]),
                Figure(area, "floor: list only", look[LISTED], "ms", CHANGED, look[LISTED] / look[CHANGED]),
            ]
        return found

    def _watchdog(self) -> list[Figure]:
        beside = {size: look[LIBTMUX] for size, look in self.looks.items()}
        return watchdog.figures(self.sizes, 2 if self.quick else 5, 10.0 if self.quick else 60.0, beside)

    def _tokens(self) -> list[Figure]:
        if self.quick:
            return self._tokens_of(20, 10, 3)
        return self._tokens_of(200, tokens.SWEEP_FILES, 5) + self._tokens_of(1000, 125, 3)

    def _tokens_of(self, megabytes: int, files: int, rounds: int) -> list[Figure]:
        with tempfile.TemporaryDirectory(prefix="aotest-bench-") as home:
            tokens.Generator().write(home, megabytes, files)
            found, sweep = tokens.cold(home, rounds), tokens.warm(home)
        area, rows = f"tokens of {megabytes} MB", found["rows"]
        still, peak = sweep["nothing_new_ms"], max(rows[way]["peak_mb"] for way in tokens.WAYS)
        figures = [
            Figure(area, "nothing new, in process", still, "ms", goal="<= 2 ms", met=still <= 2),
            Figure(area, "memory", peak, "MB", goal="<= 150", met=peak <= 150),
        ]
        if "ratios" not in found:
            took = rows["ours, 2 processes"]["wall_ms"]
            note = "ccusage cannot be installed here"
            return [*figures, Figure(area, "two processes", took, "ms", note=note)]
        for way, least in tokens.WAYS.items():
            times = found["ratios"][way]["wall"]
            judged = None if self.quick else times >= least
            wall = rows[way]["wall_ms"]
            goal = f">= {least:g} times faster"
            figures.append(Figure(area, way, wall, "ms", f"ccusage {tokens.CCUSAGE}", times, goal, judged))
        same = bool(found["equal"])
        return [*figures, Figure(area, "totals equal", float(same), "", goal="equal to ccusage's", met=same)]

    def _peers(self) -> list[Figure]:
        figures, self.faults = peers.figures(*((8.0, 1) if self.quick else (20.0, 2)))
        return figures


def table(figures: list[Figure]) -> Iterator[str]:
    """Markdown."""
    yield "| what | | beside | ratio | goal | |"
    yield "|---|---|---|---|---|---|"
    area = ""
    for f in figures:
        if f.area != area:
            area = f.area
            yield f"| **{area}** | | | | | |"
        shown = f"{f.value:,.0f}" if abs(f.value) >= 100 or f.value == int(f.value) else f"{f.value:.2f}"
        ratio = "" if f.ratio is None else f"{f.ratio:,.0f}" if f.ratio >= 100 else f"{f.ratio:.2f}"
        met = {True: "met", False: "**missed**", None: ""}[f.met]
        yield f"| {f.name} | {shown} {f.unit} | {f.beside or f.note} | {ratio} | {f.goal} | {met} |"


def plot(looks: dict[int, dict[str, float]]) -> str:
    """Growth with the number of panes, both axes logarithmic, as a picture without anything to load."""
    from math import log10

    ways = {LIBTMUX: "#c0392b", PROCESSES: "#d68910", CHANGED: "#1e8449"}
    sizes = sorted(looks)
    high = max(log10(look[w]) for look in looks.values() for w in ways)
    low = min(log10(look[w]) for look in looks.values() for w in ways)
    first, last = log10(sizes[0]), log10(sizes[-1])

    def at(size: int, value: float) -> str:
        x = 70 + 500 * (log10(size) - first) / max(last - first, 1e-9)
        y = 300 - 260 * (log10(value) - low) / max(high - low, 1e-9)
        return f"{x:.0f},{y:.0f}"

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 340"',
        ' font-family="sans-serif" font-size="12">',
        '<rect width="760" height="340" fill="white"/>',
    ]
    for size in sizes:
        x = at(size, 10**low).split(",")[0]
        parts.append(f'<text x="{x}" y="320" text-anchor="middle">{size} panes</text>')
    for way, colour in ways.items():
        points = " ".join(at(size, looks[size][way]) for size in sizes)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for size in sizes:
            x, y = at(size, looks[size][way]).split(",")
            label = f"{looks[size][way]:,.0f} ms" if looks[size][way] >= 10 else f"{looks[size][way]:.1f} ms"
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
            words = f'text-anchor="middle" fill="{colour}">{label}</text>'
            parts.append(f'<text x="{x}" y="{int(y) - 8}" {words}')
        x, y = at(sizes[-1], looks[sizes[-1]][way]).split(",")
        parts.append(f'<text x="{int(x) + 40}" y="{int(y) + 4}" fill="{colour}">{way[:26]}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def document(run: Run, figures: list[Figure]) -> str:
    """docs/benchmarks.md."""
    about = ", ".join(f"{key} {value}" for key, value in versions().items())
    today = dt.datetime.now(dt.UTC).date().isoformat()
    lines = [
        "# Benchmarks",
        f"<!-- written by `python bench/run.py --write` on {today} -->",
        "",
        f"Measured on {today}: {about}.",
        "Everything in one run, in turns: ratios hold where milliseconds do not."
        + (" A quick run: small fleets, few rounds." if run.quick else ""),
        "",
        "<!-- run: no (takes a quiet machine and twenty minutes) -->",
        "```sh",
        "python bench/run.py        # --quick: below two minutes; --json: for a program; --write: this page",
        "```",
        "",
        *table(figures),
    ]
    if run.looks:
        lines += ["", "## Growth", "", "![one look at the whole fleet, by number of panes](growth.svg)"]
        lines += ["", "Milliseconds by number of panes, both axes logarithmic; 5 % of the panes had changed."]
    if run.faults:
        lines += [
            "",
            "## The same three faults under other tools",
            "",
            "One agent: killed, its session killed, frozen in place (SIGSTOP). Ours counts a frozen agent as",
            "stalled after `stall_idle` (5 s here) at its prompt. Without tmux there is no session to kill.",
            "",
            "| tool | fault | noticed after | a new agent runs after |",
            "|---|---|---|---|",
            *(f"| {r['tool']} | {r['fault']} | {r['noticed']} | {r['healed']} |" for r in run.faults),
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    for option in ("--quick", "--json", "--write"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--only", default="", metavar="AREA,...")
    asked = parser.parse_args()
    run = Run(quick=asked.quick)
    known = run.areas()
    wanted = [a for a in asked.only.split(",") if a] or (QUICK_AREAS if asked.quick else list(known))
    if unknown := [a for a in wanted if a not in known]:
        parser.error(f"no area {unknown[0]}; there are: {', '.join(known)}")
    figures: list[Figure] = []
    failed: list[str] = []
    for area in (a for a in known if a in wanted):
        print(f"{area} ...", file=sys.stderr, flush=True)
        try:
            figures += known[area]()
        except Exception:  # an area that cannot be measured must not cost the hour of the others
            traceback.print_exc()
            failed.append(area)
    missed = [f for f in figures if f.met is False]
    if asked.json:
        told = {"versions": versions(), "figures": [f.plain() for f in figures], "faults": run.faults}
        print(json.dumps(told | {"missed": len(missed)}, indent=1))
    else:
        print("\n".join(table(figures)))
        for row in run.faults:
            print(f"| {row['tool']} | {row['fault']} | {row['noticed']} | {row['healed']} |")
    if asked.write:
        (ROOT / "docs" / "benchmarks.md").write_text(document(run, figures), encoding="utf-8")
        if run.looks:
            (ROOT / "docs" / "growth.svg").write_text(plot(run.looks), encoding="utf-8")
    for f in missed:
        said = f"{f.value:.2f} {f.unit}, ratio {f.ratio}; goal {f.goal}"
        print(f"missed: {f.area}: {f.name}: {said}", file=sys.stderr)
    for area in failed:
        print(f"not measured: {area}; why stands above", file=sys.stderr)
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
