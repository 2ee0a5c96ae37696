"""The documents that are made from the key table say what the code does."""

from __future__ import annotations

import re

import pytest

from fleet.config import ConfigError
from fleet.config.explain import explain
from fleet.config.keys import BY_SECTION, SECTIONS
from tools import config_docs


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_in_the_reference_the_schema_and_explained(section):
    header, _ = SECTIONS[section]
    chapter = config_docs.reference().partition(f"## `{header}`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", chapter, re.MULTILINE)
    assert rows == list(BY_SECTION[section])
    shape = config_docs.json_schema()
    for part in section.split("."):
        shape = shape["properties"][part]
        shape = shape.get("items", shape)
        extra = shape.get("additionalProperties")
        shape = extra if isinstance(extra, dict) else shape
    assert list(shape["properties"]) == rows
    for name in rows:
        assert BY_SECTION[section][name].text.partition(". ")[0] in explain(f"{section}.{name}")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("agent[1].wake.interval", "Time between two messages."),
        ("backend.claude.bin", "default  required unless inherited"),
        ("backend.bin", "default  required unless inherited"),
        ("backend.claude", "[backend.NAME]"),
        ("backend.claude.patterns.state", "one of working, idle"),
        ('price."claude-x.1".input', "price.input"),
        ("loop.phases[0].gates[1].timeout", "default  600"),
        ("defaults.watch", "one of none, heal, heal+stall"),
        ("watchdog", "signal_interval"),
        ("stall_idle", "backend.stall_idle"),
        ("version", "backend.dialogs.version"),
        ("log_tokens", "default  false"),
        ("loop.done_marker", 'default  "## DONE"'),
    ],
)
def test_a_key_can_be_asked_for_as_an_error_message_spells_it(key, words):
    assert words in explain(key)


def test_an_unknown_key_is_answered_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r'did you mean "agent\.model"'):
        explain("agent.modle")
    with pytest.raises(ConfigError, match='did you mean "done_marker"'):
        explain("done_maker")


def test_a_section_can_be_asked_for_as_the_file_spells_it():
    assert explain("[[loop.phases]]") == explain("loop.phases")
    assert explain("[backend.claude]") == explain("backend")
