"""Agents and services are one kind of thing: they are kept in one place, and both have a backend."""

from __future__ import annotations

import json

import pytest

from fleet.core.agent.decide import judge
from fleet.core.case import Case
from fleet.core.codec import from_plain, to_plain
from fleet.core.memory import AgentMemory
from fleet.core.model import SCREENLESS, Fleet, Member
from fleet.supervisor.perform import FACTS, drift_between, fingerprint
from tests.records import replace
from tests.unit.cases import AGENT, BACKEND, LOOP_AGENT, READY, SERVICE, case, dead, seen

FLEET = Fleet("/c", "p-", "/l", "ao-p", "id", "/", backends=(BACKEND,), members=(SERVICE, AGENT))


def test_members_are_agents_then_services_however_they_were_given():
    assert FLEET.members == (AGENT, SERVICE)
    assert (FLEET.agents, FLEET.services) == ((AGENT,), (SERVICE,))
    fewer = replace(FLEET, members=(SERVICE,))
    assert (fewer.members, fewer.agents, fewer.services) == ((SERVICE,), (), (SERVICE,))
    assert replace(FLEET, log_dir="/m").members == FLEET.members


def test_a_member_is_found_by_its_name_and_an_agent_only_among_agents():
    assert (FLEET.member("a"), FLEET.member("s"), FLEET.member("x")) == (AGENT, SERVICE, None)
    assert (FLEET.agent("a"), FLEET.agent("s")) == (AGENT, None)


def test_a_service_has_a_backend_that_reads_and_types_nothing():
    assert FLEET.backend_of(AGENT) is BACKEND
    assert FLEET.backend_of(SERVICE) is SCREENLESS
    silent = (SCREENLESS.patterns, SCREENLESS.dialogs, SCREENLESS.signals, SCREENLESS.process_name)
    assert not any(silent)
    with pytest.raises(LookupError, match="no backend of this fleet: gone"):
        FLEET.backend_of(replace(AGENT, backend="gone"))


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (AGENT, {"has_screen"}),
        (LOOP_AGENT, {"has_screen", "is_loop"}),
        (replace(AGENT, kind="task"), {"has_screen", "is_task"}),
        (SERVICE, {"is_service"}),
    ],
    ids=lambda value: value.kind if isinstance(value, Member) else "",
)
def test_the_words_that_rules_use_follow_from_the_kind(member, words):
    every = ("has_screen", "is_loop", "is_service", "is_task")
    assert {word for word in every if getattr(member, word)} == words


def test_the_case_of_a_service_is_decided_again_as_it_was_recorded():
    gone = seen(pane=dead(), reading=None, survivors=0)
    decided = case(replace(READY, over="run1"), agent=SERVICE, backend=SCREENLESS, seen=gone)
    again = from_plain(Case, json.loads(json.dumps(to_plain(decided))))
    assert again == decided
    assert judge(again) == judge(decided)


def test_a_verdict_on_a_service_is_forgotten_when_the_operator_resets_it():
    condemned = AgentMemory(fatal="it could not be started", fix="mend it", over="run1", seen_run="run1")
    gone = seen(pane=dead(127), reading=None, survivors=0)
    before = case(condemned, agent=SERVICE, backend=SCREENLESS, seen=gone)
    assert judge(before).shown.rule == "fatal"
    asked = replace(before, seen=replace(gone, wish=replace(gone.wish, resets=1)))
    assert judge(asked).shown.rule == "heal"
    assert not judge(asked).memory.fatal


@pytest.mark.parametrize(
    ("member", "backend", "key"), [(AGENT, BACKEND, "backend.bin"), (SERVICE, SCREENLESS, "command")]
)
def test_what_cannot_be_started_is_mended_where_it_is_declared(member, backend, key):
    gone = seen(pane=dead(127), reading=None, survivors=0)
    told = judge(case(AgentMemory(), agent=member, backend=backend, seen=gone)).shown
    assert told.rule == "fatal"
    assert f"correct {key} or PATH" in told.reason


@pytest.mark.parametrize(
    ("member", "changes", "names"),
    [
        (AGENT, {"model": "m", "role": "r"}, ("model", "role")),
        (SERVICE, {"command": "walk", "dir": "/"}, ("dir", "command")),
        (SERVICE, {"watch": "none", "enabled": False}, ()),
    ],
    ids=["agent", "service", "followed"],
)
def test_drift_names_what_a_running_process_cannot_follow(member, changes, names):
    then, now = fingerprint(FLEET, member), fingerprint(FLEET, replace(member, **changes))
    assert drift_between(then, now) == names
    assert len(json.loads(now)) == len(FACTS)
