"""The record of a run: whoever started it wrote it, and asking for it again costs a stat."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from fleet.core.memory import Run
from fleet.host.disk import RealDisk
from fleet.store.memories import Records


@pytest.fixture
def records(tmp_path):
    (tmp_path / "runs").mkdir()
    disk = RealDisk()
    return Records(SimpleNamespace(disk=disk, path=lambda name: f"{tmp_path}/{name}")), disk


def test_a_run_that_a_verb_started_meanwhile_is_the_newest(records):
    ours, _ = records
    theirs = Records(ours._house)
    ours.save_run(Run("r1", "s", 1.0))
    assert ours.run("s").id == "r1"
    theirs.save_run(Run("r2", "s", 1.0))
    assert ours.run("s").id == "r2"


def test_an_unchanged_record_is_not_read_again(records, monkeypatch):
    ours, disk = records
    ours.save_run(Run("r1", "s", 1.0))
    first = ours.run("s")
    monkeypatch.setattr(disk, "read", lambda *_: pytest.fail("it was read"))
    assert ours.run("s") is first


def test_a_record_that_cannot_be_read_is_none(records):
    ours, _ = records
    assert ours.run("s") is None
    with open(ours._house.path("runs/s.json"), "w", encoding="utf-8") as file:
        file.write("{")
    os.chmod(file.name, 0o600)
    assert ours.run("s") is None
