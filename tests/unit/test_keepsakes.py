"""The state directory can be had back as it was last known."""

from __future__ import annotations

import shutil

import pytest

from fleet.supervisor.run import LARGEST, KeepingDisk


@pytest.fixture
def disk(tmp_path):
    made = KeepingDisk(str(tmp_path / "state"))
    made.make_dir(str(tmp_path / "state" / "agents"))
    return made


def swept(tmp_path, disk):
    """What is there after everything was taken and written back."""
    shutil.rmtree(tmp_path / "state")
    count = disk.restore()
    found = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    return count, found


def test_what_was_written_or_read_comes_back(tmp_path, disk):
    disk.write(str(tmp_path / "state" / "agents" / "a.json"), b"one")
    disk.write(str(tmp_path / "state" / "agents" / "a.json"), b"two")
    (tmp_path / "state" / "desired.json").write_bytes(b"by a verb")
    disk.read(str(tmp_path / "state" / "desired.json"))
    expected = {"state/agents/a.json": b"two", "state/desired.json": b"by a verb"}
    assert swept(tmp_path, disk) == (2, expected)
    assert (tmp_path / "state" / "desired.json").stat().st_mode & 0o777 == 0o600


def test_what_was_removed_stays_away_and_what_was_moved_comes_back_under_its_new_name(tmp_path, disk):
    for name in ("gone", "old"):
        disk.write(str(tmp_path / "state" / name), name.encode())
    disk.remove(str(tmp_path / "state" / "gone"))
    disk.rename(str(tmp_path / "state" / "old"), str(tmp_path / "state" / "new"))
    assert swept(tmp_path, disk) == (1, {"state/new": b"old"})


def test_what_is_still_there_is_not_touched_and_what_is_large_elsewhere_or_said_once_not_kept(tmp_path, disk):
    disk.write(str(tmp_path / "state" / "small"), b"ours")
    disk.write(str(tmp_path / "state" / "large"), b"x" * (LARGEST + 1))
    disk.write(str(tmp_path / "beside"), b"elsewhere")
    disk.make_dir(str(tmp_path / "state" / "signals"))
    disk.write(str(tmp_path / "state" / "signals" / "1.json"), b"said once")
    disk.write(str(tmp_path / "state" / "events.jsonl"), b"old")
    (tmp_path / "state" / "small").write_bytes(b"a verb's, newer")
    assert disk.restore() == 0
    assert (tmp_path / "state" / "small").read_bytes() == b"a verb's, newer"
    (tmp_path / "beside").unlink()
    assert swept(tmp_path, disk) == (1, {"state/small": b"ours"})
