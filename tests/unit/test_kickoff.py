"""The words an agent starts with (R084, R105, R107, T08)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.model import Phase
from fleet.core.starts import assemble, continue_line, slots_for
from fleet.supervisor.phase import NoPrompt, model_in, prompt_for
from tests.unit.loops import MemoryDisk, change, fleet

PHASE = Phase(id="p1", plan="plans/p1.md", status="STATUS-p1.md")


def test_the_template_is_filled_and_the_role_follows():
    text = assemble(
        "Phase {phase_id}: {plan} -> {status} as {role}\n", "You build.\n", slots_for(PHASE, "builder")
    )
    assert text == "Phase p1: plans/p1.md -> STATUS-p1.md as builder\n\nYou build.\n"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{phase_id}{phase_id}", "p1p1\n"),
        ("{unknown} {} {0} {{plan}} ${plan}", "{unknown} {} {0} {plans/p1.md} $plans/p1.md\n"),
        ("{phase_id!r} {plan:>9} {role.x}", "{phase_id!r} {plan:>9} {role.x}\n"),
        ('{"json": {"a": 1}} awk \'{print $1}\'', '{"json": {"a": 1}} awk \'{print $1}\'\n'),
        ("%s %(plan)s \\1", "%s %(plan)s \\1\n"),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_slots_are_literal_and_other_braces_stay(template, expected):
    assert assemble(template, "", slots_for(PHASE, "builder")) == expected


def test_a_value_that_looks_like_a_slot_is_not_filled_again():
    odd = Phase(id="{role}", plan="{status}", status="\\g<0>")
    assert (
        assemble("{phase_id}|{plan}|{status}|{role}", "", slots_for(odd, "r")) == "{role}|{status}|\\g<0>|r\n"
    )


def test_the_role_text_is_taken_as_it_stands():
    assert assemble("t", "use {plan} and {status}", slots_for(PHASE, "b")).endswith(
        "use {plan} and {status}\n"
    )


def test_without_project_files_there_are_no_words():
    assert assemble("", "", slots_for(PHASE, "b")) == ""


@given(st.text(), st.text(), st.text(min_size=1, max_size=9))
def test_the_same_inputs_give_the_same_bytes(template, role, name):
    slots = slots_for(PHASE, name)
    first = assemble(template, role, slots)
    assert first.encode("utf-8", "surrogatepass") == assemble(
        template, role, dict(reversed(slots.items()))
    ).encode("utf-8", "surrogatepass")


def test_lines_of_ours_are_single_lines_that_no_cli_takes_for_a_command():
    for line in (continue_line(), continue_line("p1")):
        assert "\n" not in line
        assert line[0] not in "/!#@"
        assert len(line) <= 500
        assert "WAITING-UNTIL" not in line


# --- from the project's files -----------------------------------------------------------------------


def project(**files):
    disk = MemoryDisk()
    disk.files |= {"/p/kickoff.md": b"Phase {phase_id}", "/p/roles/builder.md": b"Build {plan}."}
    disk.files |= {path: text for path, text in files.items() if text is not None}
    return disk


def test_a_loop_agent_gets_the_template_and_its_role_in_its_phase():
    """R084, R105, R106."""
    f = fleet("p1", "p2")
    assert prompt_for(project(), f, f.agents[0], "p2") == ("", "Phase p2\n\nBuild {plan}.\n")


def test_without_a_template_the_role_stands_alone():
    """R107: there is no text of ours."""
    f = fleet("p1", kickoff_template="")
    assert prompt_for(project(), f, f.agents[0], "p1")[1] == "Build {plan}.\n"


def test_other_agents_get_their_own_words():
    """R081, R082, R085."""
    f = fleet("p1")
    task = change(f.agents[2], prompt="inline {phase_id}")
    assert prompt_for(project(), f, task, "p1")[1] == "inline {phase_id}"
    task = change(f.agents[2], prompt_file="/p/task.md")
    assert prompt_for(project(**{"/p/task.md": b"from a file"}), f, task, "")[1] == "from a file"


@pytest.mark.parametrize(
    ("models", "changes", "expected"),
    [
        ((), {"model": "own"}, "own"),
        ((("builder", "phase"),), {"model": "own"}, "phase"),
        ((("adversary", "phase"),), {"model": "own"}, "own"),
        ((("builder", "phase"),), {"model": "env", "model_pinned": True}, "env"),
        ((("maker", "phase"),), {"name": "maker", "role": "", "model": "own"}, "phase"),
    ],
)
def test_the_model_is_the_phases_unless_this_invocation_says_otherwise(models, changes, expected):
    """R109, T10."""
    f = fleet("p1")
    assert model_in(change(f.agents[0], **changes), change(f.loop.phases[0], models=models)) == expected


def test_a_missing_file_is_named_with_its_key():
    """T43."""
    f = fleet("p1")
    disk = project()
    del disk.files["/p/roles/builder.md"]
    with pytest.raises(NoPrompt, match=r"agent builder: role: /p/roles/builder\.md"):
        prompt_for(disk, f, f.agents[0], "p1")
