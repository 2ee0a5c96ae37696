"""Backends: shipped profiles, what a project changes in them, and what one invocation changes."""

from __future__ import annotations

import dataclasses

import pytest

from fleet import config
from fleet.backends.profiles import names, written
from fleet.config import ConfigError, backend_tables
from fleet.config.problems import Findings
from fleet.config.tables import Reader
from fleet.core.model import Backend, Fleet, Pattern
from fleet.supervisor.phase import model_in
from tests.unit.test_config import HEAD, parse

PROFILE = {
    "bin": "cli",
    "flags": "-a",
    "supports_resume": True,
    "active_re": "old",
    "env": {"A": "1", "B": "2"},
    "env_pass": ["KEY"],
    "patterns": [
        {"name": "busy", "state": "working", "re": "busy"},
        {"name": "idle", "state": "idle", "re": "idle"},
    ],
    "dialogs": [{"name": "trust", "re": "trust", "key": "Enter"}],
    "screen": {"composer": "^>", "footer": "^$"},
}
AGENT = '[[agent]]\nname = "a"\nbackend = "cli"\n'
LOOP = """\
[loop]
kickoff_template = "k"
phases = [
  { id = "p1", plan = "p", status = "s1", models = { builder = "phase-model", plain = "by-name" } },
  { id = "p2", plan = "p", status = "s2" },
]
"""


def backend(text: str, name: str = "cli") -> Backend:
    fleet = parse(HEAD.replace("demo", "cli") + text, profiles={"cli": PROFILE})
    return next(b for b in fleet.backends if b.name == name)


def test_an_agent_may_use_a_shipped_profile_without_a_table():
    assert backend(AGENT) == Backend(
        name="cli",
        bin="cli",
        flags="-a",
        supports_resume=True,
        active_re="old",
        env=(("A", "1"), ("B", "2")),
        env_pass=("KEY",),
        patterns=(Pattern("busy", "working", "busy"), Pattern("idle", "idle", "idle")),
        dialogs=backend(AGENT).dialogs,
        screen=(("composer", "^>"), ("footer", "^$")),
    )


def test_a_table_of_the_same_name_changes_the_profile_key_by_key():
    changed = backend('[backend.cli]\nactive_re = "new"\nflags = ""\nsupports_resume = false')
    same = dataclasses.replace(backend(AGENT), active_re="new", flags="", supports_resume=False)
    assert changed == same


def test_lists_replace_tables_merge_and_named_rows_replace_or_append():
    changed = backend("""
[backend.cli]
env = { B = "3", C = "4" }
env_pass = ["OTHER"]
screen = { footer = "x" }
patterns = [{ name = "idle", state = "unknown", re = "new" }, { name = "more", state = "error", re = "oops" }]
""")
    assert dict(changed.env) == {"A": "1", "B": "3", "C": "4"}
    assert changed.env_pass == ("OTHER",)
    assert dict(changed.screen) == {"composer": "^>", "footer": "x"}
    assert [(p.name, p.state) for p in changed.patterns] == [
        ("busy", "working"),
        ("idle", "unknown"),
        ("more", "error"),
    ]


def test_another_name_inherits_by_word_and_through_the_projects_own_table():
    text = '[backend.cli]\nflags = "-p"\n[backend.mine]\ninherits = "cli"\nbin = "mine"\n'
    text += '[backend.third]\ninherits = "mine"'
    mine, third = backend(text, "mine"), backend(text, "third")
    assert (mine.bin, mine.flags, mine.inherits) == ("mine", "-p", "cli")
    assert third == dataclasses.replace(mine, name="third", inherits="mine")


def test_a_backend_without_a_profile_stands_alone():  # R043, R069
    alone = backend('[backend.new]\nbin = "x"\nactive_re = "busy"', "new")
    assert alone == Backend(name="new", bin="x", active_re="busy")
    assert not alone.declares_idle


def test_only_profiles_that_are_used_are_read(monkeypatch):
    read = []
    monkeypatch.setattr(backend_tables, "shipped", lambda name: read.append(name) or {"bin": name})
    config.parse(
        HEAD + '[[agent]]\nname = "a"\n[[agent]]\nname = "b"\n[backend.x]\nbin = "y"', "/p/agents.toml"
    )
    assert sorted(read) == ["demo", "x"]


@pytest.mark.parametrize("name", names())
def test_a_shipped_profile_passes_every_check_that_a_users_table_must_pass(name):
    """Shipped profiles skip the checks at a start; here they do not."""
    raw = written(name)
    report = Findings()
    backend_tables._given(raw, (), Reader(report, strict=True))
    assert not report.errors
    assert raw["bin"]


def test_a_model_that_goes_nowhere_is_told():
    lone = '[backend.mine]\nbin = "mine"\nmodel_env = true\n'
    (warning,) = parse(HEAD + lone).warnings
    assert "model_variable" in str(warning)
    assert not parse(HEAD + lone + 'model_variable = "MINE"').warnings


def test_a_damaged_profile_is_our_fault_and_is_said_so(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "profile.toml").write_text("x = ")
    with pytest.raises(ConfigError, match="engine's checkout is damaged"):
        backend_tables.shipped("bad", str(tmp_path))
    with pytest.raises(ConfigError, match="there is no such key"):
        backend_tables.profile_values("odd", {"bin": "x", "surprise": 1})


def test_no_word_can_reach_a_file_outside_the_profiles(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "profile.toml").write_text('bin = "x"')
    assert backend_tables.shipped("../x", str(tmp_path / "in")) is None
    assert backend_tables.shipped("x", str(tmp_path)) == {"bin": "x"}


# Models and backends for one invocation


def fleet():
    agents = "".join(
        f'[[agent]]\nname = "{name}"\nmodel = "own"\n{more}\n'
        for name, more in (
            ("b", 'kind = "loop"\nrole = "builder"'),
            ("plain", ""),
            ("my-agent", ""),
            ("x-y", ""),
            ("x_y", ""),
        )
    )
    return parse(HEAD + 'model = "default"\n' + agents + '[[agent]]\nname = "bare"\n' + LOOP)


def model_of(fleet: Fleet, name: str, phase_id: str | None) -> str:
    agent = fleet.agent(name)
    phases = fleet.loop.phases if fleet.loop else ()
    phase = next((p for p in phases if p.id == phase_id), None)
    return model_in(agent, phase) if phase else agent.model


@pytest.mark.parametrize(
    ("agent", "phase", "model"),
    [
        ("b", "p1", "phase-model"),
        ("b", "p2", "own"),
        ("b", None, "own"),
        ("b", "gone", "own"),
        ("plain", "p1", "by-name"),
        ("plain", "p2", "own"),
        ("bare", "p1", "default"),
    ],
)
def test_a_phase_beats_the_agent_which_beats_the_defaults(agent, phase, model):  # T10, R109
    assert model_of(fleet(), agent, phase) == model


def test_a_fleet_without_a_loop_has_models_too():
    bare = parse(HEAD + '[[agent]]\nname = "a"\nmodel = "m"')
    assert model_of(bare, "a", None) == "m"


@pytest.mark.parametrize(
    ("environ", "agent", "model"),
    [
        ({"AGENT_MODEL_b": "env"}, "b", "env"),
        ({"AGENT_MODEL_b": "own"}, "b", "own"),  # the same word, but it still beats the phase
        ({"AGENT_MODEL_b": ""}, "b", "phase-model"),
        ({"AGENT_MODEL_my_agent": "env"}, "my-agent", "env"),
        ({"AGENT_MODEL_my-agent": "exact", "AGENT_MODEL_my_agent": "env"}, "my-agent", "exact"),
        ({"AGENT_MODEL_x_y": "env"}, "x_y", "env"),
        ({"AGENT_MODEL_x_y": "env"}, "x-y", "own"),
        ({"AGENT_MODEL_x-y": "env"}, "x-y", "env"),
        ({"AGENT_MODEL_x-y": "env"}, "x_y", "own"),
        ({"AGENT_MODEL_B": "env"}, "b", "phase-model"),
    ],
)
def test_the_environment_beats_everything_for_one_invocation(environ, agent, model):  # R133, T10, T11
    changed, _ = config.override(fleet(), environ)
    assert model_of(changed, agent, "p1") == model


def test_an_override_says_what_it_does_and_that_the_file_wins_later():  # R134, T13
    declared = parse(HEAD + '[backend.other]\nbin = "o"\n[[agent]]\nname = "a"')
    changed, notes = config.override(
        declared, {"AGENT_BACKEND_a": "other", "AGENT_MODEL_a": "m", "AGENT_MODEL_no": "x"}
    )
    assert (changed.agent("a").backend, changed.agent("a").model) == ("other", "m")
    assert notes == [
        ("a", "AGENT_MODEL_a", "model m, this time only"),
        (
            "a",
            "AGENT_BACKEND_a",
            "backend other, this time only; a watchdog goes by the file and will bring demo back",
        ),
        ("", "AGENT_MODEL_no", "there is no such agent"),
    ]
    assert declared.agent("a").backend == "demo"


def test_an_override_may_name_a_shipped_profile_that_the_file_does_not_use():
    declared = parse(HEAD.replace("demo", "base") + '[[agent]]\nname = "a"')
    changed, _ = config.override(declared, {"AGENT_BACKEND_a": "demo"})
    assert changed.backend_of(changed.agent("a")).prompt_delivery == "exec"


def test_an_override_with_an_unknown_backend_is_refused():
    with pytest.raises(ConfigError, match=r'AGENT_BACKEND_b: there is no backend "dmo".*did you mean "demo"'):
        config.override(fleet(), {"AGENT_BACKEND_b": "dmo"})


def test_no_override_changes_nothing():
    assert config.override(fleet(), {"PATH": "/bin", "AGENT_MODEL_b": ""}) == (fleet(), [])
