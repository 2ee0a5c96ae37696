"""The bench harness: a missed goal is seen, ratios are of neighbours, and the page shows every figure."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from bench.common import Figure, alternate, percentile, ratio
from bench.run import CHANGED, LIBTMUX, PROCESSES, Run, document, plot, table

FIGURES = [
    Figure("area", "fast", 1.5, "ms", "other", 250.0, ">= 200 times", met=True),
    Figure("area", "slow", 1234.0, "ms", goal="<= 10 ms", met=False),
    Figure("more", "shown", 3.0, "MB"),
]


def test_every_figure_is_in_the_table_and_a_missed_goal_is_loud():
    lines = list(table(FIGURES))
    assert len(lines) == 2 + len(FIGURES) + 2
    assert "| slow | 1,234 ms |  |  | <= 10 ms | **missed** |" in lines
    assert "| fast | 1.50 ms | other | 250 | >= 200 times | met |" in lines


def test_ratios_are_of_measurements_made_right_after_one_another():
    assert ratio([10.0, 100.0, 30.0], [1.0, 10.0, 3.0]) == 10.0
    order = []
    ways = {name: lambda n=name: order.append(n) or 1.0 for name in "ab"}
    assert alternate(ways, 2) == {"a": [1.0, 1.0], "b": [1.0, 1.0]}
    assert order == ["a", "b", "a", "b"]
    assert percentile([float(n) for n in range(100)], 0.95) == 95.0


def test_the_plot_is_a_picture_that_loads_nothing():
    looks = {n: {LIBTMUX: 20.0 * n, PROCESSES: 5.0 * n, CHANGED: 0.05 * n} for n in (10, 100, 1000)}
    picture = plot(looks)
    ET.fromstring(picture)
    assert "href" not in picture
    assert picture.count("<circle") == 9


def test_the_page_holds_versions_date_figures_and_peers():
    run = Run(quick=True)
    run.faults = [{"tool": "other 1.0", "fault": "agent killed", "noticed": "0.50 s", "healed": "0.60 s"}]
    page = document(run, FIGURES)
    assert "| other 1.0 | agent killed | 0.50 s | 0.60 s |" in page
    assert "tmux" in page
    assert "| shown | 3 MB |" in page
    assert {"snapshot", "deaths", "lifecycle", "status", "costs", "tokens", "sim", "peers"} < set(run.areas())
