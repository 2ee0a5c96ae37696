"""The record of what happened: complete, in order, and readable after anything (I34, I46)."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.core.words import EventType
from fleet.host.disk import RealDisk
from fleet.store import eventlog as events_module
from fleet.store.eventlog import Begun, Events, read
from tests.unit.memory_disk import MemoryDisk
from tools.docs import written

ROOT = Path(__file__).parents[2]
PATH = "/log/events.jsonl"


def writer(disk, **options):
    return Events(disk, PATH, lambda: 1_700_000_000.1239, **options)


def numbers(disk, **filters):
    return [r["facts"].get("n") for r in read(disk, PATH, **filters)]


def test_a_record_says_what_when_who_and_why():
    disk = MemoryDisk()
    writer(disk, tick=lambda: 7).record(EventType.AGENT_DIED, agent="a", reason="exit 1", code=1, idle_s=2.5)
    assert json.loads(disk.files[PATH]) == {
        "v": 1,
        "seq": 1,
        "at": "2023-11-14T22:13:20.124Z",
        "ts": 1700000000.124,
        "type": "agent.died",
        "agent": "a",
        "reason": "exit 1",
        "tick": 7,
        "facts": {"code": 1, "idle_s": 2.5},
    }


def test_an_event_outside_the_closed_set_is_a_mistake():
    with pytest.raises(ValueError):
        writer(MemoryDisk()).record("agent.exploded")


def test_no_event_is_named_by_a_text():
    """A word of the closed set is found by mypy when it is misspelt; a text would be found by a tick."""
    words = ROOT / "fleet" / "core" / "words.py"
    for file in {*(ROOT / "fleet").rglob("*.py")} - {words}:
        texts = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
        assert not texts & set(EventType), file


def test_every_type_in_the_set_is_recorded_by_somebody():
    assert {e.value for e in EventType} - written() == set()


def test_types_are_dotted_and_unique():
    values = [e.value for e in EventType]
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", v) for v in values)
    assert [e.name for e in EventType] == [v.upper().replace(".", "_") for v in values]


def test_numbers_go_on_after_a_restart():
    disk = MemoryDisk()
    writer(disk).record("agent.ready", n=1)
    writer(disk).record("agent.ready", n=2)
    assert [r["seq"] for r in read(disk, PATH)] == [1, 2]


def test_a_torn_last_line_costs_only_itself():
    disk = MemoryDisk()
    writer(disk).record("agent.ready", n=1)
    whole = disk.files[PATH]
    other = whole.replace(b"ready", b"state")
    for cut in range(1, len(whole)):
        disk.files[PATH] = whole + other[:cut]
        writer(disk).record("agent.ready", n=2)
        assert numbers(disk)[0] == 1
        assert numbers(disk)[-1] == 2
        assert len(numbers(disk)) == 2 + (cut == len(whole) - 1)  # only the line break was missing


def test_foreign_lines_are_passed_over():
    disk = MemoryDisk()
    objects = b'{"type": 3}\n{"type":"x.y"}\n{"type":"x.y","ts":"now"}\n'
    disk._put(PATH, b"\xff\xfe\n[1]\n" + objects + b"null\n" + b"[" * 99999 + b"\n")
    writer(disk).record("agent.ready", n=1)
    assert numbers(disk) == [1]


def test_what_a_full_disk_refused_is_written_when_there_is_space_again():
    """I35."""
    disk = MemoryDisk()
    events = writer(disk)
    events.record("agent.ready", n=1)
    disk.fail_at, disk.sticky, disk.torn = 1, True, 0.1
    events.record("agent.ready", n=2)
    events.record("agent.ready", n=3)
    assert "2 records wait" in events.trouble
    disk.fail_at, disk.sticky = 0, False
    events.record("agent.ready", n=4)
    assert [n for n in numbers(disk) if n != 2] == [1, 3, 4]
    assert 2 in numbers(disk)
    assert events.trouble == ""


@pytest.mark.parametrize("share", [n / 40 for n in range(41)])
@pytest.mark.parametrize("other", [False, True])
def test_what_a_full_disk_took_is_not_written_again(share, other):
    disk = MemoryDisk()
    events = writer(disk)
    events.record("agent.ready", n=1)
    disk.fail_at, disk.sticky, disk.torn = 1, True, share
    for n in (2, 3, 4):
        events.record("agent.ready", n=n)
    disk.fail_at, disk.sticky = 0, False
    if other:
        writer(disk).record("agent.died", n=0)
    events.record("agent.ready", n=5)
    events.record("agent.ready", n=6)
    assert sorted(whole_lines(disk)) == sorted([1, 2, 3, 4, 5, 6] + [0] * other)
    assert numbers(disk) == whole_lines(disk)


def whole_lines(disk):
    """Every record that is in the file, as often as it is there."""
    found = [events_module.parse(line) for line in disk.files[PATH].split(b"\n")]
    return [r["facts"]["n"] for r in found if r is not None]


def test_too_many_waiting_records_cost_the_oldest_and_are_counted(monkeypatch):
    monkeypatch.setattr(events_module, "WAITING_MAX", 3)
    disk = MemoryDisk()
    events = writer(disk)
    disk.fail_at, disk.sticky = 1, True
    for n in range(5):
        events.record("agent.ready", n=n)
    assert "3 records wait in memory, 2 are lost" in events.trouble
    disk.fail_at, disk.sticky = 0, False
    events.record("agent.ready", n=5)
    assert numbers(disk) == [3, 4, 5]


@pytest.mark.parametrize("share", [n / 40 for n in range(41)])
def test_a_record_that_had_to_be_on_disk_and_was_cut_harms_no_other(share):
    disk = MemoryDisk()
    events = writer(disk)
    events.record("agent.ready", n=1)
    disk.fail_at, disk.torn = 1, share
    with pytest.raises(OSError, match="No space"):
        events.record("agent.ready", n=2, sync=True)
    events.record("agent.ready", n=3)
    assert whole_lines(disk) in ([1, 3], [1, 2, 3])


def test_a_record_that_must_be_on_disk_fails_loudly_and_is_not_written_later():
    disk = MemoryDisk()
    events = writer(disk)
    events.record("agent.ready", n=1)
    disk.fail_at = 1
    with pytest.raises(OSError, match="No space"):
        events.record("agent.ready", n=2, sync=True)
    events.record("agent.ready", n=3)
    assert numbers(disk) == [1, 3]


def test_size_is_bounded_and_order_kept_across_rotation(monkeypatch):
    """I34."""
    monkeypatch.setattr(events_module, "CAP", 2000)
    disk = MemoryDisk()
    events = writer(disk)
    for n in range(200):
        events.record("agent.ready", n=n)
    assert len(disk.files) == events_module.KEEP
    assert all(len(raw) < 2200 for raw in disk.files.values())
    kept = numbers(disk)
    assert kept == list(range(200 - len(kept), 200))
    assert len(kept) > 40


def test_reading_filters_by_time_agent_and_family():
    disk = MemoryDisk()
    clock = [10.0]
    events = Events(disk, PATH, lambda: clock[0])
    for n, (kind, agent) in enumerate([("agent.died", "a"), ("agent.healed", "b"), ("phase.set", "")]):
        clock[0] = 10.0 + n
        events.record(kind, agent=agent, n=n)
    assert numbers(disk, since=11.0) == [1, 2]


def test_secrets_never_reach_the_file():
    """I40, SEC-15."""
    disk = MemoryDisk()
    events = Events(disk, PATH, time.time, secrets=["hunter2hunter2"])
    events.record(
        "agent.died", reason="bad hunter2hunter2", env={"K": ["sk-ant-api03-abcdefghijklmnopqrstuvwx"]}
    )
    assert b"hunter2" not in disk.files[PATH]
    assert b"abcdefgh" not in disk.files[PATH]


def test_two_processes_writing_at_once_lose_and_mix_nothing(tmp_path):
    program = (
        "import sys, time\n"
        "from fleet.store.eventlog import Events\n"
        "from fleet.host.disk import RealDisk\n"
        "events = Events(RealDisk(), sys.argv[1], time.time)\n"
        "for n in range(300): events.record('agent.ready', agent=sys.argv[2], n=n)\n"
    )
    path = str(tmp_path / "events.jsonl")
    both = [subprocess.Popen([sys.executable, "-c", program, path, who], cwd=ROOT) for who in "ab"]
    assert [p.wait() for p in both] == [0, 0]
    for who in "ab":
        found = [r["facts"]["n"] for r in read(RealDisk(), path) if r["agent"] == who]
        assert found == list(range(300))


# Effects


def test_effects_are_announced_with_one_flush_and_in_their_order():
    disk = MemoryDisk()
    events = Events(disk, "/s/events.jsonl", lambda: 5.0)
    events.begin([Begun("start", "a", "run1", "died"), Begun("start", "b", "run2", "up")])
    assert [(r["type"], r["agent"], r["reason"], r["facts"]) for r in read(disk, "/s/events.jsonl")] == [
        ("effect.begun", "a", "died", {"effect": "start", "run": "run1"}),
        ("effect.begun", "b", "up", {"effect": "start", "run": "run2"}),
    ]
    assert disk.syncs == 1


def test_what_could_not_be_announced_is_not_on_record_and_its_caller_is_told():
    disk = MemoryDisk()
    events = Events(disk, "/s/events.jsonl", lambda: 5.0)
    events.begin([Begun("start", "a", "run1", "died")])
    disk.fail_at, disk.torn = 1, 0.5
    with pytest.raises(OSError, match="No space"):
        events.begin([Begun("start", "b", "run2", "died"), Begun("start", "c", "run3", "died")])
    events.begin([Begun("press", "d", "run4", "submit")])
    found = [r["agent"] for r in read(disk, "/s/events.jsonl")]
    assert found in (["a", "d"], ["a", "b", "d"]), "only a line that was whole may stay"
