"""The shipped profiles: complete, consistent, and each claim tied to a capture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet.backends import corpus as selftest
from fleet.backends import profiles
from fleet.backends.layout import Layout
from fleet.backends.screen_reader import _REGIONS, RANK, read
from fleet.config.backend_tables import _given, profile_values
from fleet.config.backend_tables import shipped as raw_profile
from fleet.config.problems import Findings
from fleet.config.tables import Reader
from fleet.core.model import LANDMARKS, REGIONS, Backend
from fleet.core.seen import ScreenState

CLIS = selftest.recorded()


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_means_the_same_with_and_without_a_project(name):
    assert profiles.load(name) == Backend(name=name, **profile_values(name, raw_profile(name)))


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_names_only_states_regions_and_landmarks_that_exist(name):
    backend = profiles.load(name)
    for pattern in backend.patterns:
        assert ScreenState(pattern.state) in RANK
        assert pattern.region in REGIONS, pattern.name
        re.compile(pattern.re)
    Layout(dict(backend.screen))
    documented = Path(profiles.HERE, "layout.py").read_text().split('"""')[1]
    assert all(re.search(rf"\b{key}\b", documented) for key, _ in backend.screen)


@pytest.mark.parametrize("cli", CLIS)
def test_the_capture_a_pattern_names_is_decided_by_that_pattern(cli):
    """A claim without a capture names no version either."""
    backend = profiles.load(cli)
    corpus = {capture.name: capture for capture in selftest.captures(cli)}
    proved = 0
    for pattern in backend.patterns:
        if pattern.fixture:
            one = corpus[pattern.fixture]
            reading = read(backend, one.text, now=one.taken, zone=one.zone)
            alike = {p.name for p in backend.patterns if p.state == pattern.state}
            assert reading.state == pattern.state, pattern.name
            assert reading.pattern in alike
            assert pattern.version, pattern.name
            proved += 1
    for dialog in backend.dialogs:
        if dialog.fixture:
            one = corpus[dialog.fixture]
            assert read(backend, one.text, now=one.taken, zone=one.zone).dialog == dialog.name
            assert dialog.version, dialog.name
    assert proved


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_a_real_cli_says_how_it_starts_resumes_submits_and_what_it_needs(cli):
    """R044-R067, SEC-14."""
    backend = profiles.load(cli)
    assert backend.bin == cli
    assert backend.process_name == cli
    assert backend.supports_resume
    assert "{id}" in backend.resume_flag
    assert "{model}" in backend.model_flag
    assert backend.submit_key
    assert backend.transcript == cli
    assert backend.signals[-1] == "screen"
    assert backend.declares_idle
    assert backend.version
    assert {"HTTPS_PROXY", "SSH_AUTH_SOCK"} <= set(backend.env_pass)
    assert all(dialog.fix for dialog in backend.dialogs)


def test_the_patterns_together_know_every_state_a_screen_can_show():
    known = {p.state for name in ("claude", "codex", "opencode") for p in profiles.load(name).patterns}
    assert known >= {
        "working",
        "idle",
        "limited",
        "retrying",
        "error",
        "wedged",
        "auth",
        "context",
        "starting",
        "dead",
    }


def test_what_a_profile_may_name_is_what_there_is():
    """The closed sets stand in the model, where a config is checked; what they name is code."""
    rows = Path(profiles.HERE, "layout.py").read_text().split('"""')[1].splitlines()
    columns = " ".join(row[:26] for row in rows if row.startswith("  "))
    assert set(re.findall(r"\w+", columns)) == set(LANDMARKS)
    assert set(REGIONS) == set(_REGIONS)


@pytest.mark.parametrize("name", profiles.names())
def test_a_shipped_profile_stands_every_check_that_a_projects_own_must(name):
    report = Findings()
    _given(raw_profile(name), (), Reader(report, strict=True))
    assert not report.errors
