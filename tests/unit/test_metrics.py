"""`status --prometheus`: what a scraper reads, and that the document about it is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet.verbs.metrics import METRICS, exposition

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def row(name, **more):
    shown = {
        "name": name, "kind": "loop", "desired": "up", "state": "RUNNING", "detail": "WORKING", "pid": 7,
        "since": 5.5, "until": None, "restarts": 2, "drift": [], "messages": 1,
    }  # fmt: skip
    return {**shown, **more}


def facts(*rows, **more):
    shown = {
        "version": "1.2",
        "project": {"prefix": "p-"},
        "watchdog": {"state": "running", "last_tick": 1234567890.25},
        "loop": {"index": 1, "total": 3, "complete": False, "held": ""},
        "agents": list(rows),
        "services": [],
        "problems": ["one"],
    }
    return {**shown, **more}


RECORD = {
    "phase": "p1",
    "agents": {"a": {"models": {"m": {"input": 5, "output": 7}}}, "b": None},
}
FULL = facts(row("a"), row("b", detail="LIMITED", until=99.0, pid=None, drift=["model"]))


def read(text):
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_a_scraper_reads_every_figure_back():
    found = read(exposition(FULL, [RECORD, RECORD]))
    who = (("kind", "loop"), ("name", "b"))
    assert found["fleet_watchdog_heartbeat_timestamp_seconds", ()] == 1234567890.25
    assert found["fleet_agent_up", who] == 0
    assert found["fleet_agent_limited_until_timestamp_seconds", who] == 99
    assert found["fleet_agent_drifted_keys", who] == 1
    assert found["fleet_agent_restarts_total", who] == 2
    assert found["fleet_phase_index", ()] == 1
    state = (("detail", "LIMITED"), ("kind", "loop"), ("name", "b"), ("state", "RUNNING"))
    assert found["fleet_agent_state", state] == 1
    tokens = {k: v for k, v in found.items() if k[0] == "fleet_tokens_total"}
    assert tokens["fleet_tokens_total", (("kind", "output"), ("model", "m"), ("name", "a"))] == 14
    assert not any(("name", "b") in key[1] for key in tokens), "no transcript is not the same as no tokens"


def test_every_metric_is_printed_with_its_type_and_none_beyond_the_table():
    text = exposition(FULL, [RECORD])
    families = {f.name for f in text_string_to_metric_families(text)}
    assert families == {name.removesuffix("_total") for name in METRICS}
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert types == [(name, kind) for name, (kind, _) in METRICS.items()]


def test_the_document_names_every_metric_as_it_is():
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", text, re.MULTILINE)
    assert {name: (kind, text) for name, kind, _, text in rows} == METRICS
    documented = {name: {w for w in labels.split(", ") if w} for name, _, labels, _ in rows}
    for family in text_string_to_metric_families(exposition(FULL, [RECORD])):
        for sample in family.samples:
            assert documented[sample.name] == set(sample.labels), sample.name


@pytest.mark.parametrize("hostile", ['a"b', "a\\b", "a\nfleet_problems 99", "a}", "\u202eevil", "é{,="])
def test_no_name_breaks_out_of_its_label(hostile):
    found = read(exposition(facts(row(hostile), loop=None)))
    assert found["fleet_agent_up", (("kind", "loop"), ("name", hostile))] == 1
    assert found["fleet_problems", ()] == 1


def test_a_fleet_that_never_ran_has_metrics_too():
    found = read(exposition(facts(watchdog={"state": "stopped", "last_tick": None}, loop=None)))
    assert found["fleet_watchdog_up", ()] == 0
    assert not any(name.startswith("fleet_phase") for name, _ in found)


def test_a_complete_sequence_stands_past_its_last_phase():
    done = {"index": 3, "total": 3, "complete": True, "held": ""}
    assert read(exposition(facts(loop=done)))["fleet_phase_index", ()] == 3
